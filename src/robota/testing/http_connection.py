"""One client's connection to the model server: requests in, plans played back, in order and kept alive.

There are no tasks: a plan is played until it must wait, and goes on from whatever ends the wait. Losing the
connection ends everything that hangs on it.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from robota.providers.scripted import Delay
from robota.testing.http_request import BadRequest, ReceivedRequest, RequestReader, response
from robota.testing.model_script import Gate, Tap
from robota.testing.reply_plan import Endless, Plan, Wait

UNSENT_LIMIT = 1 << 20
"""Bytes that may wait for a client that does not read; what is repeated for ever then pauses."""


class Answering(Protocol):
    """What a connection needs of its server."""

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...
    def answer(self, request: ReceivedRequest) -> Plan: ...


class Connection(asyncio.Protocol):
    def __init__(self, server: Answering) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader()
        self._transport: asyncio.Transport | None = None
        self._request: ReceivedRequest | None = None
        """The request being answered."""
        self._plan = Plan(())
        self._at = 0
        self._timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            self._request.disconnected.open()
            self._request = None
        self._server.closed(self)

    def drop(self) -> None:
        """End the connection now, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        self._serve()

    def _serve(self) -> None:
        """Answer what has arrived; a request behind one that still waits is answered after it."""
        try:
            while self._request is None and self._transport is not None and not self._transport.is_closing():
                request = self._reader.next()
                if request is None:
                    if self._reader.take_expectation():
                        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    return
                self._begin(request)
        except BadRequest as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> None:
        if self._transport is not None:
            self._transport.write(response(400, {"connection": "close"}, reason.encode()))
            self._transport.close()

    def _begin(self, request: ReceivedRequest) -> None:
        self._request = request
        self._plan = self._server.answer(request)
        self._at = 0
        self._play(request)

    def _play(self, request: ReceivedRequest) -> None:
        transport = self._transport
        if transport is None or self._request is not request:
            return  # the client left while the reply waited
        operations = self._plan.operations
        while self._at < len(operations):
            operation = operations[self._at]
            self._at += 1
            if not isinstance(operation, bytes):
                self._pause(operation, request)
                return
            transport.write(operation)
        self._request = None
        request.answered.open()
        if self._plan.hang_up or request.headers.get("connection", "").lower() == "close":
            transport.close()

    def _resume(self, request: ReceivedRequest) -> None:
        self._play(request)
        self._serve()

    def _pause(self, wait: Wait, request: ReceivedRequest) -> None:
        """Come back to the plan when the wait is over; a stall is over when the connection is."""
        if isinstance(wait, Delay):
            self._timer = (
                self._loop.call_later(wait.seconds, self._resume, request)
                if wait.seconds > 0
                else self._loop.call_soon(self._resume, request)
            )
        elif isinstance(wait, Endless):
            if wait.until is not None:
                wait.until.reached.open()
            self._repeat(wait, request)
        elif isinstance(wait, Tap):
            wait.then(lambda: self._wake(request))
        elif isinstance(wait, Gate):
            wait.opened.then(lambda: self._wake(request))
            wait.reached.open()

    def _wake(self, request: ReceivedRequest) -> None:
        """Go on, called from any thread; the server may be gone by now."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resume, request)

    def _repeat(self, endless: Endless, request: ReceivedRequest) -> None:
        if self._transport is None:
            return
        if endless.until is not None and endless.until.opened.is_open:
            self._resume(request)
            return
        if self._transport.get_write_buffer_size() < UNSENT_LIMIT:
            self._transport.write(endless.data)
        self._timer = self._loop.call_later(endless.every, self._repeat, endless, request)
