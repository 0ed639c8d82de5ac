"""Decides when pieces of a reply are written: after a moment, when they are many, before other records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.events import TextDelta
from robota.sessions.journal import Journal
from robota.sessions.stream_run import StreamPiece, StreamRun

if TYPE_CHECKING:
    from asyncio import TimerHandle

RUN_SECONDS = 0.05
RUN_BYTES = 24 * 1024
"""Of text and of the provider's own bytes: less than what a record may have in its line."""


class StreamWriter:
    __slots__ = ("_journal", "_run", "_size", "_stream", "_timer")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._stream = StreamRun(journal.redactor)
        self._timer: TimerHandle | None = None
        self._size = 0
        self._run = 0

    @property
    def pending(self) -> bool:
        return self._timer is not None or bool(self._stream.pieces)

    def begin_reply(self) -> None:
        self._stream.begin_reply()

    def has_written(self, content: str) -> bool:
        """Whether the text of the reply stands in the journal word for word."""
        return self._stream.has_written(content)

    def add(self, piece: StreamPiece, run: int) -> None:
        """Take a piece of the reply in the run of that number."""
        if type(piece) is TextDelta:
            if not piece.sequence:
                return  # the separator before every later round, which the loader knows about
            self._size += len(piece.text) + (len(piece.raw) if piece.raw is not None else 0)
        self._stream.pieces.append(piece)
        if self._size > RUN_BYTES:
            self._run = run
            self._write(final=False)
        elif self._timer is None:
            self._run = run
            self._start_timer()

    def close_run(self, run: int) -> None:
        """Write all of it, also what was held back."""
        self._run = run
        self._write(final=True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        import asyncio  # noqa: PLC0415 - a run is under way, so this is a look-up

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a piece from outside any loop: nothing would ever close the run
            self._write(final=True)
            return
        self._timer = loop.call_later(RUN_SECONDS, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._write(final=False)

    def _write(self, *, final: bool) -> None:
        self._size = 0
        stream = self._stream
        if not stream.pieces:
            return
        frame = b',"run":%d,"round":%d' % (self._run, stream.pieces[0].round)
        fields = stream.take(final=final)
        if fields is not None:
            self._journal.write_clean("stream", frame, fields)
