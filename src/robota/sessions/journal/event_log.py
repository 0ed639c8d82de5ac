"""Writes everything that happens in a session into its journal, so that it can be read back and repeated.

The log is an event listener that only appends. Nothing is written twice: a message stands in one record, from
which `entries` makes the events that tell of it; a request names the history it carries by length and running
checksum; pieces of a stream are kept in runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, ClassVar
from zlib import crc32

from msgspec import convert, to_builtins

from robota.core import events
from robota.core.bus import EventBus, HandlerTable, Unsubscribe
from robota.core.encoded import MessageView
from robota.core.event_names import is_only_shown
from robota.core.events import Event, TurnEvent
from robota.core.messages import JsonObject
from robota.core.tool_call import NOT_STARTED, place_of
from robota.core.tool_round import PROGRESS_KEPT
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal import records
from robota.sessions.journal.file.file_journal import FileJournal
from robota.sessions.journal.port import SessionJournal
from robota.sessions.journal.records import Record
from robota.sessions.journal.stream_run import StreamPiece, StreamRun
from robota.sessions.journal.writer import CallWriter, MessageWriter, RecordWriter, StreamWriter
from robota.sessions.redaction import Redactor

_RESTARTS = (records.HistoryCleared, records.HistoryRewound, records.SessionResumed)
"""Records after which the running checksum of the history begins anew."""
_RECORD_NAMES: dict[type[Event], str] = {events.ContextUpdated: "context"}
_AS_THEY_ARE = (
    events.ContextLoaded, events.SummaryCalled, events.SessionShutdown, events.ServerToolUsed,
    events.ProviderRetried, events.Noticed, events.Compacted, events.ModelChanged, events.SettingsChanged,
    events.BackgroundGroupChanged, events.QuestionAsked, events.QuestionClosed,
)  # fmt: skip
"""Events that are written as they are."""


def _add_piece(log: EventLog, piece: StreamPiece) -> None:
    log.stream.add(piece)


def _take_task(log: EventLog, event: events.BackgroundTaskChanged) -> None:
    if not is_only_shown(event):
        log.take_any(event)


class EventLog:
    """The events of one session on their way into its journal. Give it the bus of an agent with `attach`."""

    __slots__ = (
        "_before", "_model", "_prompt", "_shown", "_synced_batch", "_syncing", "_tools", "_web", "calls",
        "failure", "has_effects", "journal", "messages", "stream", "writer",
    )  # fmt: skip

    def __init__(self, journal: SessionJournal, redactor: Redactor | None = None) -> None:
        self.journal = journal
        self.writer = RecordWriter(journal, Redactor() if redactor is None else redactor)
        self.calls = CallWriter(self.writer)
        self.stream = StreamWriter(self.writer, StreamRun(self.writer.redactor), self.calls.flush)
        self.messages = MessageWriter(self.writer, self.stream, self.calls)
        self._tools: Any = None
        self._web: Any = None
        self._model: tuple[str, str] | None = None
        self._prompt: str | None = None  # the one that was accepted last
        self._before: records.PreRunRecord | None = None
        self._shown: dict[str, int] = {}  # characters of progress by call
        self._synced_batch = 0
        self._syncing: asyncio.Lock | None = None
        self.has_effects = False  # tools have changed the world since the last sync
        self.failure = ""  # what could not be written, for another reason than the disk

    # --- what a session calls -------------------------------------------------------------------------

    def attach(self, bus: EventBus) -> Unsubscribe:
        return bus.on_each(self.HANDLERS, self)

    def write(self, record: Record) -> None:
        """A record that no event stands for."""
        self.end_run(calls=not isinstance(record, records.EntryRecord))
        if isinstance(record, _RESTARTS):
            self.messages.crc = 0
        elif isinstance(record, records.RunContinued):
            self.writer.run += 1
            record.run = self.writer.run
        self.writer.write(record)

    def accept_prompt(self, record: Record, words: str) -> None:
        self._prompt = words
        self.write(record)

    async def sync(self) -> bool:
        """Have everything safe; false if that failed, which the journal's `trouble` explains."""
        self.end_run()
        self.has_effects = False
        return await self.journal.sync()

    async def before_effects(self) -> None:
        """Some tool is about to change the world: the intent must outlive a power cut.

        The record of the batch names all its calls, so that a hundred parallel tools wait for one sync.
        """
        self.has_effects = True
        self.calls.flush()
        batch = self.calls.batch_seq
        if batch <= self._synced_batch:
            return
        self._syncing = self._syncing or asyncio.Lock()
        async with self._syncing:
            if batch > self._synced_batch:
                await self.journal.sync()
                self._synced_batch = batch

    async def aclose(self) -> None:
        self.end_run()
        self.stream.stop()
        await self.journal.aclose()

    def fail(self, event: Event, error: Exception) -> None:
        """An event could not be written: the session goes on, and whoever looks is told what is missing."""
        first, journal, what = not self.failure, self.journal, f"{type(error).__name__}: {error}"
        self.failure = f"The journal {journal.path} has no record of an event ({event.name}): {what}."
        if first and journal.on_trouble is not None:
            journal.on_trouble(self.failure)

    def end_run(self, *, calls: bool = True) -> None:
        """Another record follows: write what is left of the run of pieces, and what else waits. A remark on
        the start of a call leaves that waiting: one that was never begun goes with its result."""
        if self.stream.reply.pieces:
            self.stream.close_run()
        if self._before is not None:
            self._write_before()
        if calls:
            self.calls.flush()

    def reach(self, event: Event) -> None:
        """A record follows that tells of this event: write what came before it."""
        self.end_run()
        self.writer.event = event.seq

    def unwritten(self) -> list[TurnEvent]:
        """Turn events that the journal does not have yet, after everything that may be written was."""
        held = self.stream.take_unwritten()
        if not held:
            self.end_run()
        self.journal.release()
        return [piece for piece in held if isinstance(piece, TurnEvent)]

    # --- the events of a run --------------------------------------------------------------------------

    def take_progress(self, piece: events.ToolProgressed) -> None:
        shown = self._shown[piece.call_id] = self._shown.get(piece.call_id, 0) + len(piece.text)
        if shown <= PROGRESS_KEPT:  # else it is only shown, under the number of whatever came before
            self.calls.flush()
            self.stream.add(piece)

    def take_start(self, event: events.RunStarted) -> None:
        self.reach(event)
        self.writer.run += 1
        prompt, self._prompt = self._prompt, None
        record = records.RunBegan(
            run=self.writer.run,
            execution_id=event.execution_id,
            conversation_id=event.conversation_id,
            agent_name=event.agent_name,
            prompt=None if event.prompt == prompt else event.prompt,
            max_rounds=event.max_rounds,
        )
        write = self._hold if record.prompt is None else self.writer.write
        write(record)

    def take_pre_run(self, event: events.PreRun) -> None:
        """What the run begins with waits for the estimate of what will be sent."""
        self.reach(event)
        self._before = before = convert(event.data, records.PreRunRecord)
        before.run, known, self._web = self.writer.run, self._web, before.web_tools
        before.web_tools = None if self._web == known else self._web

    def take_context(self, event: events.ContextUpdated) -> None:
        if self._before is None:
            self.reach(event)
            self.writer.write_clean(record_of(event, self.writer.run))  # numbers
            return
        self._before.used_tokens = event.used_tokens
        self.writer.event = event.seq
        self._write_before()

    def _write_before(self) -> None:
        before, self._before = self._before, None
        if before is not None and before.context is None:
            self._hold(before)
        elif before is not None:
            self.writer.write(before)

    def _hold(self, record: Record) -> None:
        """Write a record of our own that can wait for the next one."""
        self.writer.write_clean(record, hold=True)
        self.stream.start_moment()

    def take_request(self, event: events.ProviderRequest) -> None:
        self.reach(event)
        self.stream.begin_reply()
        view, extra = event.messages, None
        if not isinstance(view, MessageView):  # a last word that belongs to this request alone
            view, extra = view[:-1], view[-1]
        same = event.tools is self._tools or event.tools == self._tools
        who = (event.provider, event.model)
        news, self._model = who != self._model, who
        record = records.RequestRecord(
            run=self.writer.run,
            round=event.round,
            provider=event.provider if news else None,
            model=event.model if news else None,
            history=(len(view), f"{self.messages.crc:08x}"),
            extra=extra,  # type: ignore[arg-type]  # a user message it is
            tools=None if same else event.tools,
            options=event.options,
        )
        if extra is None:
            self._tools = event.tools
        write = self._hold if extra is None and same and event.options is None else self.writer.write
        write(record)

    def take_response(self, event: events.ProviderResponseRaw) -> None:
        if event.kept:  # its message follows at once, with the rest of the stream
            self.messages.response = event
            return
        rest = self.stream.take_rest()
        self.reach(event)
        self.messages.write_empty(event, rest)

    def take_message(self, event: events.HistoryMutation) -> None:
        rest = self.stream.take_rest() if self.messages.is_reply(event.message) else None
        self.reach(event)
        self.messages.write(event, rest)

    def take_batch(self, event: events.ToolBatchStarted) -> None:
        self.reach(event)
        self._shown.clear()
        self.calls.begin_batch(event)

    def take_tool_start(self, event: events.ToolStarted) -> None:
        if self.stream.reply.pieces:
            self.stream.close_run()
        self.calls.start(event)
        self.stream.start_moment()

    def take_tool_end(self, event: events.ToolEnded) -> None:
        if event.error_code == NOT_STARTED:
            self.calls.end_unstarted(event)
            return
        self.reach(event)
        self.calls.end(event)

    def take_decision(self, event: events.PermissionDecided) -> None:
        if not self.calls.decide(event):
            self.reach(event)
            number, at = place_of(str(event.data["callId"]))
            verdict = convert(event.data, records.Verdict)
            self.writer.write(records.Decision(run=self.writer.run, round=number, index=at, verdict=verdict))

    def take_end(self, event: events.RunCompleted | events.RunInterrupted | events.RunFailed) -> None:
        self.reach(event)
        record = convert(fields_of(event), records.RunEnded)
        record.run, record.outcome = self.writer.run, event.name
        if record.text == self.messages.answer:
            record.text = None  # the last answer, which is in the journal
        write = self.writer.write if record.text or record.message else self.writer.write_clean  # numbers
        write(record)

    # --- what else there is ---------------------------------------------------------------------------

    def take_mark(self, event: events.CompactionMarked) -> None:
        self.reach(event)
        self.messages.crc = crc32(event.message.id.encode())
        self.writer.write(records.MarkRecord(epoch=event.epoch, message=event.message))

    def take_init(self, event: events.SessionInit) -> None:
        self._tools, self._web = event.data.get("toolSchemas"), event.data.get("webTools")
        self.take_data(event)

    def take_data(self, event: events.SessionInit | events.HookExecuted) -> None:
        """An event whose fields are one object made by the session."""
        self.reach(event)
        self.writer.write(convert(event.data, records.RECORD_TYPES[event.name]))

    def take_subagent(self, event: events.SubagentEvent) -> None:
        if not is_only_shown(event):
            self.reach(event)
            self.writer.write(records.SubagentRecord(agent_id=event.agent_id, inner=to_builtins(event.inner)))

    def take_any(self, event: Event) -> None:
        """An event that is written as it is."""
        self.reach(event)
        self.writer.write(record_of(event, self.writer.run))

    HANDLERS: ClassVar[HandlerTable]


EventLog.HANDLERS = {
    **dict.fromkeys(
        (events.TextDelta, events.ReasoningDelta, events.ToolInputDelta, events.ProviderNativeRawPayload),
        _add_piece,
    ),
    events.ToolProgressed: EventLog.take_progress,
    events.RunStarted: EventLog.take_start,
    events.ProviderRequest: EventLog.take_request,
    events.ProviderResponseRaw: EventLog.take_response,
    events.HistoryMutation: EventLog.take_message,
    events.ToolBatchStarted: EventLog.take_batch,
    events.ToolStarted: EventLog.take_tool_start,
    events.ToolEnded: EventLog.take_tool_end,
    **dict.fromkeys((events.RunCompleted, events.RunInterrupted, events.RunFailed), EventLog.take_end),
    events.CompactionMarked: EventLog.take_mark,
    events.SessionInit: EventLog.take_init,
    events.PreRun: EventLog.take_pre_run,
    events.PermissionDecided: EventLog.take_decision,
    events.ContextUpdated: EventLog.take_context,
    events.HookExecuted: EventLog.take_data,
    **dict.fromkeys(_AS_THEY_ARE, EventLog.take_any),
    events.SubagentEvent: EventLog.take_subagent,
    events.BackgroundTaskChanged: _take_task,
}


def record_of(event: Event, run: int) -> Record:
    record: Record = convert(
        fields_of(event), records.RECORD_TYPES[_RECORD_NAMES.get(type(event), event.name)]
    )
    if isinstance(record, records.RunRecord) and event.execution_id:
        record.run = run
    return record


def fields_of(event: Event) -> JsonObject:
    fields: JsonObject = to_builtins(event)
    del fields["event"]
    fields.pop("seq", None)  # the place of a record in its journal is another number
    return fields


class FileSessionLogger(EventLog):
    """An event log with its journal in a file: `{directory}/{session_id}.jsonl`."""

    def __init__(
        self,
        directory: str,
        session_id: str,
        *,
        redactor: Redactor | None = None,
        files: Files = REAL_FILES,
        durable: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(FileJournal(directory, session_id, files=files, now=now, durable=durable), redactor)
