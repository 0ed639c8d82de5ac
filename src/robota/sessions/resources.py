"""What a session owns besides its journal: entered in one task, left in the same, in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec import Struct

from robota.core.errors import SessionBusyError, describe_exception
from robota.core.run_task import is_cancelled

T = TypeVar("T")
CLOSING_SECONDS = 5.0
"""How long each resource may take to close."""


class Resources(Struct, eq=False):
    """Async context managers that live as long as a session.

    Some hold task groups, which must be left in the task that entered them; the tasks of a run come and go.
    So one task of our own enters and leaves all of them.
    """

    _notice: Callable[[str], None]
    """Told what could not be closed."""
    _entered: list[AbstractAsyncContextManager[Any]] = []
    children: dict[str, AbstractAsyncContextManager[Any]] = {}
    """Sessions below this one, by name, as long as they are open."""
    _wanted: asyncio.Queue[_Wanted | None] | None = None
    _owner: asyncio.Task[None] | None = None
    _closed: bool = False

    async def own(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter the manager and keep it until the session ends."""
        if self._closed:
            raise SessionBusyError("The session was shut down: it takes nothing more.")
        queue = self._start()
        entered = asyncio.get_running_loop().create_future()
        queue.put_nowait((manager, entered))
        value: T = await entered
        return value

    async def aclose(self) -> None:
        """Leave everything, children first, then the last first; what fails or takes too long is told."""
        self._closed = True
        if not self.children and self._owner is None:
            return
        self._start().put_nowait(None)
        assert self._owner is not None
        await asyncio.wait((self._owner,))

    def _start(self) -> asyncio.Queue[_Wanted | None]:
        if self._wanted is None:
            self._wanted = asyncio.Queue()
            self._owner = asyncio.create_task(self._hold(self._wanted), name="session resources")
        return self._wanted

    async def _hold(self, wanted: asyncio.Queue[_Wanted | None]) -> None:
        while (item := await wanted.get()) is not None:
            manager, entered = item
            try:
                value = await manager.__aenter__()
            except (Exception, asyncio.CancelledError) as error:
                if is_cancelled():
                    raise
                if not entered.done():
                    entered.set_exception(error)
                continue
            if entered.done():  # whoever wanted it is gone
                await self._leave(manager)
            else:
                self._entered.append(manager)
                entered.set_result(value)
        self._entered += self.children.values()
        while self._entered:
            await self._leave(self._entered.pop())

    async def _leave(self, manager: AbstractAsyncContextManager[Any]) -> None:
        what = type(manager).__name__
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await manager.__aexit__(None, None, None)
        except TimeoutError:
            self._notice(f"{what} did not close within {CLOSING_SECONDS:g} seconds and was left behind.")
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled():
                raise
            self._notice(f"{what} could not be closed: {describe_exception(error)}")


_Wanted = tuple[AbstractAsyncContextManager[Any], "asyncio.Future[Any]"]
