"""Sessions with plugins on a scripted model, and a server that takes what plugins post."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robota.core.messages import TokenUsage
from robota.core.plugin import Plugin
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call
from robota.testing.http_server import LoopbackServer, ReceivedRequest, ServerConnection, response
from robota.tools.function_tool import tool

USED = TokenUsage(100, 20)
NO_DELEGATION = {"subagents": {"policy": "auto"}}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def explode() -> str:
    """Always fail."""
    raise ValueError("the tool is broken")


ADDING = [call("add", a=1, b=2), USED]
"""A reply that calls the tool once."""


def open_session(
    home: Path, *replies: Any, plugins: Sequence[Plugin] = (), **options: Any
) -> InteractiveSession:
    cwd = home / "project"
    cwd.mkdir(exist_ok=True)
    settings = {**NO_DELEGATION, **options.pop("settings", {})}
    return InteractiveSession(
        provider=options.pop("provider", None) or ScriptedProvider(*replies),
        cwd=cwd,
        model="scripted",
        permission_mode="bypassPermissions",
        tools=options.pop("tools", [add, explode]),
        plugins=plugins,
        settings=settings,
        environment={"HOME": str(home), **options.pop("variables", {})},
        **options,
    )


class Receiver(LoopbackServer):
    """Answers each post with the next of its statuses, then with 200; remembers what came."""

    def __init__(self, *statuses: int, hold: bool = False) -> None:
        super().__init__(0)
        self.statuses = list(statuses)
        self.requests: list[ReceivedRequest] = []
        self.came = asyncio.Event()
        self.open = asyncio.Event()
        """Answers wait for it."""
        self.at_once = self.most_at_once = 0
        if not hold:
            self.open.set()

    def connect(self) -> ServerConnection:
        return _Desk(self)

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]

    async def wait_for(self, count: int) -> None:
        while len(self.requests) < count:
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), 30)


class _Desk(ServerConnection):
    def __init__(self, server: Receiver) -> None:
        super().__init__(server)
        self._receiver = server
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self) -> None:
        while (request := self.reader.next()) is not None:
            task = self.loop.create_task(self._answer(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def connection_lost(self, error: Exception | None) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        self.let_go()

    async def _answer(self, request: ReceivedRequest) -> None:
        server = self._receiver
        server.requests.append(request)
        server.at_once += 1
        server.most_at_once = max(server.most_at_once, server.at_once)
        server.came.set()
        try:
            await server.open.wait()
        finally:
            server.at_once -= 1
        status = server.statuses.pop(0) if server.statuses else 200
        assert self.transport is not None
        self.transport.write(response(status, {"connection": "close"}, b"{}"))
        self.transport.close()
