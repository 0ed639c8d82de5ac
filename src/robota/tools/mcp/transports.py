"""How a server is reached: a process, Streamable HTTP, or the older SSE. Importing this loads the library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from robota.core.errors import ConfigurationError
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.inspected import InspectedStream
from robota.tools.mcp.noise import Noise
from robota.tools.mcp.stdio import StdioTransport

REQUEST_SECONDS = 30.0
STREAM_SECONDS = 300.0
"""How long a stream of a server may be silent before it is opened again."""
Streams = tuple[Any, Any]


class InspectedTransport:
    """A transport whose messages are looked at on their way."""

    def __init__(
        self, transport: AbstractAsyncContextManager[Streams], noise: Noise, on_end: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._noise = noise
        self._on_end = on_end

    async def __aenter__(self) -> Streams:
        read, write = await self._transport.__aenter__()
        return InspectedStream(read, self._noise, self._on_end), write

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._transport.__aexit__(*error)


def open_transport(
    definition: ServerDefinition,
    noise: Noise,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
) -> AbstractAsyncContextManager[Streams]:
    """What is entered to reach the server; `headers` and `auth` besides what the definition says."""
    sent = {**definition.headers, **(headers or {})}
    match definition.kind:
        case "stdio":
            return StdioTransport(definition, noise)
        case "http":
            return _open_http(definition.url, partial(_make_client, noise, sent, auth))
        case "sse":
            return _open_sse(definition.url, partial(_make_client, noise, sent, auth))
        case _:
            raise ConfigurationError(
                f"The MCP server {definition.name!r} lives in a program that is not there."
            )


@asynccontextmanager
async def _open_http(url: str, make_client: Callable[[], httpx2.AsyncClient]) -> AsyncIterator[Streams]:
    async with (
        make_client() as client,
        streamable_http_client(url, http_client=client) as (read, write),
    ):
        yield read, write


@asynccontextmanager
async def _open_sse(url: str, make_client: Callable[[], httpx2.AsyncClient]) -> AsyncIterator[Streams]:
    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return make_client()

    async with sse_client(url, httpx_client_factory=make) as (read, write):
        yield read, write


def _make_client(noise: Noise, headers: dict[str, str], auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    async def note_refusal(response: httpx2.Response) -> None:
        noise.wants_login = noise.wants_login or response.status_code == httpx2.codes.UNAUTHORIZED

    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx2.Timeout(REQUEST_SECONDS, read=STREAM_SECONDS),
        event_hooks={"response": [note_refusal]},
    )
