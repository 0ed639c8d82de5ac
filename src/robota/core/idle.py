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
    """Ends what is inside with `LateError` when either time is over.

    What `asyncio.timeout` does, in a third of its time: a timer that cancels the task, and an exit that tells
    this cancellation from those of others by counting.
    """

    __slots__ = ("_end", "_handle", "_idle", "_late", "_loop", "_requests", "_task", "_total", "last", "now")

    _handle: asyncio.Handle

    def __init__(self, idle: float | None, total: float | None) -> None:
        self._loop = loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None, "a deadline is for tasks"
        self._task = task
        self._requests = task.cancelling()
        self._idle = _NEVER if idle is None else idle
        self._total = _NEVER if total is None else total
        self._late: LateError | None = None
        self.now = loop.time
        self.last = now = loop.time()
        """When something was last heard; set it to `now()`."""
        self._end = now + self._total

    async def __aenter__(self) -> Self:
        # The timer is set by the first look, which comes when the task waits: the request is out by then.
        self._handle = self._loop.call_soon(self._look)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        late = self._late
        if late is not None and self._task.uncancel() <= self._requests and kind is asyncio.CancelledError:
            raise late from error

    def _look(self) -> None:
        now, silent = self.now(), self.last + self._idle
        if now >= silent:
            self._late = LateError("idle", self._idle)
        elif now >= self._end:
            self._late = LateError("total", self._total)
        else:
            self._handle = self._loop.call_at(min(self._end, silent), self._look)
            return
        self._task.cancel()


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
_NEVER = float("inf")
_UNLIMITED: nullcontext[None] = nullcontext()


def deadline(idle: float | None, total: float | None) -> Limit:
    """The deadline for a model call; a time that is `None`, infinite or not positive is no limit."""
    idle = idle if idle is not None and 0 < idle < _NEVER else None
    total = total if total is not None and 0 < total < _NEVER else None
    return _UNLIMITED if idle is None and total is None else Deadline(idle, total)
