"""What a session knows of the processes that had it before: how prompts ended, and a run that was cut."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.sessions.journal.records import Record

if TYPE_CHECKING:
    from robota.core.run import RunResult
    from robota.sessions.journal.conversation import CutConversation
    from robota.sessions.journal.port import SessionJournal
    from robota.sessions.session import Session
    from robota.sessions.start import SessionStart


class Past(Struct, eq=False):
    results: dict[str, RunResult[Any]] = {}
    """How prompts ended that had an id, by that."""
    cut: CutConversation | None = None
    """A run to go on with."""
    created_at: str = ""
    """When the session began."""
    spent: int = 0
    """Requests of the past that are in the ledger."""

    def require_cut(self, session_id: str) -> CutConversation:
        if self.cut is None:
            raise ConfigurationError(f"Session {session_id} has no run to continue: submit a prompt.")
        return self.cut


def look_back(start: SessionStart | None) -> Past:
    return Past() if start is None else Past(dict(start.results), start.cut, start.created_at)


def recall_usage(session: Session, start: SessionStart | None) -> None:
    """Have in the ledger what earlier processes have spent, once."""
    ledger, past = session.usage, session.past
    if start is None or not start.spent:
        ledger.root.sessions.add(session.session_id)
    elif len(start.spent) > past.spent:
        from robota.sessions.usage.past_usage import recall  # noqa: PLC0415 - for sessions that go on

        recall(ledger, session.session_id, start.spent, past.spent)
        past.spent = len(start.spent)


async def refuse_to_forget(journal: SessionJournal) -> None:
    """Go on without what was said before? The model would not know it, and the journal would mix both."""
    from robota.sessions.journal.conversation import ConversationFold  # noqa: PLC0415 - rare

    fold = ConversationFold()
    for item in journal.read():
        if isinstance(item, Record):
            fold.take(item)
    if len(fold.store):
        await journal.aclose()
        raise ConfigurationError(
            f"Session {journal.session_id} exists already{f', in {journal.path}' if journal.path else ''}. "
            "To continue it, pass start=restore(store, session_id); else choose another session_id."
        )


def take_up(session: Session, start: SessionStart) -> None:
    """Have what waits for the model and what others keep in the record, and be ready to catch up."""
    session.inbox.learn(start.inbox)
    session.kept.values |= start.kept
    session.log.catch_up = partial(catch_up, session)


def catch_up(session: Session, start: SessionStart) -> None:
    """Take over what others did to the session after this one was restored; its conversation is there."""
    past = session.past
    past.results |= start.results
    past.cut = start.cut if past.cut is not None else None
    recall_usage(session, start)
    session.inbox.learn(start.inbox)
    session.kept.values |= start.kept
    session.background.learn(start.background)
    session.questions.known.update(start.answers)
