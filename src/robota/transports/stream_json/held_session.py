"""The session of a connection: made when it is first needed, and held open until the connection ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


class Wishes(Struct, frozen=True, kw_only=True):
    """What `initialize` wants of the session that is then made."""

    agents: Mapping[str, JsonObject] = {}
    skills: tuple[str, ...] | None = None
    """The only ones that are offered."""


OpenSession: TypeAlias = Callable[[Wishes], AbstractAsyncContextManager["InteractiveSession"]]
Prepare: TypeAlias = Callable[["InteractiveSession"], Awaitable[None]]


class HeldSession:
    """One task opens the session, waits, and closes it: what it holds may belong to that task."""

    def __init__(self, open_session: OpenSession, prepare: Prepare) -> None:
        """`prepare` happens to the session before anybody has it."""
        self._open_session = open_session
        self._prepare = prepare
        self._made: asyncio.Future[InteractiveSession] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.wishes = Wishes()

    @property
    def begun(self) -> bool:
        return self._made is not None

    @property
    def now(self) -> InteractiveSession | None:
        """The session, if it is made."""
        made = self._made
        return made.result() if made is not None and made.done() and made.exception() is None else None

    async def get(self) -> InteractiveSession:
        """The session; raises what kept it from being made."""
        return await asyncio.shield(self.begin())

    def begin(self) -> asyncio.Future[InteractiveSession]:
        """Have it made, if nobody has yet."""
        if self._made is None:
            self._made = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._made))
        return self._made

    async def _keep(self, made: asyncio.Future[InteractiveSession]) -> None:
        try:
            async with self._open_session(self.wishes) as session:
                await self._prepare(session)
                made.set_result(session)
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
