"""The MCP servers that an editor wants a session to have, as `.mcp.json` would name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from robota.core.messages import JsonObject

McpServer: TypeAlias = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


def read_servers(servers: Iterable[McpServer]) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for server in servers:
        match server:
            case McpServerStdio():
                env = {each.name: each.value for each in server.env}
                found[server.name] = {"command": server.command, "args": list(server.args), "env": env}
            case HttpMcpServer() | SseMcpServer():
                headers = {each.name: each.value for each in server.headers}
                found[server.name] = {"type": server.type, "url": server.url, "headers": headers}
            case _:
                continue  # servers inside the connection are a draft, and not in our capabilities
    return found
