"""How a server is reached: a process, Streamable HTTP, or the older SSE. Importing this loads the library."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import Noise
from robota.tools.mcp.stdio import StdioTransport

MAX_SCHEMA = 64 * 1024
"""Bytes of one tool's schema."""
_NAME = re.compile(r"\S.{0,199}", re.DOTALL)


class InspectedStream:
    """The stream of messages from a server."""

    def __init__(self, stream: Any, noise: Noise, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._noise = noise
        self._on_end = on_end

    async def receive(self) -> SessionMessage | Exception:
        try:
            message: SessionMessage | Exception = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            mend(message.message.result, self._noise)
        return message

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> InspectedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> InspectedStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def mend(result: JsonObject, noise: Noise) -> None:
    """Leave out of a list of tools what cannot be one."""
    tools = result.get("tools")
    if isinstance(tools, list):
        result["tools"] = [tool for tool in tools if _is_usable(tool, noise)]


def _is_usable(tool: Json, noise: Noise) -> bool:
    if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str) or not _NAME.match(name):
        noise.complain("It offers something without a name in its list of tools, which is left out.")
        return False
    schema = tool.get("inputSchema")
    why = "" if isinstance(schema, dict) else "it has no schema of its arguments"
    if isinstance(schema, dict):
        schema.setdefault("type", "object")
        if schema["type"] != "object":
            why = "the schema of its arguments is not that of an object"
        elif len(encode(schema)) > MAX_SCHEMA:
            why = f"the schema of its arguments has more than {MAX_SCHEMA:,} bytes"
        elif not _fits(schema, "properties", dict) or not _fits(schema, "required", list):
            why = "the schema of its arguments is none"
    if why:
        noise.complain(f"Its tool {name!r} is left out: {why}.")
        return False
    for key, kind in (("description", str), ("title", str), ("annotations", dict), ("_meta", dict)):
        if not _fits(tool, key, kind):
            del tool[key]
    output = tool.get("outputSchema")
    if output is not None and (not isinstance(output, dict) or output.get("type") != "object"):
        del tool["outputSchema"]  # results are taken as they come
    return True


def _fits(holder: JsonObject, key: str, kind: type) -> bool:
    return key not in holder or isinstance(holder[key], kind)


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
