"""What comes from a server, looked at before the protocol's library reads it.

The library refuses a whole answer for one wrong part. A tool with a wrong schema is left out and named, the
others are offered; and whoever holds the connection hears when it has ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.tools.mcp.noise import Noise

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
