"""What a session knows of the processes that had it before: how prompts ended, a run that was cut, and what
was spent, as the journal tells it, so that a budget counts it too."""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from robota.core.context import BYTES_PER_TOKEN, normalize_usage, read_token_usage
from robota.core.conversation import ConversationStore
from robota.core.errors import ConfigurationError
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, TokenUsage
from robota.sessions.journal.records import (
    CallBegan,
    EmptyReply,
    MessageRecord,
    Record,
    RequestRecord,
    RunBegan,
    RunContinued,
    RunEnded,
    RunRecord,
    SubagentRecord,
    SummaryRecord,
)
from robota.sessions.usage.budget import BudgetExceededError
from robota.sessions.usage.ledger import text_size

if TYPE_CHECKING:
    from robota.core.run import RunResult
    from robota.sessions.journal.conversation import CutConversation
    from robota.sessions.journal.port import SessionJournal
    from robota.sessions.session import Session
    from robota.sessions.start import SessionStart


class Past(Struct, eq=False):
    """What is left of those processes to go on with."""

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
    session.log.catch_up = partial(catch_up, session, start.name)
    if session.name != start.name:  # it counts without a prompt too, as if it were named now
        session.log.used = True


def catch_up(session: Session, old_name: str | None, start: SessionStart) -> None:
    """Take over what others did to the session after this one was restored; its conversation is there."""
    past = session.past
    if session.name == old_name:  # else it was named here, and that is the later one
        session.name = start.name
    past.results |= start.results
    past.cut = start.cut if past.cut is not None else None
    recall_usage(session, start)
    session.inbox.learn(start.inbox)
    session.kept.values |= start.kept
    session.background.learn(start.background)
    session.questions.known.update(start.answers)


# --- what was spent --------------------------------------------------------------------------------------

USAGE_RECORDS = frozenset(kind.name for kind in (SummaryRecord, SubagentRecord, CallBegan, RunEnded))
"""Records that tell of requests, beside those that a conversation is made of."""


class Spent(Struct, frozen=True):
    """One request, those of one run of a sub-agent, or what a run took besides."""

    asked: str
    """The model that was asked."""
    answered: Json
    """The one that says it answered."""
    usage: TokenUsage
    estimated: int = 0
    purpose: str = "answer"
    agent_id: str = ""
    requests: int = 1
    calls: int = 0
    """Tool calls that were run."""
    seconds: float = 0.0


class PastUsage(Struct, eq=False):
    """Takes the records of a journal in order."""

    spent: list[Spent] = []
    _model: str = ""
    _sent: int = 0
    """Estimated tokens of the request that has no reply yet."""
    _calls: int = 0
    _began: str = ""
    _latest: str = ""
    """When the run under way began, and when something was last heard of it."""

    def take(self, record: Record, conversation: ConversationStore) -> None:
        """`conversation` is what there was before the record."""
        self._take_time(record)
        if isinstance(record, RequestRecord):
            self._model = record.model or self._model
            self._sent = conversation.tally.estimate().tokens
        elif isinstance(record, EmptyReply) or (isinstance(record, MessageRecord) and record.reply):
            self._add_reply(record.message, record.error or {})
        elif isinstance(record, SummaryRecord) and record.error is None:
            usage = normalize_usage(record.metadata) or TokenUsage()
            self.spent.append(Spent(record.model, None, usage, purpose="compaction"))
        elif isinstance(record, SubagentRecord) and isinstance(found := record.inner.get("usage"), dict):
            usage, rounds = normalize_usage(found) or TokenUsage(), record.inner.get("rounds")
            requests = rounds if isinstance(rounds, int) else 1
            self.spent.append(Spent(self._model, None, usage, 0, "subagent", record.agent_id, requests))

    def _take_time(self, record: Record) -> None:
        inner = record.inner.get("event") if isinstance(record, SubagentRecord) else None
        self._calls += isinstance(record, CallBegan) or inner == CallBegan.name
        if isinstance(record, RunBegan | RunContinued):  # the one before may have been cut
            self.close_run()
            self._began = record.timestamp
        if isinstance(record, RunRecord):
            self._latest = record.timestamp or self._latest
        if isinstance(record, RunEnded):
            self.close_run()

    def close_run(self) -> None:
        """The run has ended, or nothing more is known of it."""
        taken = measure(self._began, self._latest)
        if self._calls or taken:
            self.spent.append(Spent("", None, TokenUsage(), requests=0, calls=self._calls, seconds=taken))
        self._calls, self._began, self._latest = 0, "", ""

    def _add_reply(self, message: Message, error: JsonObject) -> None:
        if error.get("code") == BudgetExceededError.code:
            return  # nothing was sent
        reported, estimated = read_token_usage(message), 0
        if reported is None and error and not message.content:
            reported = TokenUsage()  # taken as not billed
        elif reported is None:
            written = text_size(message.content)
            if isinstance(message, AssistantMessage):
                written += sum(text_size(call.arguments) for call in message.tool_calls)
            reported = TokenUsage(self._sent, math.ceil(written / BYTES_PER_TOKEN))
            estimated = reported.total_tokens
        self.spent.append(Spent(self._model, message.metadata.get("model"), reported, estimated))


def measure(began: str, ended: str) -> float:
    """Seconds between two times; none if one of them is not known."""
    try:
        return max((datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def recall_usage(session: Session, start: SessionStart | None) -> None:
    """Have in the ledger what earlier processes have spent, once; one that was there has it already."""
    book, past, known = session.usage.book, session.past, session.past.spent
    spent = [] if start is None else start.spent
    is_first = session.session_id not in book.sessions
    book.sessions.add(session.session_id)
    if len(spent) <= known:
        return
    past.spent = len(spent)
    for each in spent[known:] if is_first or known else ():
        book.calls += each.calls
        book.past_seconds += each.seconds
        if not each.requests:
            continue
        page = session.usage.child(each.agent_id, purpose=each.purpose)
        page.record(page.choose_name(each.asked, each.answered), each.usage, estimated=each.estimated)
        book.total.requests += each.requests - 1
