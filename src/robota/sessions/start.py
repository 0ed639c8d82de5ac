"""Where a session begins that is not new: what is known of it from its journal, or else from its snapshot.

Nothing is changed by reading, so a session that is forked stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from robota.core.conversation import ConversationStore
from robota.core.errors import StorageError, ValidationError
from robota.core.messages import HistoryEntry, Json, Message, ToolMessage, is_chat_entry
from robota.core.ports import REAL_WORLD, Ports
from robota.core.run import RunResult, RunState
from robota.sessions.background import BackgroundWork
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal import records
from robota.sessions.journal.conversation import (
    CONVERSATION_RECORDS,
    UNKNOWN_EFFECTS,
    ConversationFold,
    CutConversation,
)
from robota.sessions.journal.file.reader import read_journal
from robota.sessions.journal.port import JournalError, JournalProblem, Position
from robota.sessions.journal.reconstruction import LOST, salvage
from robota.sessions.past import USAGE_RECORDS, PastUsage, Spent

if TYPE_CHECKING:
    from robota.sessions.store.session_record import SessionRecord
    from robota.sessions.store.session_store import SessionStore

LEFT_OUT = "Error: not known here. The conversation goes on from a point before the result of this call."
"""What the model is told about calls whose results a fork leaves behind."""
_WANTED = (
    CONVERSATION_RECORDS
    | USAGE_RECORDS
    | {kind.name for kind in (records.SessionBegan, records.SessionChange, records.SessionEnded)}
    | {kind.name for kind in (records.InboxRecord, records.ClosedRecord)}
    | {kind.name for kind in (records.TaskRecord, records.GroupRecord)}
)
_HARMLESS = ("torn", "joined", "repeated", "reordered", "version", "unchecked")
"""Problems of a journal that has lost nothing but what was being written at its end."""


class SessionStart(Struct, eq=False):
    """A session as it was left."""

    session_id: str = ""
    conversation: ConversationStore = field(default_factory=ConversationStore)
    cut: CutConversation | None = None
    """The run that a crash cut."""
    results: dict[str, RunResult] = {}
    """How runs ended whose prompts had an id, by that."""
    inbox: dict[str, records.InboxRecord | None] = {}
    """What waits to be told to the model, by id; `None` for what it was told."""
    answers: dict[str, Json] = {}
    """What was answered to questions of the last run, by id."""
    background: BackgroundWork = field(default_factory=BackgroundWork)
    facts: records.SessionFacts = field(default_factory=records.SessionFacts)
    """What it was begun with."""
    _changes: dict[str, Json] = {}
    created_at: str = ""
    updated_at: str = ""
    first_prompt: str = ""
    prompts: int = 0
    steps: int = 0
    """Messages that were ever recorded, also before the conversation was cleared."""
    last_seq: int = 0
    spent: list[Spent] = []
    """The requests that were made to models."""
    position: Position | None = None
    """Where the journal ended; `None` without one."""
    damaged: bool = False
    """Something of the journal cannot be read."""
    mended: bool = False
    """Some of the conversation is in the snapshot alone, so that a journal has to be given it anew."""
    closed: bool = False
    """The session was shut down in good order."""
    problems: tuple[str, ...] = ()
    """What was damaged or cut, and what became of it."""

    @property
    def run(self) -> RunState | None:
        """The state of the run that a crash cut."""
        return None if self.cut is None else self.cut.run.state

    @property
    def messages(self) -> list[Any]:
        return self.conversation.messages

    @property
    def history(self) -> list[Any]:
        return self.conversation.history

    @property
    def cwd(self) -> str:
        return self.facts.cwd

    @property
    def name(self) -> str | None:
        name: str | None = self._changes.get("name", self.facts.session_name)
        return name

    @property
    def model(self) -> str:
        return self._changes.get("model") or self.facts.model

    @property
    def provider(self) -> str:
        """The name of the provider that answered last."""
        return self._changes.get("provider") or self.facts.provider

    @property
    def system_prompt(self) -> str | None:
        system = self.conversation.system
        return system.content if system is not None else self.facts.system_prompt or None

    def take(self, record: records.Record) -> None:
        """What a record says about the session itself."""
        self.last_seq = max(self.last_seq, record.seq)
        self.updated_at = record.timestamp or self.updated_at
        self.created_at = self.created_at or record.timestamp
        self.closed = isinstance(record, records.SessionEnded)
        if isinstance(record, records.Unknown):
            record = salvage(record) or record
        if isinstance(record, records.SessionBegan):
            self.facts = record
        elif isinstance(record, records.SessionResumed):
            known = {"model": record.model, "provider": record.provider, "name": record.session_name}
            self._changes |= {name: value for name, value in known.items() if value}
        elif isinstance(record, records.SessionChange):
            self._changes[record.change] = record.value
            if record.provider is not None:
                self._changes["provider"] = record.provider
        elif isinstance(record, records.UserRecord):
            self.answers = {}
            self.prompts += 1
            self.first_prompt = self.first_prompt or record.input
        elif isinstance(record, records.Unknown) and record.kind == records.UserRecord.name:
            self.prompts += 1
            self.first_prompt = self.first_prompt or str(record.fields.get("content") or "")
        else:
            self._take_unfinished(record)

    def _take_unfinished(self, record: records.Record) -> None:
        """What a process that goes on with the session has to know of questions and messages under way."""
        if isinstance(record, records.InboxRecord):
            self.inbox[record.id] = record
        elif isinstance(record, records.TaskRecord | records.GroupRecord):
            self.background.take(record)
        elif isinstance(record, records.ClosedRecord):
            self.answers[record.id] = record.answer
        elif isinstance(record, records.MessageRecord) and (
            delivered := record.message.metadata.get("inbox")
        ):
            self.inbox[delivered] = None

    @property
    def kept(self) -> dict[records.KeptField, list[Json]]:
        """What others than the session had put into its record."""
        return {field: self._changes[field] for field in records.KEPT_FIELDS if field in self._changes}

    def changed(self, what: str) -> Json:
        """The latest value of what was changed since the beginning."""
        return self._changes.get(what)


def restore(
    store: SessionStore,
    session_id: str,
    *,
    fork: bool = False,
    step: int | None = None,
    ports: Ports = REAL_WORLD,
) -> SessionStart:
    """The session as it was left. With `fork`, or with `step` (as it was after so many messages, those of a
    conversation that was cleared included), it becomes the beginning of a new one.

    A session that does not exist, or of which nothing can be read, raises `StorageError`.
    """
    path = store.journal_path(session_id)
    unanswered = UNKNOWN_EFFECTS if step is None else LEFT_OUT
    wanted = None if step is None else max(step, 0)
    if os.path.lexists(path):
        position = _find_end(path, session_id)
        items = read_journal(path, session_id=session_id, events=_WANTED)
        start = fold_journal(items, session_id, step=wanted, unanswered=unanswered, ports=ports)
        known = None
        if not start.last_seq:  # a log of the TypeScript original; the record beside it has what it lacks
            with suppress(StorageError):
                known = store.load_snapshot(session_id)
        if known is not None:
            if len(start.messages) <= len(known.messages):  # its log says less
                start = _from_snapshot(known, wanted, unanswered, ports)
            else:
                start.facts, start.created_at = _facts_of(known), known.created_at
        start.position = position
        if wanted is None:
            _look_into_snapshot(store, start, ports)
        if not start.last_seq and not start.messages and wanted != 0:
            reasons = " ".join(start.problems) or "It is empty."
            raise StorageError(f"The journal {path} holds nothing readable. {reasons} It was left as it is.")
    else:
        record = store.load(session_id)
        if record is None:
            raise StorageError(f"There is no session {session_id} in {store.base_dir}.")
        start = _from_snapshot(record, wanted, unanswered, ports)
    if step is not None and not 0 <= step <= start.steps:
        raise ValidationError(
            f"There is no step {step} in session {session_id}: steps are counted from 0 to its last message.",
            field="step",
        )
    if fork or step is not None:
        start.session_id, start.cut, start.results, start.spent = "", None, {}, []
        start.conversation.aside = []
    return start


def _find_end(path: str, session_id: str) -> Position | None:
    from robota.sessions.journal.file.tail import find_last  # noqa: PLC0415 - not for those who only list

    try:
        return find_last(REAL_FILES, path, session_id)
    except (OSError, JournalError):  # it can be read, if at all, and not be written: whoever tries is told
        return None


def _look_into_snapshot(store: SessionStore, start: SessionStart, ports: Ports) -> None:
    """Take from the snapshot what the journal has lost: from within, or its end."""
    last = 0 if start.position is None else start.position.record
    if not start.damaged and store.snapshot_seq(start.session_id) <= last:
        return
    from robota.sessions.mending import mend  # noqa: PLC0415 - rare

    try:
        snapshot = store.load_snapshot(start.session_id)
    except StorageError as error:
        start.problems += (str(error),)
        return
    if snapshot is not None:
        mend(start, snapshot, ports)


def restore_journal(
    path: str,
    *,
    files: Files = REAL_FILES,
    session_id: str | None = None,
    until: int | None = None,
    ports: Ports = REAL_WORLD,
) -> SessionStart:
    """What a journal file tells, to its end or to the record `until`. A file that cannot be read raises."""
    items = read_journal(path, session_id=session_id, files=files, events=_WANTED)
    return fold_journal(items, session_id or "", until=until, ports=ports)


def fold_journal(
    items: Iterable[records.Record | JournalProblem],
    session_id: str,
    *,
    until: int | None = None,
    step: int | None = None,
    unanswered: str = UNKNOWN_EFFECTS,
    ports: Ports = REAL_WORLD,
) -> SessionStart:
    """Memory follows the conversation, not the journal: everything else is passed over."""
    problems: list[str] = []
    start, fold, usage = SessionStart(session_id), ConversationFold(unanswered, ports), PastUsage()
    for item in items:
        if isinstance(item, JournalProblem):
            problems.append(item.message)
            start.damaged = start.damaged or item.kind not in _HARMLESS
            if item.kind not in (*_HARMLESS, "gap"):  # which is told at the end
                fold.note_damage()
            continue
        if (until is not None and item.seq > until) or (step is not None and fold.steps >= step):
            break
        start.take(item)
        usage.take(item, fold.store)
        fold.take(item)
    fold.cut_off()
    usage.close_run()
    if step is None:
        start.cut, start.results = fold.cut, fold.results
    start.conversation, start.steps, start.spent = fold.store, fold.steps, usage.spent
    start.damaged = start.damaged or any(LOST in message.metadata for message in fold.store.timeline)
    start.problems = (*problems, *fold.repairs)
    return start


def _from_snapshot(record: SessionRecord, step: int | None, unanswered: str, ports: Ports) -> SessionStart:
    start = SessionStart(record.id)
    start.conversation = conversation = ConversationStore(ports)
    for entry in _timeline(record):
        if isinstance(entry, HistoryEntry) or step is None or len(conversation) < step:
            conversation.restore(entry)
    for call in conversation.open_calls:
        conversation.append(ToolMessage(unanswered, call.id, call.name, metadata={"success": False}))
    start.steps, start.facts = len(conversation), _facts_of(record)
    start.background = BackgroundWork.from_record(record)
    start.created_at, start.updated_at = record.created_at, record.updated_at
    start._changes.update(record.kept.items())
    start.problems = tuple(record.problems)
    return start


def _facts_of(record: SessionRecord) -> records.SessionFacts:
    return records.SessionFacts(
        cwd=record.cwd,
        system_prompt=record.system_prompt,
        model=record.model or "",
        session_name=record.name,
    )


def _timeline(record: SessionRecord) -> list[Message | HistoryEntry]:
    """Messages and events in their order; the messages alone if the two lists tell of different ones."""
    messages = record.parse_messages()
    try:
        entries = record.parse_history()
    except ValidationError:
        entries = []
    waiting = iter(messages)
    timeline = [next(waiting, None) if is_chat_entry(entry) else entry for entry in entries]
    whole = None not in timeline and next(waiting, None) is None
    return [entry for entry in timeline if entry is not None] if whole else [*messages]
