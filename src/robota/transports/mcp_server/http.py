"""The server over Streamable HTTP, behind a token and closed to pages of other sites."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send

from robota.transports.http.replies import HttpError, refuse
from robota.transports.http.security import Guard
from robota.transports.http.server import make_server

PATH = "/mcp"
BODY_BYTES = 8 << 20


class GuardedMcp:
    """Looks at each request before the protocol does."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            self._guard.check_place(scope)
            self._guard.check_token(scope, in_query=False)
            if scope["path"].rstrip("/") != PATH:
                raise HttpError(404, "not_found", f"There is nothing at this path: the server is at {PATH}.")
        except HttpError as error:
            await refuse(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


@asynccontextmanager
async def serving_http(server: Server[Any], listener: socket.socket, guard: Guard) -> AsyncIterator[None]:
    """Answer on a socket while the block runs."""
    manager = StreamableHTTPSessionManager(server, max_request_body_size=BODY_BYTES)
    web = make_server(GuardedMcp(StreamableHTTPASGIApp(manager), guard))
    async with manager.run():
        running = asyncio.create_task(web.serve([listener]))
        try:
            await web.ready.wait()
            yield
        finally:
            web.stop()
            await running
