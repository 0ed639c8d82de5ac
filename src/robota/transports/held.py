"""Something that is opened when it is first needed, and held open until everybody is done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

T = TypeVar("T")


class Held(Generic[T]):
    """One task opens it, waits, and closes it: what it holds may belong to that task."""

    def __init__(self, open: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._open = open
        self._made: asyncio.Future[T] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @property
    def begun(self) -> bool:
        return self._made is not None

    @property
    def now(self) -> T | None:
        """What it is, if it is open."""
        made = self._made
        return made.result() if made is not None and made.done() and made.exception() is None else None

    async def get(self) -> T:
        """What was opened; raises what kept it from that."""
        return await asyncio.shield(self.begin())

    def begin(self) -> asyncio.Future[T]:
        """Have it opened, if nobody has yet."""
        if self._made is None:
            self._made = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._made))
        return self._made

    async def _keep(self, made: asyncio.Future[T]) -> None:
        try:
            async with self._open() as value:
                made.set_result(value)
                await self._closing.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)
            made.exception()  # it may be that nobody asks

    async def close(self) -> None:
        """End it in good order; raises what went wrong with that."""
        self._closing.set()
        if self._keeper is None or self._made is None:
            return
        if not self._made.done():
            self._keeper.cancel()
        await asyncio.wait((self._keeper,))
        if not self._keeper.cancelled() and (error := self._keeper.exception()) is not None:
            raise error
