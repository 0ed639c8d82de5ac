"""Decides when pieces of a reply are written: after a moment, when they are many, before other records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from robota.core.events import TextDelta
from robota.core.messages import AssistantMessage
from robota.sessions.journal.pieces import Pieces
from robota.sessions.journal.records import Stream
from robota.sessions.journal.stream_run import StreamPiece, StreamRun
from robota.sessions.journal.writer import RecordWriter

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

RUN_SECONDS = 0.05
TAIL_SECONDS = 0.25
"""How long words may be seen by a user and wait here for those that tell whether they are secret."""
RUN_BYTES = 24 * 1024
"""Of text and of the provider's own bytes: less than what a record may have in its line."""


class StreamWriter:
    __slots__ = ("_also", "_loop", "_size", "_stream", "_tail", "_tail_timer", "_timer", "_writer")

    def __init__(self, writer: RecordWriter, also: Callable[[], None]) -> None:
        """`also` writes what else waits, when the moment is over."""
        self._writer = writer
        self._also = also
        self._stream = StreamRun(writer.redactor)
        self._timer: TimerHandle | None = None
        self._loop: AbstractEventLoop | None = None
        """Where the timer runs: a session may be used in one loop after another."""
        self._size = 0
        self._tail = ""
        """What was written last of words that wait."""
        self._tail_timer: TimerHandle | None = None

    @property
    def pending(self) -> bool:
        return bool(self._stream.pieces)

    def begin_reply(self) -> None:
        self._stream.begin_reply()
        if (self._timer or self._tail_timer) is not None and self._loop is not _running_loop():
            self._timer = self._tail_timer = None
        self._tail = ""

    def has_shown(self, message: AssistantMessage) -> bool:
        """Whether what the model wrote of this message stands in the journal word for word."""
        return self._stream.has_shown(message)

    def add(self, piece: StreamPiece) -> None:
        if type(piece) is TextDelta:
            if not piece.sequence:
                return  # the separator before every later round, which the loader knows about
            self._size += len(piece.text) + (len(piece.raw) if piece.raw is not None else 0)
        self._stream.pieces.append(piece)
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
        if not self._stream.pieces:
            return None
        rest = self._stream.take(final=True)
        if rest is not None:
            self._writer.event = self._stream.reached
        return rest

    def take_unwritten(self) -> list[StreamPiece]:
        """Write what may be written; what the journal then still lacks, because a secret may begin in it."""
        self._write(final=False)
        return list(self._stream.pieces)

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
        if self._stream.pieces and self._tail_timer is None and self._loop is not None:
            self._tail_timer = self._loop.call_later(TAIL_SECONDS - RUN_SECONDS, self._write_tail)

    def _write_tail(self) -> None:
        """Have what a user sees on record, although it is not clear yet how it will be written in the end."""
        self._tail_timer = None
        self._write(final=False)
        tail = self._stream.tail()
        if tail and tail != self._tail:
            number = self._stream.pieces[0].round
            self._writer.write_clean(Stream(run=self._writer.run, round=number, pieces=Pieces(tail=tail)))
            self._writer.journal.release()
        self._tail = tail

    def _write(self, *, final: bool) -> None:
        self._size = 0
        stream = self._stream
        if not stream.pieces:
            return
        number = stream.pieces[0].round
        pieces = stream.take(final=final)
        if pieces is not None:
            self._writer.event = stream.reached
            self._writer.write_clean(Stream(run=self._writer.run, round=number, pieces=pieces))


def _running_loop() -> AbstractEventLoop | None:
    import asyncio  # noqa: PLC0415 - mostly a run is under way, and this is a look-up

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
