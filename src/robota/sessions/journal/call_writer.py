"""The calls of an answer in the journal: what follows from what stands there already is not said again.

The start of a call waits a moment for the decision about it, which is mostly made before anything else can
happen; the start of a batch goes with the start of its first call.
"""

from __future__ import annotations

from robota.core.events import PermissionDecided, ToolBatchStarted, ToolEnded, ToolExecutionRequest
from robota.core.messages import AssistantMessage, JsonObject, ToolMessage
from robota.sessions.journal.journal import Journal
from robota.sessions.journal.tool_record import parse_arguments, result_fields, tool_message_fields


class CallWriter:
    __slots__ = ("_arguments", "_batch", "_journal", "_results", "_start", "batch_seq")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._arguments: tuple[str, ...] = ()
        """Of each call of the last answer, as the model wrote them."""
        self._results: dict[int, ToolEnded] = {}
        self._batch: tuple[bytes, JsonObject] | None = None
        self._start: tuple[bytes, JsonObject] | None = None
        """Frame and fields of a call that was started and not decided about."""
        self.batch_seq = 0
        """The record that tells of the batch under way, and thereby of the intent to run its calls."""

    def begin_answer(self, message: AssistantMessage) -> None:
        self._arguments = tuple(call.arguments for call in message.tool_calls)
        self._results = {}

    def begin_batch(self, event: ToolBatchStarted, frame: bytes) -> None:
        mode = None if event.mode == "parallel" else event.mode
        batch = {"mode": mode, "maxConcurrency": event.max_concurrency}
        self._batch = frame, {name: value for name, value in batch.items() if value is not None}

    def start(self, event: ToolExecutionRequest, frame: bytes) -> None:
        batch, self._batch = self._batch, None
        self.flush()
        at = event.index
        same = at < len(self._arguments) and parse_arguments(self._arguments[at]) == event.parameters
        fields = {
            "batch": None if batch is None else batch[1],
            "parameters": None if same else event.parameters,
        }
        self._start = b'%s,"index":%d' % (frame, at), fields

    def decide(self, event: PermissionDecided, frame: bytes) -> bool:
        """Write the decision together with the start of its call; false if that is written already."""
        if self._start is None or self._start[0] != frame:
            return False
        self._write_start(decision_fields(event))
        return True

    def end_unstarted(self, event: ToolEnded, frame: bytes) -> None:
        """A call that was never begun: its start, which was told for completeness, goes with its result."""
        assert self._start is not None
        (frame, start), self._start = self._start, None
        self._results[place_of(event.call_id)[1]] = event
        self._journal.write("tool_result", frame, {**start, **result_fields(event)})

    def end(self, event: ToolEnded, frame: bytes) -> None:
        at = place_of(event.call_id)[1]
        self._results[at] = event
        simple = not event.metadata and event.error is None
        plain = simple and self._journal.redactor.are_plain((event.tool_name, event.content))
        write = self._journal.write_clean if plain else self._journal.write
        write("tool_result", b'%s,"index":%d' % (frame, at), result_fields(event))

    def shorten(self, message: ToolMessage) -> tuple[int, JsonObject] | None:
        """Index of the result that the message tells, and what the message says beyond it."""
        for at, result in self._results.items():
            if result.tool_call_id == message.tool_call_id:
                del self._results[at]
                if not self._results:
                    self._results = {}  # an emptied table keeps its size
                return at, tool_message_fields(message, result)
        return None

    def flush(self) -> None:
        """Write what waits."""
        if self._batch is not None:  # no call of it was started
            (frame, fields), self._batch = self._batch, None
            self.batch_seq = self._journal.write("tool_batch_started", frame, fields)
        if self._start is not None:
            self._write_start(None)

    def _write_start(self, decided: JsonObject | None) -> None:
        assert self._start is not None
        (frame, fields), self._start = self._start, None
        seq = self._journal.write("tool_start", frame, {**fields, "decided": decided})
        if fields["batch"] is not None:
            self.batch_seq = seq


def decision_fields(event: PermissionDecided) -> JsonObject:
    """A decision without what its call says, and without what is as usual."""
    usual: JsonObject = {"decision": "allow", "rules": [], "answer": None}
    return {
        name: value
        for name, value in event.data.items()
        if name not in ("callId", "toolName") and (name not in usual or usual[name] != value)
    }


def place_of(call_id: str) -> tuple[int, int]:
    """Round and index of a call, from its id `<execution>-r<round>-<index>`."""
    batch, _, at = call_id.rpartition("-")
    return int(batch.rpartition("-r")[2]), int(at)
