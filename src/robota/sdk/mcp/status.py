"""How the servers of a session stand, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.messages import Json, JsonObject
from robota.core.plain_text import strip_controls
from robota.sdk.mcp.servers import McpServers
from robota.tools.mcp.connection import ServerConnection
from robota.tools.mcp.definition import ServerDefinition

_SIGNS = {"pending": "connecting", "needs-auth": "wants a login"}
_WIDTH = 160


def list_states(servers: McpServers) -> list[JsonObject]:
    """Name, status and what else is known of each, as programs read it."""
    told = [_describe(each) for each in servers.connections.values()]
    told += [_base(each) | {"status": "disabled"} for each in servers.turned_off]
    return told


def _describe(connection: ServerConnection) -> JsonObject:
    offer = connection.offer
    told = _base(connection.definition) | {"status": connection.state}
    if offer.server:
        told["serverInfo"] = {"name": offer.server, "version": offer.version}
    if connection.error:
        told["error"] = connection.error
    if connection.state == "connected":
        told["tools"] = [
            {"name": tool.name, "description": tool.description, "annotations": _annotate(tool.annotations)}
            for tool in offer.tools.values()
        ]
    return told


def _annotate(annotations: Mapping[str, Json]) -> JsonObject:
    """What a server says of a tool, by the names that programs know."""
    names = (("readOnly", "readOnlyHint"), ("destructive", "destructiveHint"), ("openWorld", "openWorldHint"))
    return {told: annotations[name] for told, name in names if name in annotations}


def _base(definition: ServerDefinition) -> JsonObject:
    config: JsonObject = {"type": definition.kind}
    if definition.kind == "stdio":
        config |= {"command": definition.command, "args": list(definition.args)}
    elif definition.kind == "client":
        config = {"type": "sdk", "name": definition.name}
    else:
        config["url"] = definition.url
    return {"name": definition.name, "scope": definition.scope, "config": config}


def describe_all(servers: McpServers) -> list[str]:
    """For people: a line for each server, with what its tools cost."""
    deferred = {tool.name for tool in servers.find_deferred()}
    costs = servers.costs
    lines = []
    for connection in servers.connections.values():
        definition, tools = connection.definition, servers.tools_of(connection)
        hidden = sum(tool.name in deferred for tool in tools)
        parts = [_SIGNS.get(connection.state, connection.state)]
        if connection.state == "connected":
            parts.append(f"{len(tools)} tools")
            parts.append(f"{costs[connection]:,} tokens{' once found' if hidden else ''}")
            parts += [f"{len(connection.offer.prompts)} prompts"] if connection.offer.prompts else []
            parts += [f"{len(connection.offer.resources)} resources"] if connection.offer.resources else []
        elif connection.error:
            parts.append(connection.error)
        lines.append(cut(f"  {definition.name} ({definition.scope}): {', '.join(parts)}"))
    lines += [f"  {each.name} ({each.scope}): turned off" for each in servers.turned_off]
    if deferred:
        total = sum(tool.tokens for tool in servers.all_tools if tool.name in deferred)
        lines.append(
            f"{len(deferred):,} tools are found by searching; all of them would take {total:,} tokens."
        )
    return lines


def describe_one(servers: McpServers, name: str) -> list[str]:
    """For people: everything about one server."""
    connection = servers.get(name)
    definition, offer = connection.definition, connection.offer
    lines = [
        f"{name}: {_SIGNS.get(connection.state, connection.state)}",
        cut(f"  {definition.kind}: {definition.address}"),
        f"  from {definition.source or definition.scope}",
    ]
    if offer.server:
        lines.append(f"  calls itself {offer.server} {offer.version}, protocol {offer.protocol}")
    lines += [cut(f"  {connection.error}")] if connection.error else []
    deferred = {tool.name for tool in servers.find_deferred()}
    for tool in servers.tools_of(connection):
        mark = " (found by searching)" if tool.name in deferred else ""
        lines.append(cut(f"  {tool.name}{mark}, {tool.tokens:,} tokens: {tool.description}"))
    lines += [
        cut(f"  /{definition.prefix}{each.name}: {each.description}") for each in offer.prompts.values()
    ]
    listed = (*offer.resources, *offer.templates)
    lines += [cut(f"  @{name}:{each.uri}: {each.description or each.name}") for each in listed]
    lines += [cut(f"  {line}") for line in connection.noise.describe()]
    return lines


def cut(line: str) -> str:
    words = strip_controls(line).replace("\n", " ")
    return words if len(words) <= _WIDTH else words[: _WIDTH - 1] + "…"
