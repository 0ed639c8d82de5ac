"""The cassette as a transport of httpx2: replies come from the recording, or from the service and into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import httpx2

from robota.testing.cassette_file import KEPT_HEADERS, RecordedReply, Take

if TYPE_CHECKING:
    from robota.testing.cassette import Cassette

REST_SECONDS = 1.0
"""How long a recording waits for the rest of a reply that its client has enough of."""
_HOP_HEADERS = ("content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive")
"""Facts about bytes on a connection, which are not those that are handed on."""


class CassetteTransport(httpx2.AsyncBaseTransport):
    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        asked = self._cassette.describe(request, content)
        if self._cassette.recording:
            return await self._record(request, self._cassette.begin(asked))
        await asyncio.sleep(0)  # a reply is never there at once
        reply = self._cassette.answer(asked)
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Replay(reply, self._cassette))

    async def _record(self, request: httpx2.Request, take: Take) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        try:
            response = await self._client().send(request, stream=True, follow_redirects=False)
        except httpx2.HTTPError:
            take.end("broken")
            raise
        headers = _note_head(response, take)
        return httpx2.Response(response.status_code, headers=headers, stream=_Recording(response, take))

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


def _note_head(response: httpx2.Response, take: Take) -> list[tuple[str, str]]:
    """Write down how a reply begins; its headers for whoever gets it."""
    take.status = response.status_code
    take.headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    return [pair for pair in response.headers.multi_items() if pair[0].lower() not in _HOP_HEADERS]


class _Recording(httpx2.AsyncByteStream):
    """The service's reply, written down while it is read; a second reader goes on after the first."""

    def __init__(self, response: httpx2.Response, take: Take) -> None:
        self._response = response
        self._take = take
        self._pieces = response.aiter_bytes()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces:
                self._take.data += piece
                yield piece
        except httpx2.HTTPError:
            self._take.end("broken")
            raise
        self._take.end("complete")

    async def aclose(self) -> None:
        """Close the reply. What is on its way is recorded still: clients stop at the mark of the end."""
        try:
            if self._take.ended is None:
                with suppress(httpx2.HTTPError, TimeoutError):
                    async with asyncio.timeout(REST_SECONDS):
                        async for _ in self:
                            pass
        finally:
            self._take.end("early")
            await self._response.aclose()


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


# --- without an event loop ------------------------------------------------------------------------------


class SyncCassetteTransport(httpx2.BaseTransport):
    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._client: httpx2.Client | None = None

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = self._cassette.describe(request, request.read())
        if self._cassette.recording:
            return self._record(request, self._cassette.begin(asked))
        reply = self._cassette.answer(asked)
        return httpx2.Response(reply.status, headers=reply.headers, stream=_Replay(reply, self._cassette))

    def _record(self, request: httpx2.Request, take: Take) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        self._client = self._client or httpx2.Client(timeout=None)
        try:
            response = self._client.send(request, stream=True, follow_redirects=False)
        except httpx2.HTTPError:
            take.end("broken")
            raise
        headers = _note_head(response, take)
        return httpx2.Response(response.status_code, headers=headers, stream=_SyncRecording(response, take))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


class _SyncRecording(httpx2.SyncByteStream):
    """As `_Recording`. What is left when the client has enough is read to its end: nothing bounds that wait
    but the service, as nothing bounds a synchronous read."""

    def __init__(self, response: httpx2.Response, take: Take) -> None:
        self._response = response
        self._take = take
        self._pieces = response.iter_bytes()

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self._pieces:
                self._take.data += piece
                yield piece
        except httpx2.HTTPError:
            self._take.end("broken")
            raise
        self._take.end("complete")

    def close(self) -> None:
        try:
            if self._take.ended is None:
                with suppress(httpx2.HTTPError):
                    for _ in self:
                        pass
        finally:
            self._take.end("early")
            self._response.close()
