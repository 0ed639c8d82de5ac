"""`/mcp`: the servers of the session, and what may be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult, failure
from robota.sdk.mcp.status import describe_all, describe_one

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

_NONE = "No MCP servers are configured here: `robota mcp add` or a .mcp.json brings some."


async def mcp(host: InteractiveSession, args: str) -> CommandResult:
    servers = host.kit.servers
    word, _, name = args.strip().partition(" ")
    name = name.strip()
    if word in ("reconnect", "enable", "disable"):
        if not name:
            return failure(f"Usage: /mcp {word} NAME")
        if word == "reconnect":
            servers.reconnect(name)
        else:
            servers.toggle(name, enabled=word == "enable")
        if word == "disable":
            return CommandResult(f"The MCP server {name} is turned off for this session.")
        await servers.get(name).settle()
        return CommandResult("\n".join(describe_one(servers, name)))
    if word:
        return CommandResult("\n".join(describe_one(servers, word)))
    lines = describe_all(servers)
    wanted = [] if host.project.trusted else host.project.trust.wishes.of("servers")
    if wanted:
        lines += ["This directory is not trusted, so these of it are not connected (/trust):"]
        lines += [f"  {text}" for text in wanted]
    return CommandResult("\n".join(["MCP servers:", *lines]) if lines else _NONE)
