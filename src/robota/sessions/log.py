"""What a session writes into its journal besides what its agent's events tell: what it is made of, what was
done to it from outside, what it learnt from the world.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from robota.core import events
from robota.core.errors import SessionBusyError
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Json,
    JsonObject,
    Message,
    Prompt,
    ToolMessage,
    prompt_text,
)
from robota.core.plain_text import clean_sentence
from robota.core.tool import Tool, tool_class
from robota.sessions.journal import records
from robota.sessions.journal.records import KeptField
from robota.sessions.past import refuse_to_forget

if TYPE_CHECKING:
    from robota.core.bus import EventBus, Unsubscribe
    from robota.core.conversation import ConversationStore
    from robota.core.hooks import HookOutcome
    from robota.core.run import CutRun
    from robota.core.tool import ToolResult
    from robota.core.tool_call import PreparedCall
    from robota.sessions.description import Wishes
    from robota.sessions.journal.event_log import EventLog
    from robota.sessions.journal.port import SessionJournal
    from robota.sessions.secrets import SessionSecrets
    from robota.sessions.start import SessionStart


INJECTED = "injected"
"""The origin of a message that came from outside while a run was under way."""
SLICE = 0.02
"""Seconds for which a conversation is copied into the journal before others have their turn."""
SPARE_NUMBERS = 1_000_000
"""After an end that was not orderly, events go on at the next multiple of this: so a number that somebody saw
and that the disk lost is never given again."""


class _HistoryCopy(Struct, eq=False):
    """What a conversation has that its journal does not, on its way there; the journal knows of no rewind.

    The loop goes on between two slices of it. Cut short, it goes on with the next use of the journal.
    """

    conversation: ConversationStore
    entries: int
    """How many the journal has, and how many of them are messages."""
    messages: int

    @classmethod
    def begin(cls, conversation: ConversationStore, start: int) -> _HistoryCopy:
        conversation.aside = conversation.aside if start else []
        known = sum(not isinstance(entry, HistoryEntry) for entry in conversation.entries[:start])
        return cls(conversation, start, known)

    def restart(self) -> records.HistoryCleared:
        """What was copied so far does not count."""
        self.conversation.aside, self.entries, self.messages = [], 0, 0
        return records.HistoryCleared()

    async def run(
        self, log: EventLog, announce: Callable[[Message, int], None], check: Callable[[], None]
    ) -> None:
        """Write all of it, also what is added meanwhile; `check` raises when nothing may be written."""
        loop = asyncio.get_running_loop()
        pause = loop.time() + SLICE
        while self.entries < len(self.conversation.entries):
            entry = self.conversation.entries[self.entries]
            self.entries += 1
            if isinstance(entry, HistoryEntry):
                log.write(records.EntryRecord(entry=entry))
            else:
                self.messages += 1
                announce(entry, self.messages - 1)
            if loop.time() >= pause:
                await asyncio.sleep(0)
                check()
                pause = loop.time() + SLICE


class SessionLog(Struct, eq=False):
    """Opens the journal when there is something to write; without one, nothing is written."""

    _session_id: str
    _make_event_log: Callable[[], EventLog | None]
    _events: EventBus
    _conversation: ConversationStore
    _describe: Callable[[], JsonObject]
    """Gives the fields of `session_init`."""
    _known: int
    """Entries of the conversation that a journal to go on with has already."""
    secrets: SessionSecrets
    _event_log: EventLog | None = None
    _made: bool = False
    _detach: Unsubscribe | None = None
    seen: int | None = None
    """The last record of the journal when this session was restored from it."""
    catch_up: Callable[[SessionStart], None] | None = None
    """Takes over what others have added since."""
    begins_again: bool = False
    """The journal is given the conversation anew, because it has another one or has lost some of it."""
    _waiting: list[Message] = []
    """Messages that came in the middle of a round."""
    _waiting_for_journal: list[Callable[[], None]] = []
    opened: bool = False
    """The journal has all that happens from here on."""
    copy: _HistoryCopy | None = None
    """Under way: the journal does not have the whole conversation yet."""
    _opening: asyncio.Lock | None = None
    used: bool = False
    """Something happened that belongs into a journal."""
    closed: bool = False
    """Nothing more is written."""

    @property
    def event_log(self) -> EventLog | None:
        """Made when it is first asked for: a session that is never used costs nothing."""
        if not self._made:
            self._made, self._event_log = True, self._make_event_log()
        return self._event_log

    @property
    def journal(self) -> SessionJournal | None:
        return None if self.event_log is None else self.event_log.journal

    async def open(self) -> None:
        """Have the journal ready: a new one begins with what the session is made of."""
        if self.opened and self.copy is None and not self.closed:
            return
        self.require_open()
        if (log := self.event_log) is not None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:  # a large conversation takes a while, and others may come meanwhile
                if not self.opened:
                    await self._begin(log)
                if self.copy is not None:
                    await self.copy.run(log, self.announce, self.require_open)
                    self.copy = None
        self.opened = self.used = True
        waiting, self._waiting_for_journal = self._waiting_for_journal, []
        for act in waiting:
            act()

    async def _read_again(self, journal: SessionJournal) -> None:
        """Others went on with the same journal: go on from there, not from what this session was then."""
        from robota.sessions.start import fold_journal  # noqa: PLC0415 - rare

        if self.begins_again or self.catch_up is None:
            await journal.aclose()
            raise SessionBusyError(
                f"Session {self._session_id} went on elsewhere since this one was restored: restore it again."
            )
        start = fold_journal(journal.read(), self._session_id)
        known = len(start.conversation.entries)
        self._conversation.adopt(start.conversation, self._known)
        self._known = known
        self.catch_up(start)

    async def _begin(self, log: EventLog) -> None:
        bus, journal = self._events, log.journal
        journal.on_trouble = self.notice
        last = await journal.open()
        if self.seen is not None and last.record > self.seen:
            await self._read_again(journal)
        if last.record and not self._known and not self.begins_again:
            await refuse_to_forget(journal)
        spare = 0 if last.closed else SPARE_NUMBERS - last.event % SPARE_NUMBERS
        bus.seq = max(bus.seq, last.event + spare)
        log.writer.event = bus.seq
        log.writer.run = last.record  # runs have fewer numbers than records: none comes twice in a journal
        self._detach = log.attach(bus)
        self.opened = True
        described = self._describe()
        goes_on = last.record and not self.begins_again
        self.copy = _HistoryCopy.begin(self._conversation, self._known if goes_on else 0)
        if not last.record:
            self.report(events.SessionInit, data=described)
            return
        del described["systemPrompt"], described["toolSchemas"]  # said in its first record
        log.write(convert(described, records.SessionResumed))
        if self.begins_again:
            log.write(records.HistoryCleared())

    def require_open(self) -> None:
        if self.closed:
            raise SessionBusyError(f"Session {self._session_id} was shut down: resume it or start a new one.")

    async def aclose(self) -> None:
        """Let the journal go; the session is over."""
        self.closed = True
        if self._detach is not None:
            self._detach()
        if self.event_log is not None:
            await self.event_log.aclose()

    # --- what is done to the session ----------------------------------------------------------------------

    def write(self, record: records.Record) -> None:
        """A record that no event stands for; nothing before the journal is open."""
        if self.opened and not self.closed and self._event_log is not None:
            self._event_log.write(record)

    def when_open(self, act: Callable[[], None]) -> None:
        """Do something that is to be on record: at once, or as soon as the journal is open."""
        if self.opened:
            act()
        else:
            self._waiting_for_journal.append(act)

    async def accept(self, prompt: Prompt, record: records.UserRecord) -> None:
        """Write a prompt down before anything else: from here on it survives a power cut."""
        if (log := self.event_log) is None:
            return
        if not isinstance(prompt, str):
            record.parts = to_builtins(tuple(prompt))
        elif prompt != record.input:
            record.prompt = prompt
        log.accept_prompt(record, prompt_text(prompt))
        await log.sync()

    def continue_run(self, cut: CutRun, tools: Iterable[Tool], **told: Unpack[Wishes]) -> None:
        """Another process began this run and did not end it."""
        looking = tuple(tool.name for tool in tools if tool_class(tool) == "inspect")
        of: Any = {"execution_id": cut.state.execution_id, "conversation_id": cut.conversation_id}
        self.write(records.RunContinued(looking=looking, **told, **of))

    def note_change(self, what: str, value: Json, **more: Json) -> None:
        """Something about the session was changed; until the journal is open, its first record says so."""
        self.write(records.SessionChange(change=what, value=value, **more))

    def record(self, message: Message, *, in_run: bool = False) -> Message:
        """Append a message that comes from outside a run; while a reply streams, or calls have no result, it
        waits for the end of the round."""
        self.require_open()
        self.used = True
        if in_run:
            message = replace(message, metadata={**message.metadata, "origin": INJECTED})
        conversation = self._conversation
        called = conversation.open_calls and not isinstance(message, ToolMessage)
        if conversation.has_pending_assistant or called:
            self._waiting.append(message)
        else:
            index = conversation.append(message)
            if self.copy is None:  # else it comes there in its turn
                self.announce(message, index)
        return message

    def end_round(self) -> None:
        """Append what has waited for it."""
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self.record(message)

    def record_entry(self, entry: HistoryEntry) -> None:
        """Append an event to the timeline."""
        self.require_open()
        self.used = True
        self._conversation.add_entry(entry)
        if self.copy is None:
            self.write(records.EntryRecord(entry=entry))

    def record_restart(self, record: records.HistoryCleared | records.HistoryRewound) -> None:
        """The conversation does not go on where it was."""
        self.used, self.begins_again = True, self.begins_again or not self.opened
        self.write(record if self.copy is None else self.copy.restart())

    def announce(self, message: Message, index: int) -> None:
        if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
            self.report(events.CompactionMarked, message=message, epoch=self._conversation.epoch)
        else:
            self.report(events.HistoryMutation, message=message, index=index)

    # --- what it learns -------------------------------------------------------------------------------------

    def record_decision(self, decision: JsonObject) -> None:
        self.report(events.PermissionDecided, data=decision)

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What a tool gave before hooks changed it."""
        self.write(records.OriginalResult(call_id=call.call_id, result=result))

    def record_hooks(self, outcome: HookOutcome, call_id: str) -> None:
        data = {"hook": outcome.event, "callId": call_id or None, "outcome": to_builtins(outcome)}
        self.report(events.HookExecuted, data=data)
        for text in (*outcome.warnings, *outcome.system_messages):
            self.tell(events.Noticed, message=text)

    async def before_effects(self, call: PreparedCall) -> None:
        if self._event_log is not None and self.opened:
            await self._event_log.before_effects()

    async def after_effects(self) -> None:
        """Have what tools did on record before the model goes on from it."""
        if self._event_log is not None and self._event_log.has_effects:
            await self._event_log.sync()

    # --- events of the session itself -----------------------------------------------------------------------

    def tell(self, kind: type[events.TurnEvent], **fields: Any) -> None:
        """For everybody."""
        bus = self._events
        bus.emit(kind(seq=bus.next_seq(), **fields))

    def report(self, kind: type[events.ReplayEvent], **fields: Any) -> None:
        """For the journal."""
        bus = self._events
        if bus.wants(kind):
            bus.emit(kind(seq=bus.seq, **fields))

    def notice(self, sentence: str) -> None:
        """Something the user should know."""
        if sentence:  # nobody listens before, and a number that the journal lacks must not be given
            self.when_open(partial(self.tell, events.Noticed, message=clean_sentence(sentence)))

    # --- the disk -------------------------------------------------------------------------------------------

    async def sync(self) -> None:
        if self.event_log is not None and self.opened:
            await self.event_log.sync()

    @property
    def path(self) -> str:
        """Where the journal is; empty without one."""
        return "" if self.journal is None else self.journal.path

    @property
    def trouble(self) -> str:
        """Why not everything is on the disk."""
        return "" if (log := self.event_log) is None else log.journal.trouble or log.failure


class KeptFields(Struct, eq=False):
    """What the layers above keep in the record of a session: opaque here, journaled, found by a resume."""

    _log: SessionLog
    values: dict[KeptField, list[Json]] = {}

    def get(self, field: KeptField) -> list[Json]:
        return self.values.get(field, [])

    def put(self, field: KeptField, value: list[Json]) -> None:
        """Have this in the record from now on; a list that was put is not to be changed."""
        self.values[field] = value
        self._log.when_open(partial(self._log.note_change, field, value))
