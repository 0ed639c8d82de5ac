"""Connections that are kept, the one used last on top.

httpx2's own pool looks at every connection for every request, which with hundreds of agents at once is most
of what they cost, and sets up an event and locks for each. Here a request takes the top of a stack or opens a
new connection; there is no limit to their number, as there is none to the number of agents.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Protocol, cast
from urllib.request import getproxies

import anyio
import httpcore2
import httpx2

from robota.providers.wire.network import Backend

if TYPE_CHECKING:
    import ssl
    from types import TracebackType
    from typing import Self

    from httpcore2 import AsyncHTTP11Connection

_Place = tuple[bytes, bytes, int]


class _Incoming(Protocol):
    def __aiter__(self) -> AsyncIterator[bytes]: ...
    async def aclose(self) -> None: ...


class Pool:
    """What httpx2's transport uses of a pool."""

    def __init__(self, ssl_context: ssl.SSLContext, keepalive_expiry: float | None) -> None:
        self._ssl_context = ssl_context
        self._keepalive_expiry = keepalive_expiry
        self._backend = Backend()
        self._idle: dict[_Place, list[AsyncHTTP11Connection]] = {}
        self._busy: set[AsyncHTTP11Connection] = set()

    async def handle_async_request(self, request: httpcore2.Request) -> httpcore2.Response:
        origin = request.url.origin
        idle = self._idle.setdefault((origin.scheme, origin.host, origin.port), [])
        connection = await self._find(idle) or await self._connect(request)
        self._busy.add(connection)
        response = None
        try:
            response = await connection.handle_async_request(request)
        finally:
            if response is None:
                await self.abandon(connection)
        body = Body(cast(_Incoming, response.stream), self, connection, idle)
        return httpcore2.Response(
            response.status, headers=response.headers, content=body, extensions=response.extensions
        )

    async def _find(self, idle: list[AsyncHTTP11Connection]) -> AsyncHTTP11Connection | None:
        while idle:
            connection = idle.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return None

    async def _connect(self, request: httpcore2.Request) -> AsyncHTTP11Connection:
        origin, timeouts = request.url.origin, request.extensions.get("timeout", {})
        host, timeout = origin.host.decode("ascii"), timeouts.get("connect")
        stream = await self._backend.connect_tcp(host, origin.port, timeout=timeout)
        if origin.scheme == b"https":
            self._ssl_context.set_alpn_protocols(["http/1.1"])
            name = request.extensions.get("sni_hostname") or host
            stream = await stream.start_tls(self._ssl_context, name, timeout)
        return httpcore2.AsyncHTTP11Connection(origin, stream, self._keepalive_expiry)

    async def give_back(self, connection: AsyncHTTP11Connection, idle: list[AsyncHTTP11Connection]) -> None:
        """A reply was read to its end, or given up: then the connection is closed."""
        self._busy.discard(connection)
        if not connection.is_idle():
            return
        idle.append(connection)
        if idle[0].has_expired():  # the one that has waited longest
            await idle.pop(0).aclose()

    async def abandon(self, connection: AsyncHTTP11Connection) -> None:
        """Something went wrong, or somebody cancelled: in which state the connection is nobody knows."""
        self._busy.discard(connection)
        with anyio.CancelScope(shield=True):
            await connection.aclose()

    async def aclose(self) -> None:
        connections = [*self._busy, *(kept for idle in self._idle.values() for kept in idle)]
        self._busy.clear()
        self._idle.clear()
        with anyio.CancelScope(shield=True):
            for connection in connections:
                await connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Body:
    """The body of a reply; closing it frees the connection."""

    __slots__ = ("_connection", "_idle", "_pool", "_stream")

    def __init__(
        self,
        stream: _Incoming,
        pool: Pool,
        connection: AsyncHTTP11Connection,
        idle: list[AsyncHTTP11Connection],
    ) -> None:
        self._stream = stream
        self._pool: Pool | None = pool
        self._connection = connection
        self._idle = idle

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._stream.__aiter__()

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        closed = False
        try:
            await self._stream.aclose()
            closed = True
        finally:
            if not closed:
                await pool.abandon(self._connection)
        await pool.give_back(self._connection, self._idle)


class Transport(httpx2.AsyncHTTPTransport):
    """httpx2's own, on this pool."""

    def __init__(self, verify: ssl.SSLContext, limits: httpx2.Limits) -> None:
        super().__init__(verify=verify, limits=limits)
        self._pool = Pool(verify, limits.keepalive_expiry)  # type: ignore[assignment]  # has what is used


def find_transport(verify: ssl.SSLContext, limits: httpx2.Limits) -> Transport | None:
    """Ours; `None` where the environment names a proxy, which httpx2 looks for only on its own transport."""
    proxies = getproxies()
    if any(proxies.get(scheme) for scheme in ("http", "https", "all")):
        return None
    return Transport(verify, limits)
