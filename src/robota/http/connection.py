"""One connection to a server: a request goes out, its reply comes in and is parsed by llhttp as it comes; and
the pool that keeps connections for the next request.

Between two requests a connection rests. A byte that comes then, or after the end of a reply, closes it: what
belongs to nobody's question must not become the answer to the next one.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from robota.http.errors import FailureKind, HttpError
from robota.http.url import Origin

KEEP_ALIVE_SECONDS = 60.0
CLOSE_SECONDS = 2.0
"""How long another thread's loop may take to close its connections."""
HIGH_WATER = 1024 * 1024
"""Bytes that wait for their reader before the server is made to wait."""
MAX_BARREN_BYTES = 64 * 1024
"""In a row that bring no piece of a body: heads, trailers and the framing of chunks."""


class Connection(asyncio.Protocol):
    """Ask with `begin` and the transport's `write`, then `wait` until the status or a part is there."""

    __slots__ = (
        "_barren", "_bodiless", "_error", "_expecting", "_hinted", "_keep", "_loop", "_open_end", "_parser",
        "_paused", "_pool", "_unread", "_waiter", "closed", "complete", "headers", "heard", "idle_since",
        "on_body", "origin", "parts", "reason", "status", "transport",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, pool: Pool, origin: Origin) -> None:
        self.origin = origin
        self._pool = pool
        self._loop = pool.loop
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.closed = False
        self.idle_since = 0.0
        self.parts: list[bytes] = []
        """Pieces of the body that nobody has taken yet."""
        self.on_body = self.parts.append
        """Called by the parser for each of them."""
        self.begin()
        self._expecting = False
        self._parser = HttpResponseParser(self)
        # What sloppy servers do and no parser of clients minds. A stray byte closes the connection anyway.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
            lenient_chunked_length=True,
        )

    # --- asked by the client ------------------------------------------------------------------------------

    def begin(self, *, bodiless: bool = False) -> None:
        """A request is about to be written. Replies to some have no body, whatever their head says."""
        self.status = 0
        """Of the reply; 0 until its head is whole."""
        self.reason = b""
        self.headers: dict[str, str] = {}
        """Names in lower case; repeated fields joined by a comma."""
        self.parts.clear()
        self.complete = False
        self._expecting = True
        """A request is under way, and the end of its reply has not come."""
        self._keep = False
        """The server will answer another request."""
        self.heard = False
        """A byte of an answer has come."""
        self._error: HttpError | None = None
        self._bodiless = bodiless
        self._open_end = False
        self._unread = 0
        self._barren = 0
        self._hinted = False
        """An answer was announced since somebody looked."""

    async def wait(self, seconds: float | None = None) -> None:
        """Until something has come; raises when nothing more will, or nothing has for so many seconds."""
        self._raise_error()
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        waiter = self._waiter = self._loop.create_future()
        timer = None if seconds is None else self._loop.call_later(seconds, self._time_out, seconds)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None and not self.parts:
            raise self._error

    def take(self) -> bytes:
        """The pieces that wait, as one."""
        parts = self.parts
        part = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self._unread = 0
        return part

    def rest(self, now: float) -> bool:
        """Whether another request may follow the one that is over."""
        self._expecting = False
        self._wake()
        self.idle_since = now
        if self.closed or not self.complete or not self._keep:
            return False
        return self.transport.get_write_buffer_size() == 0  # an early refusal leaves a request half sent

    async def aclose(self) -> None:
        """Its reply is done with, read to the end or not."""
        self._pool.give_back(self)

    def close(self) -> None:
        """At once. Whoever still waits for an answer is told so."""
        self._end(HttpError("closed", "the connection was closed"))

    # --- called by the event loop -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # of a stream, so it can be written to

    def data_received(self, data: bytes) -> None:
        if not self._expecting:
            self.close()
            return
        self.heard = True
        known = len(self.parts)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            # After a whole reply it is a stray byte, and the reply is still good.
            self._fail("protocol", f"its answer is malformed ({error.__context__ or error})")
            return
        if not self.complete:
            self._weigh(len(data), fruitful=len(self.parts) != known or self._hinted)
        self._wake()

    def _weigh(self, size: int, *, fruitful: bool) -> None:
        """Make the server wait for a slow reader, and end what brings nothing."""
        self._unread += size
        self._barren = 0 if fruitful else self._barren + size
        self._hinted = False
        if self._barren > MAX_BARREN_BYTES:
            self._fail("protocol", "its headers have no end")
        elif self._unread > HIGH_WATER and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.connection_lost(None)  # at once: the transport would first send what nobody reads any more

    def connection_lost(self, error: Exception | None) -> None:
        if self._open_end and error is None and not self.closed:  # this end is the end of the body
            self.on_message_complete()
        when = "before its answer was complete" if self.heard else "without an answer"
        self._end(HttpError("closed", f"the connection ended {when}{f' ({error})' if error else ''}"))

    # --- called by the parser -----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.complete:
            raise ValueError("a second answer to one request")

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer: nobody asked for any
        key, text = name.decode("latin-1").lower(), value.decode("latin-1").rstrip(" \t")
        known = self.headers.get(key)
        # The parser would take chunks for content that it does not know as such, a tab behind them is enough.
        if key == "transfer-encoding" and (known or value.rstrip(b" ").lower() != b"chunked"):
            raise ValueError("a transfer coding that is not known")
        self.headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        parser, headers = self._parser, self.headers
        status = parser.get_status_code()
        if status < 200:
            if status == 101:
                raise ValueError("a protocol that nobody asked for")
            self.headers, self.reason = {}, b""  # of a hint: the answer is still to come
            self._hinted = True
            return
        self.status = status
        chunked, sized = "transfer-encoding" in headers, "content-length" in headers
        # Where the body ends may be said twice: chunks count, but what follows them is anybody's guess.
        sound = parser.get_http_version() == "1.1" and not (chunked and sized)
        self._keep = sound and parser.should_keep_alive()
        self._open_end = not chunked and not sized
        if self._bodiless:
            self.on_message_complete()
            raise ValueError("no body")  # the parser, which cannot be told so, has to stop here

    def on_message_complete(self) -> None:
        if self.status:
            self.complete = True
            self._expecting = False

    # --- ends ---------------------------------------------------------------------------------------------

    def _time_out(self, seconds: float) -> None:
        self._fail("silence", f"nothing came for {seconds:g} s")

    def _fail(self, kind: FailureKind, text: str) -> None:
        self._end(HttpError(kind, text))

    def _end(self, error: HttpError) -> None:
        if not self.closed:
            self.closed = True
            self.transport.abort()
        if self._expecting:
            self._expecting = False
            self._error = error
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Pool:
    """Connections that are kept for the next request, the one used last on top.

    There is no limit to their number, as there is none to the number of agents. A pool belongs to one event
    loop, and lives as long as a request is under way or the loop holds the timer that closes what nobody took
    for long: a loop that is gone takes its pool and its connections along.
    """

    def __init__(self, keep_alive: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.busy: set[Connection] = set()
        self._keep_alive = keep_alive
        """Seconds; with 0 each connection serves one request."""
        self._idle: dict[Origin, list[Connection]] = {}
        """The one that has waited longest is the first."""
        self._timer: asyncio.TimerHandle | None = None

    def take(self, origin: Origin) -> Connection | None:
        """A kept connection that is still good, as far as anybody knows."""
        idle = self._idle.get(origin)
        oldest = self.loop.time() - self._keep_alive
        while idle:
            connection = idle.pop()
            if not connection.closed and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """Keep it if its reply was whole and both sides can go on; else close it."""
        self.busy.discard(connection)
        if not self._keep_alive or not connection.rest(self.loop.time()):
            connection.close()
            return
        self._idle.setdefault(connection.origin, []).append(connection)
        if self._timer is None:
            self._timer = self.loop.call_later(self._keep_alive, self._sweep)

    async def aclose(self) -> None:
        """Close all connections, those too on which a reply is under way."""
        for connection in [*self.busy, *(kept for idle in self._idle.values() for kept in idle)]:
            connection.close()
        self.busy.clear()
        self._idle.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)  # the loop closes sockets in its next turn

    def _sweep(self) -> None:
        self._timer = None
        oldest = self.loop.time() - self._keep_alive
        for origin, idle in list(self._idle.items()):
            while idle and (idle[0].closed or idle[0].idle_since <= oldest):
                idle.pop(0).close()
            if not idle:
                del self._idle[origin]
        if self._idle:
            longest = min(idle[0].idle_since for idle in self._idle.values())
            self._timer = self.loop.call_later(longest - oldest, self._sweep)


class _Closable(Protocol):
    async def aclose(self) -> None: ...


async def close_in(loop: asyncio.AbstractEventLoop, what: _Closable) -> None:
    """Close what belongs to an event loop, there; what a loop had that has ended is gone with it."""
    if loop is asyncio.get_running_loop():
        await what.aclose()
    elif loop.is_running():  # in another thread
        closing = asyncio.run_coroutine_threadsafe(what.aclose(), loop)
        await asyncio.wait([asyncio.wrap_future(closing)], timeout=CLOSE_SECONDS)
