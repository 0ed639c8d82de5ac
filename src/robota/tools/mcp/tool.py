"""`McpTool`, a tool of a server; `RelayMcpTool`, one whose calls somebody else passes on to a server."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from robota.core.context import BYTES_PER_TOKEN
from robota.core.events import OwnerPathSegment
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.provider import ToolSchema
from robota.core.tool import ToolContext, ToolResult
from robota.tools.mcp.definition import tool_name

if TYPE_CHECKING:
    from robota.tools.mcp.connection import ServerConnection
    from robota.tools.mcp.offer import OfferedTool

Relay: TypeAlias = Callable[
    [JsonObject, ToolContext, tuple[OwnerPathSegment, ...]], Awaitable[ToolResult | str]
]
"""Passes a call on: its arguments, its context, and the path of those it belongs to."""


class McpTool:
    """One tool of a connected server. It has no class, whatever the server claims of it."""

    tool_class = None

    def __init__(self, connection: ServerConnection, offered: OfferedTool) -> None:
        self.connection = connection
        self.offered = offered
        self.name = tool_name(connection.definition, offered.name)
        self.description = offered.description or f"{offered.name} of {connection.definition.name}"
        self.parameters = offered.schema
        self.touches = offered.touches

    @cached_property
    def tokens(self) -> int:
        """What it takes of the window."""
        return math.ceil(len(encode([self.name, self.description, self.parameters])) / BYTES_PER_TOKEN)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return await self.connection.call(self.offered.name, arguments, context)


class RelayMcpTool:
    """A tool by its schema, and whoever passes its calls on, as an agent that stands for a server."""

    tool_class = None

    def __init__(self, schema: ToolSchema, run: Relay) -> None:
        self.name = schema.name
        self.description = schema.description
        self.parameters = schema.parameters
        self._run = run

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        answer = await self._run(arguments, context, self.owner_path(context))
        return ToolResult(content=answer) if isinstance(answer, str) else answer

    def owner_path(self, context: ToolContext) -> tuple[OwnerPathSegment, ...]:
        """That of the call, and below it this tool as the agent that answers."""
        return (
            OwnerPathSegment("execution", context.execution_id),
            OwnerPathSegment("tool", context.call_id),
            OwnerPathSegment("agent", self.name),
        )
