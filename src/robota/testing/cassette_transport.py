"""The cassette as a transport of httpx2: replies come from the recording, or from the service and into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import httpx2

from robota.testing.cassette_file import KEPT_HEADERS, RecordedReply, Take

if TYPE_CHECKING:
    from robota.testing.cassette import Asked, Cassette

REST_SECONDS = 1.0
"""How long a recording waits for the rest of a reply that its client has enough of."""
_HOP_HEADERS = ("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive")
"""Facts about bytes on a connection, which are not those that are handed on."""


class CassetteTransport(httpx2.AsyncBaseTransport, httpx2.BaseTransport):
    """For clients with an event loop and without one."""

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._sync_client: httpx2.Client | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = self._cassette.describe(request, await request.aread())
        if not self._cassette.recording:
            await asyncio.sleep(0)  # a reply is never there at once
            return self._replay(asked)
        take = self._begin(request, asked)
        with _noting_failure(take):
            response = await self._client().send(request, stream=True, follow_redirects=False)
        return _record(response, take, response.aiter_bytes())

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = self._cassette.describe(request, request.read())
        if not self._cassette.recording:
            return self._replay(asked)
        take = self._begin(request, asked)
        self._sync_client = self._sync_client or httpx2.Client(timeout=None)
        with _noting_failure(take):
            response = self._sync_client.send(request, stream=True, follow_redirects=False)
        return _record(response, take, response.iter_bytes())

    def _replay(self, asked: Asked) -> httpx2.Response:
        reply = self._cassette.answer(asked)
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Replay(reply, self._cassette))

    def _begin(self, request: httpx2.Request, asked: Asked) -> Take:
        request.headers["accept-encoding"] = "identity"
        return self._cassette.begin(asked)

    def _client(self) -> httpx2.AsyncClient:
        """A client of its own, so that proxies of the environment apply."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = httpx2.AsyncClient(timeout=None)
        return self._clients[loop]

    async def aclose(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def close(self) -> None:
        if self._sync_client is not None:
            self._sync_client.close()


@contextmanager
def _noting_failure(take: Take) -> Iterator[None]:
    try:
        yield
    except httpx2.HTTPError:
        take.end("broken")
        raise


def _record(
    response: httpx2.Response, take: Take, pieces: AsyncIterator[bytes] | Iterator[bytes]
) -> httpx2.Response:
    """Write down how a reply begins, and what follows as it is read."""
    take.status = response.status_code
    take.headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    headers = [pair for pair in response.headers.multi_items() if pair[0].lower() not in _HOP_HEADERS]
    return httpx2.Response(take.status, headers=headers, stream=_Recording(response, take, pieces))


class _Recording(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """The service's reply, written down while it is read; a second reader goes on after the first.

    What is on its way when the client has enough is recorded still: clients stop at the mark of the end.
    """

    def __init__(
        self, response: httpx2.Response, take: Take, pieces: AsyncIterator[bytes] | Iterator[bytes]
    ) -> None:
        self._response = response
        self._take = take
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._pieces, AsyncIterator)
        with _noting_failure(self._take):
            async for piece in self._pieces:
                self._take.data += piece
                yield piece
        self._take.end("complete")

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._pieces, Iterator)
        with _noting_failure(self._take):
            for piece in self._pieces:
                self._take.data += piece
                yield piece
        self._take.end("complete")

    async def aclose(self) -> None:
        try:
            if self._take.ended is None:
                with suppress(httpx2.HTTPError, TimeoutError):
                    async with asyncio.timeout(REST_SECONDS):
                        async for _ in self:
                            pass
        finally:
            self._take.end("early")
            await self._response.aclose()

    def close(self) -> None:
        """Nothing bounds the wait for the rest but the service, as nothing bounds a synchronous read."""
        try:
            if self._take.ended is None:
                with suppress(httpx2.HTTPError):
                    for _ in self:
                        pass
        finally:
            self._take.end("early")
            self._response.close()


class _Replay(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A recorded reply, piece by piece; a second reader goes on after the first."""

    def __init__(self, reply: RecordedReply, cassette: Cassette) -> None:
        self._pieces = reply.pieces()
        self._ended = reply.ended
        self._cassette = cassette

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
            await asyncio.sleep(0)  # others may run between two pieces, as on a network
        self._end()

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        self._end()

    def _end(self) -> None:
        if self._ended == "broken":
            raise httpx2.RemoteProtocolError("The recorded connection broke here.")
        if self._ended == "early":
            raise self._cassette.ran_out()
