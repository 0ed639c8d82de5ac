"""Writes everything that happens in a session into its journal, so that it can be read back and repeated.

The logger is an event listener. Nothing is written twice: a message stands in one record, from which
`session_log` makes the events that tell of it; a request names the history it carries by length and running
checksum; pieces of a stream are kept in runs.

Durability: `sync` is called when a prompt is accepted, before a tool with effects starts, once its results
are recorded, and at the end of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar
from zlib import crc32

from msgspec import to_builtins

from robota.core.bus import EventBus, HandlerTable, Unsubscribe
from robota.core.encoded import MessageView
from robota.core.events import (
    Compacted,
    CompactionMarked,
    ContextLoaded,
    ContextUpdated,
    Event,
    HistoryMutation,
    HookExecuted,
    Noticed,
    PermissionDecided,
    PreRun,
    ProviderNativeRawPayload,
    ProviderRequest,
    ProviderResponseRaw,
    ProviderRetried,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ServerToolUsed,
    SessionInit,
    SessionShutdown,
    SummaryCalled,
    TextDelta,
    ToolBatchStarted,
    ToolEnded,
    ToolExecutionRequest,
    ToolInputDelta,
    UserAnswered,
)
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, ToolMessage
from robota.core.tool_call import NOT_STARTED
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.call_writer import CallWriter, decision_fields, place_of
from robota.sessions.journal.journal import Journal
from robota.sessions.journal.plain_reply import is_plain_reply
from robota.sessions.journal.stream_run import StreamPiece
from robota.sessions.journal.stream_writer import StreamWriter
from robota.sessions.redaction import Redactor

OWN_FIELDS = {"id", "timestamp"}
RESTARTS = ("history_cleared", "session_resumed")
"""Records after which the running checksum of the history begins anew."""


class FileSessionLogger:
    """The pen of one journal. Give it the bus of an agent with `attach`."""

    __slots__ = (
        "_answer", "_before", "_durable", "_effects", "_ended", "_history_crc", "_model", "_response", "_run",
        "_tools", "calls", "journal", "stream",
    )  # fmt: skip

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
        self.journal = Journal(
            directory, session_id, redactor=redactor, files=files, now=now, durable=durable
        )
        self._durable = durable
        self.calls = CallWriter(self.journal)
        self.stream = StreamWriter(self.journal, self.calls.flush)
        self._run = 0
        self._tools: Any = None
        self._model: tuple[str, str] | None = None
        self._history_crc = 0
        self._response: ProviderResponseRaw | None = None
        self._answer = ""
        self._before: JsonObject | None = None
        self._ended = False
        """The last record was the good end of a run."""
        self._effects = False

    # --- what a session calls -------------------------------------------------------------------------

    def attach(self, events: EventBus) -> Unsubscribe:
        return events.on_each(self.HANDLERS, self)

    def log(self, event: str, data: Mapping[str, Json]) -> None:
        """A record of its own kind."""
        self.end_run()
        if event in RESTARTS:
            self._history_crc = 0
        self.journal.write(event, b"", data)

    def sync(self) -> bool:
        """Have everything on the disk; false if that failed, which the journal's `trouble` explains."""
        self.end_run()
        self._effects = False
        return self.journal.file.sync() if self._durable else not self.journal.file.unsaved

    def before_effects(self) -> None:
        """Some tool is about to change the world: the intent must outlive a power cut.

        The record of the batch names all its calls, so that a hundred parallel tools wait for one sync.
        """
        self._effects = True
        self.calls.flush()
        if self._durable and self.journal.file.synced_seq < self.calls.batch_seq:
            self.journal.file.sync(look=False)

    def close(self) -> None:
        self.end_run()
        self.stream.stop()
        self.journal.file.close()

    def end_run(self) -> None:
        """Another record follows: write what is left of the run of pieces."""
        self._ended = False
        if self.stream.pending:
            self.stream.close_run()
        if self._before is not None:  # the run it was to begin did not start
            before, self._before = self._before, None
            self.journal.write("pre_run", b"", before)
        self.calls.flush()

    def take_piece(self, piece: StreamPiece) -> None:
        self.stream.add(piece)

    # --- the events of a run --------------------------------------------------------------------------

    def frame(self, round_number: int) -> bytes:
        return b',"run":%d,"round":%d' % (self._run, round_number)

    def take_pre_run(self, event: PreRun) -> None:
        """What a run begins with goes into the record of its start, which follows at once."""
        self.end_run()
        self._before = dict(event.data)
        self._before.pop("webTools", None)  # of the session, and said at its beginning

    def take_context(self, event: ContextUpdated) -> None:
        """The estimate belongs to the start of a run; the exact state follows from the conversation."""
        if self._before is not None:
            self._before["usedTokens"] = event.used_tokens
        else:
            self.take_any(event)

    def take_start(self, event: RunStarted) -> None:
        before, self._before = self._before, None
        self.end_run()
        self._run += 1
        ids = {"executionId": event.execution_id, "conversationId": event.conversation_id}
        name = event.agent_name or None
        self.journal.write(
            "run_start", b',"run":%d' % self._run, {**ids, "agentName": name, "before": before}
        )

    def take_request(self, event: ProviderRequest) -> None:
        self.end_run()
        self.stream.begin_reply(self._run)
        view, extra = event.messages, None
        if not isinstance(view, MessageView):  # a last word that belongs to this request alone
            view, extra = view[:-1], view[-1]
        same = event.tools is self._tools or event.tools == self._tools
        who = (event.provider, event.model)
        news = who != self._model
        self._model = who
        fields = {
            "provider": event.provider if news else None,
            "model": event.model if news else None,
            "history": [len(view), f"{self._history_crc:08x}"],
            "extra": extra,
            "tools": None if same else event.tools,
            "options": event.options,
        }
        if extra is None:
            self._tools = event.tools
        if extra is not None or not same or event.options is not None:
            self.journal.write("provider_request", self.frame(event.round), fields)
        else:
            self.journal.hold_clean("provider_request", self.frame(event.round), fields)
            self.stream.start_moment()
        if self._effects and self._durable:
            self._effects = False
            self.journal.file.sync(look=False)

    def take_response(self, event: ProviderResponseRaw) -> None:
        if event.kept:
            self._response = event  # its message follows at once, and takes the rest of the stream along
            return
        self.end_run()
        fields = {"message": event.response, "error": event.error}
        self.journal.write("empty_reply", self.frame(event.round), fields)

    def take_message(self, event: HistoryMutation) -> None:
        message = event.message
        response, self._response = self._response, None
        answered = response is not None and response.response is message
        rest = self.stream.take_rest() if answered else None
        self.end_run()
        if isinstance(message, ToolMessage):
            self.take_tool_message(event, message)
            return
        if isinstance(message, AssistantMessage):
            self._answer = message.content
            self.calls.begin_answer(message)
        frame = (
            self.frame(event.round) + b',"index":%d' % event.index + (b',"reply":true' if answered else b"")
        )
        error = response.error if response is not None and answered else None
        self.write_message("message", frame, message, message, error=error, stream=rest)

    def take_tool_message(self, event: HistoryMutation, message: ToolMessage) -> None:
        frame = self.frame(event.round) + b',"index":%d' % event.index
        known = self.calls.shorten(message)
        if known is None:
            self.write_message("message", frame, message, message)
        elif known[1].keys() <= OWN_FIELDS:  # what it says is in the journal: it can wait for the request
            self._history_crc = crc32(message.id.encode(), self._history_crc)
            frame += b',"result":%d' % known[0]
            self.journal.hold_clean("message", frame, {"message": known[1]})
            self.stream.start_moment()
        else:
            self.write_message("message", frame + b',"result":%d' % known[0], message, known[1])

    def write_message(
        self, record: str, frame: bytes, message: Message, written: Message | JsonObject, **more: Json
    ) -> None:
        self._history_crc = crc32(message.id.encode(), self._history_crc)
        write = self.journal.write_clean if self._is_plain(written) else self.journal.write
        write(record, frame, {"message": written, **more})

    def _is_plain(self, written: Message | JsonObject) -> bool:
        return isinstance(written, AssistantMessage) and is_plain_reply(
            written, self.stream, self.journal.redactor
        )

    def take_batch(self, event: ToolBatchStarted) -> None:
        self.end_run()
        self.calls.begin_batch(event, self.frame(event.round))

    def take_tool_start(self, event: ToolExecutionRequest) -> None:
        if self.stream.pending:
            self.stream.close_run()
        self.calls.start(event, self.frame(event.round))
        self.stream.start_moment()

    def take_tool_end(self, event: ToolEnded) -> None:
        if event.error_code == NOT_STARTED:
            self.calls.end_unstarted(event, self.frame(event.round))
            return
        self.end_run()
        self.calls.end(event, self.frame(event.round))

    def take_decision(self, event: PermissionDecided) -> None:
        number, at = place_of(str(event.data["callId"]))
        frame = self.frame(number) + b',"index":%d' % at
        if not self.calls.decide(event, frame):
            self.end_run()
            self.journal.write(event.name, frame, decision_fields(event))

    def take_end(self, event: RunCompleted | RunInterrupted | RunFailed) -> None:
        self.end_run()
        fields: JsonObject = to_builtins(event)
        for known in ("event", "executionId", "seq"):
            fields.pop(known, None)
        if fields.get("text") == self._answer:
            del fields["text"]  # the last answer, which is in the journal
        self.journal.write("run_end", b',"run":%d,"outcome":"%s"' % (self._run, event.name.encode()), fields)
        self.sync()
        self._ended = type(event) is RunCompleted

    # --- what else there is ---------------------------------------------------------------------------

    def take_mark(self, event: CompactionMarked) -> None:
        self.end_run()
        self._history_crc = 0
        self.write_message("compaction_marked", b',"epoch":%d' % event.epoch, event.message, event.message)

    def take_data(self, event: Event) -> None:
        """An event whose fields are one object made by the session."""
        self.end_run()
        if isinstance(event, SessionInit):
            self._tools = event.data.get("toolSchemas")
        self.journal.write(event.name, b"", getattr(event, "data"))  # noqa: B009 - several types have it

    def take_any(self, event: Event) -> None:
        """An event that is written as it is."""
        self.end_run()
        fields: JsonObject = to_builtins(event)
        for known in ("event", "executionId", "seq", "conversationId", "round"):
            fields.pop(known, None)
        frame = self.frame(getattr(event, "round", 0)) if event.execution_id else b""
        self.journal.write(RECORD_NAMES.get(type(event), event.name), frame, fields)

    HANDLERS: ClassVar[HandlerTable]


RECORD_NAMES: dict[type[Event], str] = {ContextUpdated: "context"}

FileSessionLogger.HANDLERS = {
    TextDelta: FileSessionLogger.take_piece,
    ReasoningDelta: FileSessionLogger.take_piece,
    ToolInputDelta: FileSessionLogger.take_piece,
    ProviderNativeRawPayload: FileSessionLogger.take_piece,
    RunStarted: FileSessionLogger.take_start,
    ProviderRequest: FileSessionLogger.take_request,
    ProviderResponseRaw: FileSessionLogger.take_response,
    HistoryMutation: FileSessionLogger.take_message,
    ToolBatchStarted: FileSessionLogger.take_batch,
    ToolExecutionRequest: FileSessionLogger.take_tool_start,
    ToolEnded: FileSessionLogger.take_tool_end,
    RunCompleted: FileSessionLogger.take_end,
    RunInterrupted: FileSessionLogger.take_end,
    RunFailed: FileSessionLogger.take_end,
    CompactionMarked: FileSessionLogger.take_mark,
    SessionInit: FileSessionLogger.take_data,
    PreRun: FileSessionLogger.take_pre_run,
    HookExecuted: FileSessionLogger.take_data,
    PermissionDecided: FileSessionLogger.take_decision,
    UserAnswered: FileSessionLogger.take_data,
    ContextLoaded: FileSessionLogger.take_data,
    SummaryCalled: FileSessionLogger.take_any,
    SessionShutdown: FileSessionLogger.take_any,
    ServerToolUsed: FileSessionLogger.take_any,
    ProviderRetried: FileSessionLogger.take_any,
    Noticed: FileSessionLogger.take_any,
    ContextUpdated: FileSessionLogger.take_context,
    Compacted: FileSessionLogger.take_any,
}
