"""What a session is, as the frame that begins each turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._version import __version__
from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

PROTOCOL_LEVEL = "2.1.325"
"""The version of the other program whose frames these are; ours is in `robota_version`."""


def init_frame(session: InteractiveSession, mode: str = "") -> JsonObject:
    """`mode` in the place of the session's own, for one that it does not have."""
    inner = session.session
    skills: list[str] = []
    agents: list[str] = []
    servers: list[JsonObject] = []
    plugins: list[JsonObject] = []
    if not session.is_ready_made:
        skills = [*session.project.skills.found]
        agents = [*session.kit.subagents.agents]
        known = session.kit.servers.connections
        servers = [{"name": name, "status": each.state} for name, each in known.items()]
        plugins = [{"name": each.name, "path": each.root} for each in session.project.bundles.plugins]
    return {
        "type": "system",
        "subtype": "init",
        "cwd": session.cwd,
        "tools": [schema.name for schema in inner.agent.toolset.schemas],
        "mcp_servers": servers,
        "model": inner.model or inner.agent.provider.name,
        "permissionMode": mode or session.permission_mode,
        "slash_commands": [command.name for command in session.list_commands()],
        "apiKeySource": "none",
        "claude_code_version": PROTOCOL_LEVEL,
        "robota_version": __version__,
        "output_style": "default",
        "agents": agents,
        "skills": skills,
        "plugins": plugins,
    }
