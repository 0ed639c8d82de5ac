"""Sessions for other programs: an answer on standard output, and a conversation over pipes."""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.transports.headless": "HeadlessRunner HeadlessTransport PrintOptions create_headless_runner "
    "create_headless_transport run_print",
    "robota.transports.host": "SessionHost",
    "robota.transports.http.transport": "HttpTransport create_agent_routes create_http_transport",
    "robota.transports.mcp_server.server": "create_agent_mcp_server",
    "robota.transports.programmatic": "ProgrammaticAgent create_programmatic_agent",
    "robota.transports.session_maker": "SessionWish",
    "robota.transports.ws": "WsHandler create_ws_handler",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

_EXTRAS = {
    "robota.transports.http.transport": "server",
    "robota.transports.mcp_server.server": "mcp",
}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals(), _EXTRAS)
