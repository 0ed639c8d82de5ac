"""The session of a connection: made when it is first needed, and held open until the connection ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota.core.messages import JsonObject
from robota.transports.held import Held

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.mcp.servers import OpenRelay


class Wishes(Struct, frozen=True, kw_only=True):
    """What `initialize` wants of the session that is then made."""

    agents: Mapping[str, JsonObject] = {}
    skills: tuple[str, ...] | None = None
    """The only ones that are offered."""
    relay: OpenRelay | None = None
    """Reaches servers inside the host."""


OpenSession: TypeAlias = Callable[[Wishes], AbstractAsyncContextManager["InteractiveSession"]]
Prepare: TypeAlias = Callable[["InteractiveSession"], Awaitable[None]]


class HeldSession(Held["InteractiveSession"]):
    """Made as the host wishes it."""

    def __init__(self, open_session: OpenSession, prepare: Prepare) -> None:
        """`prepare` happens to the session before anybody has it."""
        super().__init__(self._open_prepared)
        self._open_session = open_session
        self._prepare = prepare
        self.wishes = Wishes()

    @asynccontextmanager
    async def _open_prepared(self) -> AsyncIterator[InteractiveSession]:
        async with self._open_session(self.wishes) as session:
            await self._prepare(session)
            yield session
