"""The calls of an answer in the journal: what follows from what stands there already is not said again.

The start of a call waits a moment for the decision about it, which is mostly made before anything else can
happen; the start of a batch goes with the start of its first call.
"""

from __future__ import annotations

from msgspec import UNSET, convert

from robota.core.events import PermissionDecided, ToolBatchStarted, ToolEnded, ToolStarted
from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage, Json, ToolMessage
from robota.core.tool_call import place_of, result_metadata
from robota.sessions.journal.records import (
    Batch,
    BatchBegan,
    CallBegan,
    CallEnded,
    Decision,
    ToolMessageRecord,
    Verdict,
)
from robota.sessions.journal.writer import RecordWriter


class CallWriter:
    __slots__ = ("_arguments", "_batch", "_results", "_start", "_start_event", "_writer", "batch_seq", "run")

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer
        self._arguments: tuple[str, ...] = ()
        """Of each call of the last answer, as the model wrote them."""
        self._results: dict[int, tuple[str, CallEnded]] = {}
        """Results without a message: the provider's id of the call, and the record."""
        self._batch: BatchBegan | None = None
        self._start: CallBegan | None = None
        """A call that was started and not decided about."""
        self._start_event = 0
        self.batch_seq = 0
        """The record that tells of the batch under way, and thereby of the intent to run its calls."""
        self.run = 0
        """The number of the run."""

    def begin_answer(self, message: AssistantMessage) -> None:
        self._arguments = tuple(call.arguments for call in message.tool_calls)
        self._results = {}

    def begin_batch(self, event: ToolBatchStarted) -> None:
        batch = Batch(mode=event.mode, max_concurrency=event.max_concurrency)
        self._batch = BatchBegan(run=self.run, round=event.round, batch=batch)

    def start(self, event: ToolStarted) -> None:
        batch, self._batch = self._batch, None
        self.flush()
        at = place_of(event.call_id)[1]
        same = at < len(self._arguments) and parse_arguments(self._arguments[at]) == event.arguments
        self._start = CallBegan(
            run=self.run,
            round=event.round,
            index=at,
            parameters=UNSET if same else event.arguments,
            batch=None if batch is None else batch.batch,
        )
        self._start_event = event.seq

    def decide(self, event: PermissionDecided) -> bool:
        """Write the decision together with the start of its call; false if that is written already."""
        start, place = self._start, place_of(str(event.data["callId"]))
        if start is None or (start.round, start.index) != place:
            return False
        start.verdict = read_verdict(event)
        self._write_start()
        return True

    def end(self, event: ToolEnded) -> None:
        record = self._result(event)
        simple = not event.metadata and event.error is None
        if simple and self._writer.redactor.are_plain((event.tool_name, event.content)):
            self._writer.write_clean(record)
        else:
            self._writer.write(record)

    def end_unstarted(self, event: ToolEnded) -> None:
        """A call that was never begun: its start, which was told for completeness, goes with its result."""
        record = self._result(event)
        start, self._start = self._start, None
        if start is not None:
            record.parameters, record.batch = start.parameters, start.batch
        self._writer.event = event.seq
        self._writer.write(record)

    def _result(self, event: ToolEnded) -> CallEnded:
        at = place_of(event.call_id)[1]
        record = CallEnded(
            run=self.run,
            round=event.round,
            index=at,
            tool_name=event.tool_name,
            outcome=event.outcome,
            content=event.content,
            error=event.error,
            error_code=event.error_code,
            metadata=dict(event.metadata),
            duration=event.duration,
        )
        self._results[at] = event.tool_call_id, record
        return record

    def shorten(self, message: ToolMessage, index: int, round_number: int) -> ToolMessageRecord | None:
        """What the message says beyond its recorded result; `None` without one."""
        found = (at for at, (call_id, _) in self._results.items() if call_id == message.tool_call_id)
        at = next(found, None)
        if at is None:
            return None
        ended = self._results.pop(at)[1]
        if not self._results:
            self._results = {}  # an emptied table keeps its size
        result, name = ended.to_result(), ended.tool_name
        metadata = result_metadata(result, name, ended.round)
        return ToolMessageRecord(
            run=self.run,
            round=round_number,
            index=index,
            result=at,
            id=message.id,
            sent_at=message.timestamp,
            tool_name=None if message.name == name else message.name,
            content=None if message.content == result.text else message.content,
            metadata=None if message.metadata == metadata else dict(message.metadata),
            parts=message.parts,
        )

    def flush(self) -> None:
        """Write what waits."""
        if self._batch is not None:  # no call of it was started
            batch, self._batch = self._batch, None
            self.batch_seq = self._writer.write_clean(batch)
        if self._start is not None:
            self._write_start()

    def _write_start(self) -> None:
        assert self._start is not None
        start, self._start = self._start, None
        self._writer.event = self._start_event
        seq = self._writer.write(start)
        if start.batch is not None:
            self.batch_seq = seq


def read_verdict(event: PermissionDecided) -> Verdict:
    return convert(event.data, Verdict)


def decision_record(event: PermissionDecided, run: int) -> Decision:
    number, at = place_of(str(event.data["callId"]))
    return Decision(run=run, round=number, index=at, verdict=read_verdict(event))


def parse_arguments(arguments: str) -> Json:
    """The arguments of a call as values; `None` for what is no JSON."""
    try:
        return decode(arguments)
    except ValueError:
        return None
