"""The one who writes lines to a file: whole, in order, and without keeping anybody waiting.

Frames come from turns, answers and background tasks at once. A reader who does not read blocks a thread of
the writer's own, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from robota.core.messages import JsonObject
from robota.transports.wire import encode_line


class LineWriter:
    """Writes to a file descriptor, from the loop in which it was made."""

    def __init__(self, fd: int, on_broken: Callable[[str], None] = lambda why: None) -> None:
        """`on_broken` is called once, in the loop, when nothing can be written any more."""
        self._fd = fd
        self._on_broken = on_broken
        self._lines: SimpleQueue[bytes | asyncio.Event | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread: Thread | None = None
        self.broken: str | None = None
        """Why nothing can be written any more; empty for a reader who left."""

    def send(self, frame: JsonObject) -> None:
        self.write(encode_line(frame))

    def write(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._work, name="robota-lines", daemon=True)
            self._thread.start()
        self._lines.put(data)

    async def drain(self) -> None:
        """Wait until all that was sent is written, or cannot be."""
        if self._thread is not None and self.broken is None:
            written = asyncio.Event()
            self._lines.put(written)
            await written.wait()

    def _work(self) -> None:
        while True:
            item = self._lines.get()
            if isinstance(item, asyncio.Event):
                self._call(item.set)
            elif item is not None and self.broken is None:
                self._write(item)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            self.broken = "" if isinstance(error, BrokenPipeError) else error.strerror or str(error)
            self._call(lambda: self._on_broken(self.broken or ""))

    def _call(self, action: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            self.broken = self.broken or ""  # the loop is closed: nobody waits any more
