"""Records on their way into a journal: redacted, what is large put aside, and nothing said twice.

What goes through `RecordWriter` is what a journal gets. A message stands there once, with what is left of its
stream and without what its result says; a call without what follows from the answer. The start of a call
waits a moment for the decision about it, which is mostly made before anything else can happen; the start of a
batch goes with the start of its first call. Pieces of a reply are written after a moment, when they are many,
and before other records.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from zlib import crc32

from msgspec import UNSET, Raw, Struct, convert
from msgspec.json import Decoder

from robota.core import events
from robota.core.events import TextDelta
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Message, SystemMessage, TokenUsage, ToolMessage
from robota.core.reply import usage_metadata
from robota.core.tool_call import place_of, result_metadata
from robota.sessions.journal import records
from robota.sessions.journal.decoding import parse_arguments
from robota.sessions.journal.pieces import Pieces
from robota.sessions.journal.port import SessionJournal
from robota.sessions.journal.stream_run import StreamPiece, StreamRun
from robota.sessions.redaction import Redactor

_decode_members = Decoder(dict[str, Raw]).decode
INLINE_LIMIT = 32 * 1024
"""Bytes of JSON a field may have in the line itself."""
RUN_SECONDS = 0.05
TAIL_SECONDS = 0.25
"""How long words may be seen by a user and wait here for those that tell whether they are secret."""
RUN_BYTES = 24 * 1024
"""Of text and of the provider's own bytes: less than what a record may have in its line."""


class RecordWriter(Struct, eq=False):
    """Writes records, each with the number of the last turn event that it and those before it tell of."""

    journal: SessionJournal
    redactor: Redactor
    event: int = 0
    run: int = 0
    """The number of the run under way."""

    def write(self, record: records.Record) -> int:
        """Append a record; its number."""
        record.ev = self.event
        repeated = isinstance(record, records.SessionBegan) or (
            isinstance(record, records.MessageRecord) and isinstance(record.message, SystemMessage)
        )
        return self._append(self.redactor.json(encode(record), repeated=repeated), hold=False)

    def write_clean(self, record: records.Record, *, hold: bool = False) -> int:
        """The same with one that holds nothing secret: it was looked at, or is our own.

        With `hold` it may wait for the next one.
        """
        record.ev = self.event
        return self._append(encode(record), hold=hold)

    def _append(self, encoded: bytes, *, hold: bool) -> int:
        if len(encoded) > INLINE_LIMIT:
            members: dict[str, Raw] = _decode_members(encoded)
            for name, value in members.items():
                if len(value) > INLINE_LIMIT:
                    members[name] = Raw(self.journal.put(bytes(value)))
            encoded = encode(members)
        return self.journal.append(encoded[1:], event=self.event, hold=hold)


class CallWriter(Struct, eq=False):
    _writer: RecordWriter
    _arguments: tuple[str, ...] = ()
    """Of each call of the last answer, as the model wrote them."""
    _results: list[tuple[str, records.CallEnded]] = []
    """Results without a message: the provider's id of the call, and the record."""
    _batch: records.BatchBegan | None = None
    _start: records.CallBegan | None = None
    """A call that was started and not decided about."""
    _start_event: int = 0
    batch_seq: int = 0
    """The record that tells of the batch under way, and thereby of the intent to run its calls."""

    def begin_answer(self, message: AssistantMessage) -> None:
        self._arguments = tuple(call.arguments for call in message.tool_calls)
        self._results = []

    def begin_batch(self, event: events.ToolBatchStarted) -> None:
        batch = records.Batch(mode=event.mode, max_concurrency=event.max_concurrency)
        self._batch = records.BatchBegan(run=self._writer.run, round=event.round, batch=batch)

    def start(self, event: events.ToolStarted) -> None:
        batch, self._batch = self._batch, None
        self.flush()
        at = place_of(event.call_id)[1]
        same = at < len(self._arguments) and parse_arguments(self._arguments[at]) == event.arguments
        self._start = records.CallBegan(
            run=self._writer.run,
            round=event.round,
            index=at,
            parameters=UNSET if same else event.arguments,
            batch=None if batch is None else batch.batch,
        )
        self._start_event = event.seq

    def decide(self, event: events.PermissionDecided) -> bool:
        """Write the decision together with the start of its call; false if that is written already."""
        start, place = self._start, place_of(str(event.data["callId"]))
        if start is None or (start.round, start.index) != place:
            return False
        start.verdict = convert(event.data, records.Verdict)
        self._write_start()
        return True

    def end(self, event: events.ToolEnded) -> None:
        record = self._result(event)
        simple = not event.metadata and event.error is None
        if simple and self._writer.redactor.are_plain((event.tool_name, event.content)):
            self._writer.write_clean(record)
        else:
            self._writer.write(record)

    def end_unstarted(self, event: events.ToolEnded) -> None:
        """A call that was never begun: its start, which was told for completeness, goes with its result."""
        record = self._result(event)
        start, self._start = self._start, None
        if start is not None:
            record.parameters, record.batch = start.parameters, start.batch
        self._writer.event = event.seq
        self._writer.write(record)

    def _result(self, event: events.ToolEnded) -> records.CallEnded:
        record = records.CallEnded(
            run=self._writer.run,
            round=event.round,
            index=place_of(event.call_id)[1],
            tool_name=event.tool_name,
            outcome=event.outcome,
            content=event.content,
            error=event.error,
            error_code=event.error_code,
            metadata=dict(event.metadata),
            duration=event.duration,
        )
        self._results.append((event.tool_call_id, record))
        return record

    def shorten(
        self, message: ToolMessage, index: int, round_number: int
    ) -> records.ToolMessageRecord | None:
        """What the message says beyond its recorded result; `None` without one."""
        found = next((each for each in self._results if each[0] == message.tool_call_id), None)
        if found is None:
            return None
        self._results.remove(found)
        ended = found[1]
        result, name = ended.to_result(), ended.tool_name
        metadata = result_metadata(result, name, ended.round)
        return records.ToolMessageRecord(
            run=self._writer.run,
            round=round_number,
            index=index,
            result=ended.index,
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
        verdict = start.verdict
        ordinary = start.parameters is UNSET and (verdict is None or verdict.answer is None)
        if ordinary and (verdict is None or self._writer.redactor.are_plain(verdict.texts(), repeated=True)):
            seq = self._writer.write_clean(start, hold=True)  # the record of the batch named all its calls
        else:
            seq = self._writer.write(start)
        if start.batch is not None:
            self.batch_seq = seq


class StreamWriter(Struct, eq=False):
    _writer: RecordWriter
    reply: StreamRun
    """The pieces that wait."""
    _also: Callable[[], None]
    """Writes what else waits, when the moment is over."""
    _timer: asyncio.TimerHandle | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    """Where the timer runs: a session may be used in one loop after another."""
    _size: int = 0
    _tail: str = ""
    """What was written last of words that wait."""
    _tail_timer: asyncio.TimerHandle | None = None

    def begin_reply(self) -> None:
        self.reply.begin_reply()
        if (self._timer or self._tail_timer) is not None and self._loop is not _running_loop():
            self._timer = self._tail_timer = None
        self._tail = ""

    def add(self, piece: StreamPiece) -> None:
        if type(piece) is TextDelta:
            if not piece.sequence:
                return  # the separator before every later round, which the loader knows about
            self._size += len(piece.text) + (len(piece.raw) if piece.raw is not None else 0)
        self.reply.pieces.append(piece)
        if self._size > RUN_BYTES:
            self._write(final=False)
        elif self._timer is None:
            self._start_timer()

    def close_run(self) -> None:
        """Write all of it, also what was held back.

        The timer stays: it finds nothing, or the beginning of the next reply a little early, and many short
        replies share one.
        """
        self._forget_tail()
        self._write(final=True)

    def take_rest(self) -> Pieces | None:
        """What is left of the reply, for the record of its message; `None` for nothing."""
        self._size = 0
        self._forget_tail()
        if not self.reply.pieces:
            return None
        rest = self.reply.take(final=True)
        if rest is not None:
            self._writer.event = self.reply.reached
        return rest

    def take_unwritten(self) -> list[StreamPiece]:
        """Write what may be written; what the journal then still lacks, because a secret may begin in it."""
        self._write(final=False)
        return list(self.reply.pieces)

    def start_moment(self) -> None:
        """Something else waits: see that the time runs."""
        if self._timer is None:
            self._start_timer()

    def stop(self) -> None:
        self._forget_tail()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_tail(self) -> None:
        """Nothing waits any more."""
        if self._tail_timer is not None:
            self._tail_timer.cancel()
            self._tail_timer = None

    def _start_timer(self) -> None:
        self._loop = loop = _running_loop()
        if loop is None:  # outside any loop nothing would ever end the moment
            self._end_moment(final=True)
        else:
            self._timer = loop.call_later(RUN_SECONDS, self._end_moment)

    def _end_moment(self, *, final: bool = False) -> None:
        self._timer = None
        self._write(final=final)
        self._also()
        self._writer.journal.release()
        if self.reply.pieces and self._tail_timer is None and self._loop is not None:
            self._tail_timer = self._loop.call_later(TAIL_SECONDS - RUN_SECONDS, self._write_tail)

    def _write_tail(self) -> None:
        """Have what a user sees on record, although it is not clear yet how it will be written in the end."""
        self._tail_timer = None
        self._write(final=False)
        tail = self.reply.tail()
        if tail and tail != self._tail:
            number = self.reply.pieces[0].round
            rest = Pieces(tail=tail)
            self._writer.write_clean(records.Stream(run=self._writer.run, round=number, pieces=rest))
            self._writer.journal.release()
        self._tail = tail

    def _write(self, *, final: bool) -> None:
        self._size = 0
        reply = self.reply
        if not reply.pieces:
            return
        number = reply.pieces[0].round
        pieces = reply.take(final=final)
        if pieces is not None:
            self._writer.event = reply.reached
            self._writer.write_clean(records.Stream(run=self._writer.run, round=number, pieces=pieces))


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


ORDINARY_METADATA = frozenset(
    ("model", "responseId", "stopReason", "stopDetail", *usage_metadata(TokenUsage(1, 1, 1, 1, 1)))
)
"""What nearly every reply brings; none of it is the name of a secret."""


class MessageWriter(Struct, eq=False):
    _writer: RecordWriter
    _stream: StreamWriter
    _calls: CallWriter
    crc: int = 0
    """The running checksum of the ids of all messages since the model's view began."""
    answer: str = ""
    """The words of the last answer."""
    response: events.ProviderResponseRaw | None = None
    """A reply whose message has not come yet."""

    def is_reply(self, message: Message) -> bool:
        return self.response is not None and self.response.response is message

    def write(self, event: events.HistoryMutation, rest: Pieces | None) -> None:
        """`rest` is what was not written of the stream of a reply."""
        message, replied = event.message, self.is_reply(event.message)
        response, self.response = self.response, None
        self.crc = crc32(message.id.encode(), self.crc)
        if isinstance(message, ToolMessage) and self._write_result(message, event):
            return
        if isinstance(message, AssistantMessage):
            self.answer = message.content
            self._calls.begin_answer(message)
        record = records.MessageRecord(
            run=self._writer.run,
            round=event.round,
            index=event.index,
            message=message,
            reply=replied,
            rest=rest,
        )
        if response is not None and replied and response.error is not None:
            record.error = dict(response.error)
        if replied and isinstance(message, AssistantMessage) and self._is_plain(message):
            self._writer.write_clean(record)
        else:
            self._writer.write(record)

    def write_empty(self, event: events.ProviderResponseRaw, rest: Pieces | None) -> None:
        record = records.EmptyReply(
            run=self._writer.run, round=event.round, message=event.response, rest=rest
        )
        record.error = None if event.error is None else dict(event.error)
        self._writer.write(record)

    def _write_result(self, message: ToolMessage, event: events.HistoryMutation) -> bool:
        record = self._calls.shorten(message, event.index, event.round)
        if record is None:
            return False
        if record.content is None and record.metadata is None and not record.parts:
            self._writer.write_clean(record, hold=True)  # what it says is in the journal: it can wait
            self._stream.start_moment()
        else:
            self._writer.write(record)
        return True

    def _is_plain(self, message: AssistantMessage) -> bool:
        """Whether a reply is known to be without secrets: by what its stream has shown, and by its facts. To
        look at a whole record costs more than to write it."""
        if not self._stream.reply.has_shown(message) or not message.metadata.keys() <= ORDINARY_METADATA:
            return False
        words = [str(fact) for fact in message.metadata.values() if type(fact) is not int]
        for call in message.tool_calls:
            words += (call.id, call.name)
        return self._writer.redactor.are_plain(words)
