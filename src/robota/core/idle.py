"""A timer that fires when nothing happened for a while, cheap enough to be touched at every chunk.

One `call_later` is re-armed lazily from the time of the last touch. A deadline scope per chunk would cost
more than everything else the engine does with a delta.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class IdleTimer:
    __slots__ = ("_handle", "_loop", "_on_idle", "_seconds", "fired", "last", "now")

    def __init__(self, seconds: float, on_idle: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._on_idle = on_idle
        self.now = self._loop.time
        self.last = self.now()
        """When something last happened; set it to `now()`."""
        self.fired = False
        self._handle = self._loop.call_later(seconds, self._look)

    def cancel(self) -> None:
        self._handle.cancel()

    def _look(self) -> None:
        due = self.last + self._seconds
        if self.now() >= due:
            self.fired = True
            self._on_idle()
        else:
            self._handle = self._loop.call_at(due, self._look)
