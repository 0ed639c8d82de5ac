"""A limit on how long a model may be silent, and on how long it may take, cheap enough for every chunk.

One `call_later` is re-armed lazily from the time of the last chunk. A deadline scope per chunk would cost
more than everything else the engine does with a delta.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from types import TracebackType
from typing import Literal, Self, TypeAlias

from robota.core.errors import ProviderError


class Deadline:
    """Ends what is inside with `LateError` when either time is over."""

    __slots__ = ("_handle", "_idle", "_loop", "_silent", "_timeout", "_total", "last", "now")

    def __init__(self, idle: float | None, total: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle = idle
        self._total = total
        self._silent = False
        self._handle: asyncio.TimerHandle | None = None
        self._timeout = asyncio.timeout(total)
        self.now = self._loop.time
        self.last = self.now()
        """When something was last heard; set it to `now()`."""

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        if self._idle is not None:
            self._handle = self._loop.call_later(self._idle, self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            self._handle.cancel()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as late:
            why, seconds = ("idle", self._idle) if self._silent else ("total", self._total)
            raise LateError(why, seconds or 0.0) from late

    def _look(self) -> None:
        assert self._idle is not None
        due = self.last + self._idle
        if self.now() >= due:
            self._silent = True
            self._timeout.reschedule(self.now())
        else:
            self._handle = self._loop.call_at(due, self._look)


class LateError(Exception):
    """The time is over."""

    def __init__(self, kind: Literal["idle", "total"] | str, seconds: float) -> None:
        super().__init__(kind, seconds)
        self.kind = kind
        self.seconds = seconds

    def of(self, provider: str) -> ProviderError:
        """The same as an error of the provider that took too long."""
        what = "sent nothing" if self.kind == "idle" else "was still answering"
        return ProviderError(
            f"Provider call {self.kind} timeout after {self.seconds:g}s: {provider} {what}. "
            f"Try again, or raise the {self.kind} timeout.",
            provider=provider,
        )


Limit: TypeAlias = Deadline | nullcontext[None]
_UNLIMITED: nullcontext[None] = nullcontext()


def deadline(idle: float | None, total: float | None) -> Limit:
    """The deadline for a model call; a time that is `None`, infinite or not positive is no limit."""
    if idle is not None or total is not None:
        idle, total = _usable(idle), _usable(total)
    return _UNLIMITED if idle is None and total is None else Deadline(idle, total)


def _usable(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 < seconds < float("inf") else None
