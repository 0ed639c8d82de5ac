"""The application on a socket, by uvicorn, with limits that keep one client from costing the others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from robota.core.errors import ConfigurationError
from robota.transports.http.sse import ABORT

HEAD_BYTES = 64 << 10
HEAD_SECONDS = 10.0
"""How long the head of a request may take."""
LINGER_SECONDS = 1.0
"""How long somebody who was refused may go on sending before the connection is closed."""
MOST_CONNECTIONS = 4_096
MESSAGE_BYTES = 8 << 20
"""Of a message of a WebSocket."""
SOCKET_PING_SECONDS = 20.0
"""Between two pings of a WebSocket, and for its answer: who gives none is gone."""
GRACE_SECONDS = 3
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Connection(HttpToolsProtocol):
    """One connection, whose requests must have heads of a sensible size that come in a sensible time."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _refused = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if self._head_timer is not None and self.parser is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: Any = {ABORT: self.transport.abort}
        self.scope["extensions"] = extensions
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_came()
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > HEAD_BYTES:  # it came in one piece
            self.scope["state"]["head_too_large"] = True
        super().on_headers_complete()

    def _expect_head(self) -> None:
        self._head_came()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._refuse, _TOO_SLOW)

    def _head_came(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, reply: bytes) -> None:
        self._head_came()
        if not self.transport.is_closing():
            self._refused = True
            self.transport.write(reply)
            self.transport.write_eof()  # closing with words unread would take the reply back
            self.loop.call_later(LINGER_SECONDS, self.transport.close)


class Server(uvicorn.Server):
    """uvicorn without its signal handlers and without a wake-up every tenth of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        await self._told.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._told.set()


def make_server(app: ASGIApp) -> Server:
    return Server(
        uvicorn.Config(
            app,
            http=Connection,
            ws=WebSocketsSansIOProtocol,  # by its name it would be looked for when the server has started
            ws_max_size=MESSAGE_BYTES,
            ws_ping_interval=SOCKET_PING_SECONDS,
            ws_ping_timeout=SOCKET_PING_SECONDS,
            ws_per_message_deflate=False,  # a compressor for each connection weighs more than the session
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,  # addresses may hold the token
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
    )


@asynccontextmanager
async def running(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    """Answer on a socket while the block runs; afterwards what is under way may end."""
    server = make_server(app)
    task = asyncio.get_running_loop().create_task(server.serve([listener]))
    task.add_done_callback(lambda _: server.ready.set())  # nobody waits for one that could not start
    try:
        await server.ready.wait()
        if task.done():
            task.result()
        yield
    finally:
        server.stop()
        await task


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there, or one sentence."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigurationError(f"The host {host} cannot be used: {error.strerror}.") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"Port {port} on {host} cannot be used: {error.strerror}; choose another, or 0 for any."
        ) from error
    return listener
