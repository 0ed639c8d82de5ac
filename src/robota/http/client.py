"""`HttpClient`: sends requests over connections of its own, and by way of httpx2 where only that can.

httpx2 is asked, and loaded, when the environment names a proxy or somebody handed in a transport or client of
its kind. Redirects are never followed: a key goes to the host it was meant for and to no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary, ref

from msgspec import Struct, field

from robota.http.address import AddressPolicy, Resolve, find_proxy, resolve_checked
from robota.http.connection import KEEP_ALIVE_SECONDS, Connection, Pool, close_in
from robota.http.dial import dial, look_up
from robota.http.errors import HttpError
from robota.http.exchange import Reply, Request

if TYPE_CHECKING:
    import ssl

    from robota.http.detour import Detour
    from robota.http.url import Url

CONNECT_SECONDS = 10.0
REQUEST_TIMEOUT = 408
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class HttpClient(Struct, eq=False, kw_only=True):
    """Requests to any server, from any event loop; connections are kept until `aclose()`.

    `silence` is how many seconds a server may send nothing. With a `policy` a host is contacted only at the
    addresses that were looked up and found to be allowed: past any proxy, and each time anew. With a `detour`
    every request goes that way.
    """

    connect_seconds: float = CONNECT_SECONDS
    silence: float | None = None
    keep_alive: float = KEEP_ALIVE_SECONDS
    tls: ssl.SSLContext | None = None
    policy: AddressPolicy | None = None
    resolve: Resolve | None = None
    proxies: bool = True
    detour: Detour | None = None
    _always_detour: bool = False
    _pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Pool]] = field(default_factory=WeakKeyDictionary)

    def __post_init__(self) -> None:
        self._always_detour = self.detour is not None
        if self.policy is not None:
            self.keep_alive, self.proxies = 0.0, False

    async def send(self, request: Request, body: bytes = b"", *, repeatable: bool = False) -> Reply:
        """Send it, and return the reply once its head is there; the caller closes it.

        A server may close a kept connection just as it is used again. A request that is `repeatable`, or by
        its method does no harm when it is done twice, is then sent once more, unless a byte of an answer has
        come; others get new connections.
        """
        repeatable = repeatable or request.method in _IDEMPOTENT
        proxy = find_proxy(request.url) if self.proxies and not self._always_detour else None
        if self._always_detour or proxy is not None:
            return await self._send_around(request, body, repeatable, proxy)
        pool = self._pool()
        kept = pool.take(request.url.origin) if repeatable else None
        while True:
            connection = kept or await self._connect(pool, request)
            pool.busy.add(connection)
            reply = None
            try:
                connection.begin(bodiless=request.method == "HEAD")
                connection.transport.write(request.encode(body))
                while not connection.status:
                    await connection.wait(self.silence)
                if kept is not None and connection.status == REQUEST_TIMEOUT:
                    kept = None  # said to a connection that was idle, and crossed our request on its way
                    continue
                reply = Reply(connection, self.silence)
                return reply
            except HttpError as error:
                if kept is None or connection.heard or error.kind != "closed":
                    raise
                kept = None
            finally:
                if reply is None:
                    pool.give_back(connection)

    async def _connect(self, pool: Pool, request: Request) -> Connection:
        url = request.url
        make = partial(Connection, pool, url.origin)
        try:
            async with asyncio.timeout(self.connect_seconds):
                return await dial(url, await self._find_addresses(url), make, tls=self.tls)
        except TimeoutError as error:
            raise HttpError("connect_timeout", "no connection came about in time") from error

    async def _find_addresses(self, url: Url) -> Sequence[str]:
        if self.policy is not None:
            return await resolve_checked(url, self.policy, resolve=self.resolve)
        return (url.host,) if url.is_address else await look_up(url.host, url.port)

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        known = self._pools.get(loop)
        pool = None if known is None else known()
        if pool is None:
            pool = Pool(self.keep_alive)
            self._pools[loop] = ref(pool)
        return pool

    async def _send_around(self, request: Request, body: bytes, repeatable: bool, proxy: str | None) -> Reply:
        if self.detour is None:
            from robota.http.detour import Detour  # noqa: PLC0415 - leads to httpx2, which few need

            self.detour = Detour(tls=self.tls)
        timeouts = {"connect": self.connect_seconds, "read": self.silence, "write": None, "pool": None}
        return await self.detour.send(request, body, timeouts, repeatable=repeatable, proxy=proxy)

    async def aclose(self) -> None:
        """Close the connections of all event loops; another request would open new ones."""
        pools = [(loop, known()) for loop, known in list(self._pools.items())]
        self._pools.clear()
        for loop, pool in pools:
            if pool is not None:
                await close_in(loop, pool)
        if self.detour is not None:
            await self.detour.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
