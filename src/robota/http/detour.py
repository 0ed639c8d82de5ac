"""The way by httpx2, for what only that can: proxies, and transports and clients of its kind handed in.

Its replies and failures are told in our words, so that nobody above needs to know which way a request went.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from typing import TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import httpx2
from msgspec import Struct, field

from robota.http.address import shown
from robota.http.connection import KEEP_ALIVE_SECONDS, close_in
from robota.http.dial import is_out_of_descriptors, trusting_context
from robota.http.errors import FailureKind, HttpError
from robota.http.exchange import Reply, Request

_Clients: TypeAlias = dict[tuple[str, str | None], list[httpx2.AsyncClient]]
"""By scheme and proxy; the last one is used, those before it may still have replies under way."""
Timeouts: TypeAlias = dict[str, float | None]
_NO_WAY = ("dns", "refused", "connect", "connect_timeout")
"""How it ends when nobody is there; whoever asks a proxy has not tried to reach anybody else."""
_UNTRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP, where httpx2 wants a context too; it trusts nobody and costs nothing."""


class Detour(Struct, eq=False, kw_only=True):
    """Requests by way of httpx2.

    A client that was handed in keeps its headers, proxies, hooks and connections and is not closed here; a
    transport is, and serves one event loop only. Without either, requests go through the proxy they name.
    """

    tls: ssl.SSLContext | None = None
    transport: httpx2.AsyncBaseTransport | None = None
    client: httpx2.AsyncClient | None = None
    _clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = field(
        default_factory=WeakKeyDictionary
    )
    _known: WeakSet[httpx2.AsyncClient] = field(default_factory=WeakSet)
    """Clients that have had an answer, and so may have a connection that is used again."""

    async def send(
        self,
        request: Request,
        body: bytes,
        timeouts: Timeouts,
        *,
        repeatable: bool,
        proxy: str | None = None,
    ) -> Reply:
        """As `HttpClient.send` does it."""
        client = self.client or self._client(request.url.scheme, proxy)
        again = repeatable and client in self._known
        try:
            try:
                response = await self._ask(client, request, body, timeouts)
            except httpx2.TransportError as error:
                if not again or not _hung_up(error):
                    raise
                # Others that it keeps may be dead too, and it would take the next of them.
                client = self.client or self._client(request.url.scheme, proxy, anew=True)
                response = await self._ask(client, request, body, timeouts)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _blame(explain(error), proxy) from error
        self._known.add(client)
        return reply_of(response)

    async def _ask(
        self, client: httpx2.AsyncClient, request: Request, body: bytes, timeouts: Timeouts
    ) -> httpx2.Response:
        # A client of ours adds nothing to a request; one that was handed in has headers and cookies.
        build = httpx2.Request if self.client is None else client.build_request
        asked = build(
            request.method,
            str(request.url),
            headers=list(request.headers),
            content=body or None,
            extensions={"timeout": timeouts},
        )
        return await client.send(asked, stream=True, follow_redirects=False)

    def _client(self, scheme: str, proxy: str | None, *, anew: bool = False) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        for other in [other for other in self._clients if other.is_closed()]:
            del self._clients[other]  # its connections hold it, so it would never go by itself
        clients = self._clients.setdefault(loop, {})
        made = clients.setdefault((scheme, proxy), [])
        if not made or (anew and self.transport is None):
            limits = httpx2.Limits(
                max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_SECONDS
            )
            tls = (self.tls or trusting_context()) if scheme == "https" else _UNTRUSTING
            try:
                made.append(
                    httpx2.AsyncClient(
                        transport=self.transport, proxy=proxy, verify=tls, limits=limits, trust_env=False
                    )
                )
            except (ValueError, ImportError, httpx2.InvalidURL) as error:  # as it is written, or no socksio
                raise HttpError("proxy", f"{shown(proxy or '')}: {error}") from error
        return made[-1]

    async def aclose(self) -> None:
        """Close the clients that were made here."""
        kept = ((loop, some) for loop, made in self._clients.items() for some in made.values())
        clients = [(loop, client) for loop, some in kept for client in some]
        self._clients.clear()
        for loop, client in clients:
            await close_in(loop, client)


def reply_of(response: httpx2.Response) -> Reply:
    """A response that was not read yet, as a reply of ours."""
    return Reply(ResponseBody(response), None)


class ResponseBody:
    """A response of httpx2 as something that comes in."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase.encode("latin-1", "replace")
        self.headers = dict(response.headers.items())
        self.parts: list[bytes] = []
        self.complete = response.is_stream_consumed  # by a hook or a transport that has it all
        self._response = response
        self._pieces = response.aiter_raw()
        if self.complete:
            self.headers.pop("content-encoding", None)  # what was read before is unpacked
            self.parts.append(response.content)

    def take(self) -> bytes:
        return self.parts.pop()

    async def wait(self, seconds: float | None) -> None:
        """The next piece; how long it may take was said with the request."""
        try:
            self.parts.append(await anext(self._pieces))
        except StopAsyncIteration:
            self.complete = True
        except httpx2.HTTPError as error:
            raise explain(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()


# --- failures -------------------------------------------------------------------------------------------


def explain(error: Exception) -> HttpError:
    """A failure of httpx2 as one of ours."""
    text = str(error).strip()
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, httpx2.ConnectError) and is_out_of_descriptors():
        return HttpError("descriptors", os.strerror(errno.EMFILE))
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return HttpError("certificate", str(cause.verify_message or said).rstrip("."))
            case ssl.SSLWantReadError() | ssl.SSLWantWriteError():
                continue  # how a handshake waits, not how it fails
            case ssl.SSLError():
                return HttpError("tls", said)
            case socket.gaierror():
                return HttpError("dns", said)
            case ConnectionRefusedError():
                return HttpError("refused", said)
    return HttpError(_kind_of(error, text), said)


def _blame(failure: HttpError, proxy: str | None) -> HttpError:
    """The failure of a request that went through this proxy."""
    if proxy is None or failure.kind not in (*_NO_WAY, "proxy"):
        return failure
    return HttpError("proxy", f"{shown(proxy)}: {failure}")


def _kind_of(error: Exception, text: str) -> FailureKind:
    match error:
        case httpx2.ConnectTimeout():
            return "connect_timeout"
        case httpx2.TimeoutException():
            return "silence"
        case httpx2.ProxyError():
            return "proxy"
        case httpx2.ConnectError():
            return "certificate" if "CERTIFICATE" in text else "tls" if "SSL:" in text else "connect"
        case httpx2.RemoteProtocolError():  # told apart by words only
            return "closed" if "without" in text or "disconnected" in text else "protocol"
        case httpx2.NetworkError():
            return "closed"
        case _:
            return "protocol"


def _hung_up(error: httpx2.TransportError) -> bool:
    """Whether the connection ended before the first byte of an answer."""
    if isinstance(error, httpx2.RemoteProtocolError):
        return "without sending a response" in str(error)
    return isinstance(error, httpx2.ReadError | httpx2.WriteError)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, members of groups included."""
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [one.__context__, one.__cause__]
