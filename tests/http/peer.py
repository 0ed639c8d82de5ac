"""A server for tests of the HTTP client: what it does with each connection is written down by the test."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

from robota.http.client import HttpClient
from robota.http.exchange import Request, build_request
from robota.http.url import Url

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


class Line:
    """One connection, seen from the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next request, head and body; `IncompleteReadError` when the client has left."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return head + await self.reader.readexactly(int(length or 0))

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def until_left(self) -> None:
        """Until the client closes the connection."""
        while await self.reader.read(65536):
            pass


Behaviour: TypeAlias = Callable[[Line], Awaitable[None]]


class Peer:
    """Answers every request with given bytes, or does what a function says; then hangs up if told so."""

    def __init__(
        self,
        behave: Behaviour | bytes = OK,
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        hang_up: bool = False,
    ) -> None:
        self._behave = behave
        self._tls = tls
        self._hang_up = hang_up
        self._host = host
        self.port = port
        self.requests: list[bytes] = []
        self.connections = 0
        self._handlers: dict[asyncio.Task[Any], Line] = {}
        self.gone = asyncio.Semaphore(0)
        """Released when a connection has ended."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()
        for line in self._handlers.values():
            line.writer.transport.abort()
        await asyncio.gather(*self._handlers)

    def url(self, target: str = "/", host: str = "") -> Url:
        return Url("https" if self._tls else "http", host or self._host, self.port, target)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        line = Line(reader, writer)
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers[handler] = line
        try:
            if isinstance(self._behave, bytes):
                await self._answer(line, self._behave)
            else:
                await self._behave(line)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the client left: often what a test is about
        finally:
            writer.close()
            del self._handlers[handler]
            self.gone.release()

    async def _answer(self, line: Line, data: bytes) -> None:
        while True:
            self.requests.append(await line.request())
            await line.send(data)
            if self._hang_up:
                return


def get(url: Url, **headers: str) -> Request:
    return build_request("GET", url, headers)


def post(url: Url, **headers: str) -> Request:
    return build_request("POST", url, headers)


async def fetch(client: HttpClient, request: Request, body: bytes = b"", **options: bool) -> bytes:
    """The body of a reply."""
    reply = await client.send(request, body, **options)
    return await reply.read(1 << 30)


@contextmanager
def in_thread(peer: Peer) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """The peer on an event loop of its own; what is given runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    run(peer.__aenter__())
    try:
        yield run
    finally:
        run(peer.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
