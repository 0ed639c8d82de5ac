"""A session as the tools of an MCP server, for other agents."""

from __future__ import annotations

from robota._lazy import lazy_names

_HOMES = {"create_agent_mcp_server": "robota.transports.mcp_server.server"}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
