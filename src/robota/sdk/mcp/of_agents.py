"""The MCP servers of an agent's definition: those it names, and those it brings along while it works."""

from __future__ import annotations

from collections.abc import Mapping

from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.agents.subagent import has_server_tool
from robota.sdk.mcp.deferral import SearchPolicy
from robota.sdk.mcp.servers import McpServers
from robota.sessions.session import Session
from robota.tools.mcp.definition import ServerDefinition


async def bring_servers(
    agent: AgentDefinition,
    child: Session,
    shared: McpServers,
    own: McpServers,
    definitions: Mapping[str, ServerDefinition],
) -> list[str]:
    """Give a subagent the tools of the servers that its definition names, and connect in `own` those that it
    brings along, till its end; what could not be had. A name that the session has a server of means that
    one: rules about it were written for it."""
    known = {*shared.connections, *(each.name for each in shared.turned_off)}
    names = (*agent.servers, *(name for name in definitions if name in known))
    absent = [name for name in names if name not in shared.connections]
    for name in dict.fromkeys(names):
        if (connection := shared.connections.get(name)) is not None:
            await connection.settle()
            tools = (tool for tool in shared.tools_of(connection) if has_server_tool(agent, tool.name))
            child.agent.toolset = child.agent.toolset.plus(*tools)
    wanted = {name: each for name, each in definitions.items() if name not in known}
    if wanted:
        own.policy = SearchPolicy("never")
        own.take(wanted)
        own.attach(child)
        await child.own(own)
        await own.settle(max(each.start_timeout for each in wanted.values()))
    return [f"There is no MCP server {name!r} here, which the agent {agent.name} names." for name in absent]
