"""How adapters reach a model service: POST to one address over httpx2, every failure as one of our errors.

URL, headers and timeouts are prepared once. httpx2 is loaded with the first request; there is one client per
event loop, and a TLS context, shared by all, only when an address needs one. Redirects are not followed, so a
key goes to the host it was configured for and to no other. No error text repeats a secret.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary, WeakSet

from robota._version import __version__
from robota.core.errors import ConfigurationError, NetworkError, RobotaError
from robota.providers.wire.errors import Refusal, describe_failure, describe_refusal

if TYPE_CHECKING:
    import ssl
    from asyncio import AbstractEventLoop

    import httpx2

CONNECT_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 60.0
MAX_ERROR_BYTES = 64 * 1024
_TIMEOUT = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
"""Waiting for the next byte is not limited here, unless `silence` says so: the loop owns the idle timer."""
_DEFAULT_HEADERS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": f"robota/{__version__}",
}
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")


class HttpReply:
    """A reply over HTTP that is under way."""

    __slots__ = ("_response", "headers")

    def __init__(self, response: httpx2.Response) -> None:
        self.headers: Mapping[str, str] = response.headers
        self._response = response

    def parts(self) -> AsyncGenerator[bytes, None]:
        return iterate_body(self._response)

    async def aclose(self) -> None:
        await self._response.aclose()


class HttpChannel:
    """The way to one service, at one address unless `address` says otherwise.

    `secrets` are hidden in every error, and so are the values of headers that look secret.
    `client` and `transport` are httpx2's own. A client that was handed in keeps its headers, proxies, hooks
    and connections and is not closed here; a transport is, and serves one event loop only.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        provider: str,
        secrets: Sequence[str] = (),
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        silence: float | None = None,
    ) -> None:
        parts = _split(url, provider)
        host = parts.netloc.rpartition("@")[2]
        self.origin = f"{parts.scheme}://{host}"
        """Where requests go, without path and credentials: fit to be shown."""
        self.provider = provider
        hidden = [*secrets, *(value for name, value in headers.items() if is_secret(name))]
        self.secrets = tuple(secret for secret in hidden if secret)
        self._url = url
        self._secure = parts.scheme == "https"
        self._headers = _encode_headers({"host": host, **_DEFAULT_HEADERS}, headers, provider)
        self._transport = transport
        self._given_client = client
        self._targets: dict[str, httpx2.URL] = {}
        self._clients: WeakKeyDictionary[AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._known: WeakSet[httpx2.AsyncClient] = WeakSet()
        """Clients that have had an answer, and so may have a connection that is used again."""
        self._extensions = {"timeout": {**_TIMEOUT, "read": silence}}

    async def open(self, body: bytes, *, model: str = "") -> HttpReply:
        """Send it and return the reply to read, which the caller must close; a refusal is raised."""
        return HttpReply(await self.post(body, model=model))

    async def post(self, body: bytes, *, model: str = "") -> httpx2.Response:
        """Send it and return the open reply, which the caller must close; a refusal is raised."""
        import httpx2  # noqa: PLC0415 - 74 ms, paid by the first request

        client = self._given_client or self._client()
        try:
            try:
                response = await client.send(self._request(body, model), stream=True, follow_redirects=False)
            except httpx2.TransportError as error:
                if client not in self._known or not _hung_up(error):
                    raise
                # The server closed a kept connection just as it was to be used again.
                response = await client.send(self._request(body, model), stream=True, follow_redirects=False)
        except httpx2.HTTPError as error:
            raise self.translate(error) from error
        self._known.add(client)
        if response.is_success:
            return response
        raise await self._refusal(response, model)

    def translate(self, error: Exception) -> NetworkError:
        """A failure of httpx2 as the error to raise."""
        failure = describe_failure(error, self.provider, self.origin, self.secrets)
        failure.__cause__ = error
        return failure

    async def aclose(self) -> None:
        """Close the connections of all event loops; another request would open new ones."""
        import asyncio  # noqa: PLC0415 - a loop is running, so it is loaded

        here = asyncio.get_running_loop()
        clients = list(self._clients.items())
        self._clients.clear()
        for loop, client in clients:
            if loop is here:
                await client.aclose()
            elif loop.is_running():  # in another thread
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(client.aclose(), loop))

    def _client(self) -> httpx2.AsyncClient:
        import asyncio  # noqa: PLC0415 - a loop is running, so it is loaded

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._clients[loop] = self._new_client()
        return client

    def _new_client(self) -> httpx2.AsyncClient:
        import httpx2  # noqa: PLC0415 - see post()

        limits = httpx2.Limits(
            max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEEP_ALIVE_SECONDS
        )
        verify = _trusting_context() if self._secure else _empty_context()
        transport = self._transport
        if transport is None:
            from robota.providers.wire.pool import find_transport  # noqa: PLC0415 - as httpx2

            transport = find_transport(verify, limits)
        return httpx2.AsyncClient(transport=transport, verify=verify, limits=limits)

    def address(self, model: str) -> str:
        """Where requests for a model go; services that put it into the URL say it here."""
        return self._url

    def _request(self, body: bytes, model: str) -> httpx2.Request:
        import httpx2  # noqa: PLC0415 - see post()

        headers = [*self._headers, (b"content-length", b"%d" % len(body))]
        if self._given_client is not None:  # its headers and cookies apply
            return self._given_client.build_request(
                "POST", self.address(model), headers=headers, content=body, extensions=self._extensions
            )
        address = self.address(model)
        target = self._targets.get(address)
        if target is None:
            target = self._targets[address] = httpx2.URL(address)
        return httpx2.Request(
            "POST",
            target,
            headers=headers,
            stream=httpx2.ByteStream(body),  # with `content=` the headers would be worked out once more: 9 µs
            extensions=self._extensions,
        )

    async def _refusal(self, response: httpx2.Response, model: str) -> RobotaError:
        import httpx2  # noqa: PLC0415 - see post()

        try:
            body = await read_body(response, MAX_ERROR_BYTES)
        except httpx2.HTTPError:
            body = b""  # half an explanation: the status says enough
        headers = dict(response.headers.items())
        return self.describe(Refusal(response.status_code, headers, body, model, self.address(model)))

    def describe(self, refusal: Refusal) -> RobotaError:
        """The error for an answer that is not 200; services with errors of their own kind say it here."""
        return describe_refusal(refusal, self.provider, self.secrets)


def iterate_body(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The reply's bytes as they arrive, decompressed if the service compressed them against our wish."""
    read_before = response.is_stream_consumed  # by a hook or a transport that has it all
    if read_before or "content-encoding" in response.headers:
        return response.aiter_bytes()
    return response.aiter_raw()


async def read_body(response: httpx2.Response, limit: int) -> bytes:
    """The body of an open reply, which is closed; of one that is longer the beginning."""
    body = bytearray()
    try:
        async for part in iterate_body(response):
            body += part
            if len(body) > limit:
                break
    finally:
        await response.aclose()
    return bytes(body)


def _split(url: str, provider: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            parts.port  # noqa: B018 - it is read here, and refused if it is none
            return parts
    except ValueError:  # half an address in brackets, a port of letters
        pass
    shown = url.rpartition("@")[2]
    raise ConfigurationError(
        f"The base URL {shown!r} of provider {provider!r} is no web address; it must look like "
        "https://host/v1 or http://localhost:8080/v1."
    )


def _hung_up(error: httpx2.TransportError) -> bool:
    """Whether the connection ended before the first byte of an answer."""
    import httpx2  # noqa: PLC0415 - it raised the error, so it is loaded

    if isinstance(error, httpx2.RemoteProtocolError):
        return "without sending a response" in str(error)
    return isinstance(error, httpx2.ReadError | httpx2.WriteError)


def endpoint(base_url: str, path: str, *, version: str = "") -> str:
    """Where to POST, from a base URL with or without version, path and slash; its query stays behind."""
    place, mark, query = base_url.strip().partition("?")
    place = place.rstrip("/").removesuffix(path).removesuffix(version)
    return f"{place}{version}{path}{mark}{query}"


def is_secret(header: str) -> bool:
    name = header.lower()
    return any(word in name for word in _SECRET_WORDS)


def _encode_headers(
    ours: Mapping[str, str], theirs: Mapping[str, str], provider: str
) -> list[tuple[bytes, bytes]]:
    merged = {**ours, **{name.lower(): value for name, value in theirs.items()}}
    for name, value in merged.items():
        if not (name + value).isascii() or not (name + value).isprintable():
            raise ConfigurationError(
                f"The header {name!r} of provider {provider!r} has characters that HTTP does not allow; "
                "check the key or value for line breaks and letters that are not ASCII."
            )
    return [(name.encode(), value.encode()) for name, value in merged.items()]


@functools.cache
def _trusting_context() -> ssl.SSLContext:
    """The system's certificates (or those of `SSL_CERT_FILE`): 23 ms, once per process."""
    import httpx2  # noqa: PLC0415 - see HttpChannel.post()

    return httpx2.create_ssl_context()


@functools.cache
def _empty_context() -> ssl.SSLContext:
    """For plain HTTP, where httpx2 wants a context too; it trusts nobody and costs nothing."""
    import ssl  # noqa: PLC0415 - httpx2 has loaded it

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
