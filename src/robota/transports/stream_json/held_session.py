"""The session of a connection: made when it is first needed, and held open until the connection ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from robota.transports.held import Held

if TYPE_CHECKING:
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession


OpenSession: TypeAlias = Callable[["MoreOptions"], AbstractAsyncContextManager["InteractiveSession"]]
Prepare: TypeAlias = Callable[["InteractiveSession"], Awaitable[None]]


class HeldSession(Held["InteractiveSession"]):
    """Made as the host wishes it."""

    def __init__(self, open_session: OpenSession, prepare: Prepare) -> None:
        """`prepare` happens to the session before anybody has it."""
        super().__init__(self._open_prepared)
        self._open_session = open_session
        self._prepare = prepare
        self.wishes: MoreOptions = {}

    @asynccontextmanager
    async def _open_prepared(self) -> AsyncIterator[InteractiveSession]:
        async with self._open_session(self.wishes) as session:
            await self._prepare(session)
            yield session
