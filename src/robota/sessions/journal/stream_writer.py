"""Decides when pieces of a reply are written: after a moment, when they are many, before other records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Raw

from robota.core.events import TextDelta
from robota.core.messages import AssistantMessage, JsonObject
from robota.sessions.journal.journal import Journal
from robota.sessions.journal.stream_run import StreamPiece, StreamRun

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

RUN_SECONDS = 0.05
RUN_BYTES = 24 * 1024
"""Of text and of the provider's own bytes: less than what a record may have in its line."""


class StreamWriter:
    __slots__ = ("_also", "_journal", "_loop", "_run", "_size", "_stream", "_timer")

    def __init__(self, journal: Journal, also: Callable[[], None]) -> None:
        """`also` writes what else waits, when the moment is over."""
        self._journal = journal
        self._also = also
        self._stream = StreamRun(journal.redactor)
        self._timer: TimerHandle | None = None
        self._loop: AbstractEventLoop | None = None
        """Where the timer runs: a session may be used in one loop after another."""
        self._size = 0
        self._run = 0

    @property
    def pending(self) -> bool:
        return bool(self._stream.pieces)

    def begin_reply(self, run: int) -> None:
        """A reply in the run of that number follows."""
        self._run = run
        self._stream.begin_reply()
        if self._timer is not None and self._loop is not _running_loop():
            self._timer = None

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
        self._write(final=True)

    def take_rest(self) -> JsonObject | None:
        """What is left of the reply, for the record of its message; `None` for nothing."""
        self._size = 0
        fields = self._stream.take(final=True) if self._stream.pieces else None
        if fields is None:
            return None
        given = {name: value for name, value in fields.items() if value is not None}
        if "native" in given:
            given["native"] = Raw(given["native"])
        return given

    def start_moment(self) -> None:
        """Something else waits: see that the time runs."""
        if self._timer is None:
            self._start_timer()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start_timer(self) -> None:
        self._loop = loop = _running_loop()
        if loop is None:  # outside any loop nothing would ever end the moment
            self._write(final=True)
            self._also()
            self._journal.file.release()
        else:
            self._timer = loop.call_later(RUN_SECONDS, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._write(final=False)
        self._also()
        self._journal.file.release()

    def _write(self, *, final: bool) -> None:
        self._size = 0
        stream = self._stream
        if not stream.pieces:
            return
        frame = b',"run":%d,"round":%d' % (self._run, stream.pieces[0].round)
        fields = stream.take(final=final)
        if fields is not None:
            self._journal.write_clean("stream", frame, fields)


def _running_loop() -> AbstractEventLoop | None:
    import asyncio  # noqa: PLC0415 - mostly a run is under way, and this is a look-up

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
