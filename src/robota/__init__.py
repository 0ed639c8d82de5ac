"""robota: a provider-neutral agent SDK, and the terminal assistant made of it.

The names below are loaded when they are first used; importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names
from robota._version import __version__

if TYPE_CHECKING:
    from robota.core.permissions import evaluate_permission, explain_permission
    from robota.core.plugin import Plugin
    from robota.core.provider import ModelSettings
    from robota.core.robota import AgentConfig, Robota
    from robota.core.tool import ToolContext, ToolResult
    from robota.core.turn import RunResult
    from robota.tools.function_tool import tool

_HOMES = {
    "AgentConfig": "robota.core.robota",
    "ModelSettings": "robota.core.provider",
    "Plugin": "robota.core.plugin",
    "Robota": "robota.core.robota",
    "RunResult": "robota.core.turn",
    "ToolContext": "robota.core.tool",
    "ToolResult": "robota.core.tool",
    "evaluate_permission": "robota.core.permissions",
    "explain_permission": "robota.core.permissions",
    "tool": "robota.tools.function_tool",
}

__all__ = [
    "AgentConfig",
    "ModelSettings",
    "Plugin",
    "Robota",
    "RunResult",
    "ToolContext",
    "ToolResult",
    "__version__",
    "evaluate_permission",
    "explain_permission",
    "tool",
]


__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
