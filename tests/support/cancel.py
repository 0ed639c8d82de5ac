"""Cancellation injected at the k-th await of a run, whichever of its tasks makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine that reports each of its suspensions."""

    def __init__(self, inner: Coroutine[Any, Any, Any], on_await: Callable[[], None]) -> None:
        self._inner = inner
        self._on_await = on_await

    def send(self, value: Any) -> Any:
        suspended = self._inner.send(value)
        self._on_await()
        return suspended

    def throw(self, *args: Any) -> Any:
        suspended = self._inner.throw(*args)
        self._on_await()
        return suspended

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Any:
        return self._inner.__await__()


class AwaitCounter:
    """Counts the awaits of everything started inside `run`; at number `at` it calls `action` once."""

    def __init__(self, at: int, action: Callable[[], None]) -> None:
        self.count = 0
        self._at = at
        self._action = action

    def _on_await(self) -> None:
        self.count += 1
        if self.count == self._at:
            self._action()

    @property
    def reached(self) -> bool:
        return self.count >= self._at

    async def run(self, work: Callable[[], Awaitable[Any]]) -> asyncio.Task[Any]:
        """Run the work as a task of its own and return it, done."""
        loop = asyncio.get_running_loop()

        async def body() -> Any:
            return await work()

        def factory(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
            return asyncio.Task(_Counted(coro, self._on_await), loop=loop, **options)

        loop.set_task_factory(factory)
        try:
            self.task = loop.create_task(body())
            await asyncio.wait([self.task])
        finally:
            loop.set_task_factory(None)
        return self.task
