"""The sessions behind a server: the first one, and those that calls ask for."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from robota.core.errors import SessionNotFoundError
from robota.transports.session_maker import SessionWish, made_ready

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.session_maker import SessionMaker

NEW = "new"


class AgentSessions:
    """Opened when they are first used."""

    def __init__(self, session: InteractiveSession | None = None, maker: SessionMaker | None = None) -> None:
        """`session` is the caller's to close; those that `maker` makes are closed here."""
        self._first = session
        self._maker = maker
        self._made: dict[str, InteractiveSession] = {}
        self._opening = asyncio.Lock()

    @property
    def makes_more(self) -> bool:
        return self._maker is not None

    async def first(self) -> InteractiveSession:
        """The one of calls that name none."""
        async with self._opening:
            if self._first is None:
                self._first = await self._open(None)
        return self._first

    async def find(self, wanted: str) -> InteractiveSession:
        """The session of an id; empty for the first one, `new` for another one."""
        if not wanted:
            return await self.first()
        if self._first is not None and self._first.session_id == wanted:
            return self._first
        async with self._opening:
            return self._made.get(wanted) or await self._open(None if wanted == NEW else wanted)

    async def _open(self, id: str | None) -> InteractiveSession:
        if self._maker is None:
            raise SessionNotFoundError(
                f"This server has one session; {id or NEW} is not its id: leave it out."
            )
        wish = SessionWish(cwd=os.getcwd(), resume=id)  # a model must not choose another directory
        session = await made_ready(await self._maker.open(wish))
        self._made[session.session_id] = session
        return session

    async def aclose(self) -> None:
        """Stop what runs, save everything that was made here."""
        sessions = tuple(self._made.values())
        self._made.clear()
        for session in sessions:
            if session.is_executing:
                session.abort()
        await asyncio.gather(*(session.shutdown("other") for session in sessions))
