"""How a server is reached: a process, Streamable HTTP, or the older SSE. Importing this loads the library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from robota.core.errors import ConfigurationError
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import LoginNeededError
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
            return _open_http(definition, sent, auth)
        case "sse":
            return _open_sse(definition, sent, auth)
        case _:
            raise ConfigurationError(
                f"The MCP server {definition.name!r} lives in a program that is not there."
            )


@asynccontextmanager
async def _open_http(
    definition: ServerDefinition, headers: dict[str, str], auth: httpx2.Auth | None
) -> AsyncIterator[Streams]:
    async with (
        _make_client(headers, auth=auth) as client,
        streamable_http_client(definition.url, http_client=client) as (read, write),
    ):
        yield read, write


@asynccontextmanager
async def _open_sse(
    definition: ServerDefinition, headers: dict[str, str], auth: httpx2.Auth | None
) -> AsyncIterator[Streams]:
    async with sse_client(
        definition.url,
        headers=headers,
        timeout=REQUEST_SECONDS,
        sse_read_timeout=STREAM_SECONDS,
        httpx_client_factory=_make_client,
        auth=auth,
    ) as (read, write):
        yield read, write


def _make_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout or httpx2.Timeout(REQUEST_SECONDS, read=STREAM_SECONDS),
        event_hooks={"response": [_refuse_strangers]},
    )


async def _refuse_strangers(response: httpx2.Response) -> None:
    """Say it plainly when a server wants a login; whoever can log in was asked before."""
    if response.status_code == httpx2.codes.UNAUTHORIZED:
        raise LoginNeededError(f"{response.url.host} wants a login.")
