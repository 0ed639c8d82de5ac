"""HTTP/1.1 on the loopback interface: what the servers for tests read, write and have in common."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from http import HTTPStatus
from threading import Thread
from typing import Self, cast

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from robota.core.messages import Json, JsonObject
from robota.testing.dialect import Conversation, Dialect

HEAD_LIMIT = 64 * 1024
PATIENCE = 30.0
"""Seconds a test waits for something that should happen at once, before it fails with a sentence."""


class Latch:
    """A door that opens once and lets everybody through, whatever thread or event loop they wait in.

    Opening is safe from any thread and a second time changes nothing.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._opened: Future[None] = Future()
        self._opened.set_running_or_notify_cancel()  # or a waiter who gives up would cancel it for all

    @property
    def is_open(self) -> bool:
        return self._opened.done()

    def open(self) -> None:
        with suppress(InvalidStateError):
            self._opened.set_result(None)

    def then(self, callback: Callable[[], object]) -> None:
        """Call it when the latch opens, in the thread that opens it; at once when it is open already."""
        self._opened.add_done_callback(lambda _: callback())

    async def wait(self, timeout: float = PATIENCE) -> None:
        if self.is_open:  # then no patience is needed, not even that of one turn of the loop
            return
        with self._explained(timeout):
            await asyncio.wait_for(asyncio.wrap_future(self._opened), timeout)

    def wait_in_thread(self, timeout: float = PATIENCE) -> None:
        """`wait()` for tests without an event loop."""
        with self._explained(timeout):
            self._opened.result(timeout)

    @contextmanager
    def _explained(self, timeout: float) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise TimeoutError(f"Waited {timeout:g} s, and this did not happen: {self._what}.") from None


class BadRequest(Exception):
    """What arrived is not HTTP/1.1 that this server can read; the connection ends."""


class ReceivedRequest:
    """One request, in the order of arrival, and what became of its reply."""

    __slots__ = (
        "answered", "body", "dialect", "disconnected", "headers", "method", "number", "path", "problem",
        "query", "raw", "reply_size", "status",
    )  # fmt: skip

    def __init__(self, method: str, target: str, headers: dict[str, str], raw: bytes) -> None:
        self.method = method
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        """Names in lower case; a repeated header is joined by a comma."""
        self.raw = raw
        self.body: Json = _decode(raw)
        """The JSON of the body, `None` when there is none."""
        self.number = 0
        """Place among everything the server got, from 1."""
        self.dialect: Dialect | None = None
        """The protocol spoken, `None` for a request that asks no model."""
        self.reply_size = 0
        """Bytes of the reply's body as scripted, before any cut."""
        self.status = 0
        """Status of the reply; 0 when the connection is cut without a word."""
        self.problem = ""
        """Why the script had no say: the request was refused, or the script is wrong."""
        self.answered = Latch("the whole reply was handed to the connection")
        self.disconnected = Latch("the client closed the connection before the reply was over")

    @property
    def conversation(self) -> Conversation:
        """What the request says to the model, in words that fit every protocol."""
        if self.dialect is None:
            return Conversation(())
        return self.dialect.read(self.json)

    @property
    def json(self) -> JsonObject:
        """The body when it is a JSON object, else an empty one."""
        return self.body if isinstance(self.body, dict) else {}

    def __repr__(self) -> str:
        return f"<{self.method} {self.path} #{self.number}>"


def _decode(raw: bytes) -> Json:
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, RecursionError):
        return None


class RequestReader:
    """Takes bytes as they come and gives whole requests, with bodies sized or chunked; the next one waits."""

    def __init__(self) -> None:
        self._parser = HttpRequestParser(self)
        self._target = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._in_head = True
        self._head_size = 0
        self._expected = False
        self._ready: deque[ReceivedRequest] = deque()
        self._problem = ""

    def feed(self, data: bytes) -> None:
        self._head_size += len(data) if self._in_head else 0
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._problem = str(error)
        if self._in_head and self._head_size > HEAD_LIMIT:
            self._problem = "the head of the request is too long"

    def next(self) -> ReceivedRequest | None:
        """The next request that is complete, if one is."""
        if self._ready:
            return self._ready.popleft()
        if self._problem:
            raise BadRequest(self._problem)
        return None

    def take_expectation(self) -> bool:
        """Whether the client holds the body back until it is told to go on; true once per request."""
        expected, self._expected = self._expected, False
        return expected

    # --- called by the parser ----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", {}, bytearray()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        known, said = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[known] = f"{self._headers[known]}, {said}" if known in self._headers else said

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._expected = self._headers.pop("expect", "").lower() == "100-continue"

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._in_head, self._head_size, self._expected = True, 0, False
        method, target = self._parser.get_method().decode(), self._target.decode("latin-1")
        self._ready.append(ReceivedRequest(method, target, self._headers, bytes(self._body)))


def response(status: int, headers: dict[str, str], body: bytes | None) -> bytes:
    """The bytes of a response; with `None` for a body the head alone, announcing chunks."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded" if status == 529 else "Unknown"
    sizing = {"transfer-encoding": "chunked"} if body is None else {"content-length": str(len(body))}
    lines = [
        f"HTTP/1.1 {status} {phrase}",
        *(f"{name}: {value}" for name, value in {**headers, **sizing}.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


class LoopbackServer:
    """A server of a test, in its own loop (`async with`) or in a thread (`with server.in_thread()`)."""

    def __init__(self, port: int) -> None:
        self.port = port
        """The port asked for, then the port bound; it stays known after the server is gone."""
        self._listener: asyncio.Server | None = None
        self._connections: set[ServerConnection] = set()
        self._quiet = asyncio.Event()

    @property
    def url(self) -> str:
        """Where the server is, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> ServerConnection:
        """What serves one more client."""
        raise NotImplementedError

    async def start(self) -> None:
        """Listen, until `stop()`; an address that cannot be used raises `OSError`."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self.connect, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End every connection, whatever is under way."""
        assert self._listener is not None
        self._listener.close()
        for connection in tuple(self._connections):
            connection.drop()
        await self.wait_until_quiet()
        await self._listener.wait_closed()

    async def wait_until_quiet(self) -> None:
        """Wait until every client has left and what it asked for is over."""
        if self._connections:
            await self._quiet.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.stop()

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Run in a thread with a loop of its own, for synchronous tests and for clients that change loops.

        What the server raises on leaving is raised here.
        """
        loop = asyncio.new_event_loop()
        thread = Thread(target=loop.run_forever, name=type(self).__name__, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.__aenter__(), loop).result()
            try:
                yield self
            finally:
                leave = self.__aexit__(*sys.exc_info())
                asyncio.run_coroutine_threadsafe(leave, loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def opened(self, connection: ServerConnection) -> None:
        self._connections.add(connection)
        self._quiet.clear()

    def closed(self, connection: ServerConnection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._quiet.set()


class ServerConnection(asyncio.Protocol):
    """One client of a server: its requests are answered one after the other."""

    def __init__(self, server: LoopbackServer) -> None:
        self.loop = asyncio.get_running_loop()
        self.reader = RequestReader()
        self.transport: asyncio.Transport | None = None
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        self.serve()

    def serve(self) -> None:
        """Answer what has arrived, if nothing else is being answered."""
        raise NotImplementedError

    def let_go(self) -> None:
        """The connection is lost, and nothing that hangs on it is left."""
        self._server.closed(self)

    def drop(self) -> None:
        """End the connection now, whatever is under way."""
        if self.transport is not None:
            self.transport.abort()

    def refuse(self, error: BadRequest) -> None:
        if self.transport is not None:
            self.transport.write(response(400, {"connection": "close"}, str(error).encode()))
            self.transport.close()
