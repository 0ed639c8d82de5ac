"""Requests that nobody waits for: what comes of them is told by the events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from robota.client.connection import Connection
from robota.core.errors import ConfigurationError, RobotaError
from robota.core.messages import JsonObject


class Errands:
    """Sends them, from whichever thread, and says what a host refuses."""

    def __init__(self, connection: Connection, refused: Callable[[str], None]) -> None:
        self._connection = connection
        self._refused = refused
        self._tasks: set[asyncio.Task[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def send(self, method: str, path: str, body: JsonObject) -> None:
        if self.loop is None:
            raise ConfigurationError("RemoteSession not connected: await session.ready() first.")
        self.loop.call_soon_threadsafe(self.spawn, self._run(method, path, body))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, method: str, path: str, body: JsonObject) -> None:
        try:
            await self._connection.call(method, path, body)
        except RobotaError as error:
            self._refused(str(error))

    async def aclose(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
