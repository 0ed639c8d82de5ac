"""Hooks of the type `mcp_tool`: a tool of a connected server answers in the place of a command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from robota._lazy_pattern import lazy_pattern
from robota.core.hooks.definition import HookDefinition
from robota.core.hooks.outcome import HookResult
from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.core.tool import ToolContext
from robota.sdk.mcp.servers import McpServers

_FIELD = lazy_pattern(r"\$\{([\w.]+)\}", re.ASCII)


class McpToolExecutor:
    """`server`, `tool` and `input`, in whose texts `${tool_input.file_path}` stands for what happened."""

    type = "mcp_tool"

    def __init__(self, servers: Callable[[], McpServers]) -> None:
        self._servers = servers

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        server, tool = (str(hook.extra.get(key) or "") for key in ("server", "tool"))
        connection = self._servers().connections.get(server)
        if connection is None:
            return HookResult(exit_code=1, failure=f"needs the MCP server {server!r}, which is not here")
        given = hook.extra.get("input")
        arguments = fill_in(given, hook_input) if isinstance(given, dict) else dict(hook_input)
        result = await connection.call(tool, arguments, ToolContext(tool_name=tool))
        if not result.ok:
            return HookResult(exit_code=1, stderr=result.error or "", failure=result.error)
        return HookResult(stdout=result.content)


def fill_in(value: Json, hook_input: Mapping[str, Json]) -> Json:
    """The value with every field that a text of it names."""
    if isinstance(value, dict):
        return {key: fill_in(inner, hook_input) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_in(inner, hook_input) for inner in value]
    if not isinstance(value, str):
        return value
    return _FIELD.sub(lambda found: _show(_find(hook_input, found[1])), value)


def _find(hook_input: Mapping[str, Json], path: str) -> Json:
    found: Json = dict(hook_input)
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _show(value: Json) -> str:
    return "" if value is None else value if isinstance(value, str) else encode(value).decode()
