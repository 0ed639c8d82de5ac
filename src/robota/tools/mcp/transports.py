"""How a server is reached: a process, Streamable HTTP, or the older SSE. Importing this loads the library.

Whatever a server in a process of its own does, memory stays bounded and the process ends with the connection:
messages are lines on its standard input and output, a line that never ends breaks the connection, lines that
are no messages are kept for diagnosis, and so is standard error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import time
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.process_tree import group_is_alive, lowest_relative
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import Noise

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

MAX_SCHEMA = 64 * 1024
"""Bytes of one tool's schema."""
_NAME = re.compile(r"\S.{0,199}", re.DOTALL)
REQUEST_SECONDS = 30.0
STREAM_SECONDS = 300.0
"""How long a stream of a server may be silent before it is opened again."""
Streams = tuple[Any, Any]


def open_transport(
    definition: ServerDefinition,
    noise: Noise,
    headers: Mapping[str, str] | None = None,
    auth: httpx2.Auth | None = None,
) -> AbstractAsyncContextManager[Streams]:
    """What is entered to reach the server; `headers` and `auth` besides what the definition says."""
    make = partial(_make_client, noise, {**definition.headers, **(headers or {})}, auth)
    match definition.kind:
        case "stdio":
            return StdioTransport(definition, noise)
        case "http":
            return _open_http(definition.url, make)
        case "sse":
            return sse_client(definition.url, httpx_client_factory=lambda *_, **__: make())
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


def _make_client(noise: Noise, headers: dict[str, str], auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    async def note_refusal(response: httpx2.Response) -> None:
        noise.wants_login = noise.wants_login or response.status_code == httpx2.codes.UNAUTHORIZED

    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx2.Timeout(REQUEST_SECONDS, read=STREAM_SECONDS),
        event_hooks={"response": [note_refusal]},
    )


# --- messages on their way ------------------------------------------------------------------------------


class InspectedStream(Struct, eq=False):
    """The messages of a server, looked at on their way; `on_end` is told when no more will come."""

    stream: Any
    noise: Noise
    on_end: Callable[[], None]

    @property
    def last_context(self) -> Any:
        return getattr(self.stream, "last_context", None)

    def __aiter__(self) -> InspectedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            message: SessionMessage | Exception = await self.stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self.on_end()
            if isinstance(error, anyio.EndOfStream):
                raise StopAsyncIteration from None
            raise
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            mend(message.message.result, self.noise)
        return message

    async def __aenter__(self) -> InspectedStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stream.aclose()


@asynccontextmanager
async def inspect(
    transport: AbstractAsyncContextManager[Streams], noise: Noise, on_end: Callable[[], None]
) -> AsyncIterator[Streams]:
    """A transport whose messages are looked at."""
    async with transport as (read, write):
        yield InspectedStream(read, noise, on_end), write


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


# --- a process ------------------------------------------------------------------------------------------

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message."""
EXIT_SECONDS = 1.0
"""After its input was closed, and again after it was asked to end."""
DRAIN_SECONDS = 0.5
"""How long output may still come in after the process is gone."""


class StdioTransport:
    """Enter it to start the process, leave it to end it and all that it started."""

    def __init__(self, definition: ServerDefinition, noise: Noise) -> None:
        self._definition = definition
        self._noise = noise
        self._tasks: list[asyncio.Task[None]] = []
        self._started = time.monotonic()
        self._transport: asyncio.SubprocessTransport
        self._protocol: _Exiting

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    async def __aenter__(self) -> tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]:
        definition, loop = self._definition, asyncio.get_running_loop()
        self._transport, self._protocol = await loop.subprocess_exec(
            lambda: _Exiting(MAX_LINE, loop),
            definition.command,
            *definition.args,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=definition.cwd or None,
            env=get_default_environment() | dict(definition.env),
            start_new_session=True,
        )
        # Now, when the process runs: whatever is opened is closed again.
        self._to_us, self._from_server = _stream()
        self._to_server, self._from_us = _stream()
        work = (self._read(), self._write(), self._listen(), self._watch())
        self._tasks = [asyncio.create_task(each, name=f"mcp {definition.name}") for each in work]
        return self._from_server, self._to_server

    async def __aexit__(self, *_: object) -> None:
        try:
            self._to_server.close()
            if self._protocol.stdin is not None:
                self._protocol.stdin.close()
            if not await self._has_exited():
                self._signal(signal.SIGTERM)
                await self._has_exited()
        finally:
            self._signal(signal.SIGKILL)
            self._transport.close()
            for task in self._tasks:
                task.cancel()
            for stream in (self._to_us, self._from_server, self._to_server, self._from_us):
                stream.close()
        await asyncio.wait(self._tasks, timeout=EXIT_SECONDS)

    async def _has_exited(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await self._protocol.exited.wait()
        return self._protocol.exited.is_set()

    def _signal(self, number: signal.Signals) -> None:
        if os.name != "posix":
            if not self._protocol.exited.is_set():
                self._transport.kill()
            return
        pid = self.pid
        if group_is_alive(pid, lowest_relative(pid, time.monotonic() - self._started)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)

    # --- the pipes --------------------------------------------------------------------------------------

    async def _read(self) -> None:
        stdout = self._protocol.stdout
        assert stdout is not None
        with self._to_us, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                try:
                    line = await stdout.readuntil(b"\n")
                except asyncio.IncompleteReadError as rest:
                    self._take_stray(rest.partial)
                    return
                except asyncio.LimitOverrunError:
                    self._noise.complain(f"It sent a message of more than {MAX_LINE:,} bytes.")
                    return
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self._take_stray(line)
                    continue
                await self._to_us.send(SessionMessage(message))

    def _take_stray(self, line: bytes) -> None:
        if line.strip():
            self._noise.add_stray(line.strip())

    async def _write(self) -> None:
        stdin = self._protocol.stdin
        assert stdin is not None
        try:
            async for sent in self._from_us:
                text = sent.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode() + b"\n")
                await stdin.drain()
        except (OSError, anyio.ClosedResourceError):
            self._to_us.close()  # whoever waits for an answer hears of it

    async def _listen(self) -> None:
        stderr = self._protocol.stderr
        assert stderr is not None
        while data := await stderr.read(64 * 1024):
            self._noise.stderr.add(data)

    async def _watch(self) -> None:
        """A process that is gone may have left its pipes to another one."""
        await self._protocol.exited.wait()
        await asyncio.wait(self._tasks[:1], timeout=DRAIN_SECONDS)
        self._to_us.close()


class _Exiting(SubprocessStreamProtocol):
    """Knows when the process itself is gone, whoever still has its pipes."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


def _stream() -> tuple[MemoryObjectSendStream[Any], MemoryObjectReceiveStream[Any]]:
    return anyio.create_memory_object_stream(0)
