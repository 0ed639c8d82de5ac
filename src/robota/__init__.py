"""robota: a provider-neutral agent SDK, and the terminal assistant made of it.

The names are loaded when they are first used; importing the package costs next to nothing. Type checkers read
them from the stub beside this file, which a test keeps equal to the table below.
"""

from __future__ import annotations

from robota._lazy import lazy_names
from robota._version import __version__

_MODULES = {
    "robota.core.permissions": "evaluate_permission explain_permission",
    "robota.core.plugin": "Plugin",
    "robota.core.provider": "ModelSettings",
    "robota.core.robota": "AgentConfig Robota RunLimits",
    "robota.core.tool": "ToolContext ToolResult",
    "robota.core.run": "RunResult",
    "robota.core.sync": "run_sync",
    "robota.sdk.kept_sessions": "create_project_session_store",
    "robota.sdk.interactive": "InteractiveSession",
    "robota.sdk.query": "create_query",
    "robota.providers.choice": "choose_provider",
    "robota.sessions.session": "Session",
    "robota.sessions.options": "SessionOptions",
    "robota.tools.function_tool": "tool",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = ["__version__", *_HOMES]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
