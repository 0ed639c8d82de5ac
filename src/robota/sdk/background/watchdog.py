"""Ends a task that is silent, takes too long, says too much or only repeats itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from robota.core.background import ErrorCategory, StopCause, TaskFailure


class WatchdogLimits(Struct, frozen=True, kw_only=True):
    """What an agent in the background may do; 0 is no limit."""

    idle: float = 240.0
    """Seconds without a sign of life. A call under way and an open question count as one: calls have time
    limits of their own, and people may take their time."""
    max_runtime: float = 0.0
    output_bytes: int = 256_000
    deltas: int = 20_000
    repetition_window: int = 800
    """Characters at the end of what was said that are looked at."""
    repetition_threshold: int = 8
    """How often the same words may fill that window."""


class Watchdog:
    """Watches over one task, from `begin` to `end`."""

    __slots__ = ("_bytes", "_deltas", "_held", "_last", "_limits", "_looked", "_stop", "_tail", "_timers")

    def __init__(self, limits: WatchdogLimits, stop: Callable[[TaskFailure], object]) -> None:
        self._limits = limits
        self._stop = stop
        self._held = 0
        self._last = 0.0
        self._bytes = self._deltas = self._looked = 0
        self._tail = ""
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def begin(self) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        self._last = loop.time()
        if limits.idle > 0:
            self._timers["idle"] = loop.call_later(limits.idle, self._look)
        if limits.max_runtime > 0:
            what = f"It ran longer than {limits.max_runtime:g} seconds."
            self._timers["run"] = loop.call_later(
                limits.max_runtime, self._bark, "timeout", what, "max_runtime"
            )

    def end(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def hear(self) -> None:
        """A sign of life."""
        self._last = asyncio.get_running_loop().time()

    def hold(self) -> None:
        """Something is under way that may be silent."""
        self._held += 1

    def release(self) -> None:
        self._held = max(self._held - 1, 0)
        self.hear()

    def read(self, text: str) -> None:
        """What the agent said next."""
        self.hear()
        limits = self._limits
        self._deltas += 1
        self._bytes += len(text.encode("utf-8", "replace"))
        if 0 < limits.output_bytes < self._bytes:
            self._bark("runner", f"It said more than {limits.output_bytes:,} bytes.", "output_limit")
        elif 0 < limits.deltas < self._deltas:
            self._bark("runner", f"It said more than {limits.deltas:,} pieces of text.", "output_limit")
        elif limits.repetition_window > 0 and limits.repetition_threshold > 0:
            self._mind_repetition(text)

    def _mind_repetition(self, text: str) -> None:
        window, longest = (
            self._limits.repetition_window,
            self._limits.repetition_window // self._limits.repetition_threshold,
        )
        self._tail = (self._tail + text)[-window:]
        self._looked += len(text)
        if len(self._tail) < window or self._looked < longest:  # a look for each unit is often enough
            return
        self._looked = 0
        tail = self._tail
        if any(tail[length:] == tail[:-length] for length in range(1, longest + 1)):
            self._bark("runner", "It said the same again and again.", "repetition")

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due = (loop.time() if self._held else self._last) + self._limits.idle
        if loop.time() >= due:
            self._bark("timeout", f"It gave no sign of life for {self._limits.idle:g} seconds.", "idle")
        else:
            self._timers["idle"] = loop.call_at(due, self._look)

    def _bark(self, category: ErrorCategory, message: str, reason: StopCause) -> None:
        self.end()
        self._stop(TaskFailure(category=category, message=message, reason=reason))
