"""Tools: functions a model can call, and those that come with robota. Each is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names

if TYPE_CHECKING:
    from robota.tools.builtins.read import read_tool
    from robota.tools.function_tool import FunctionTool, create_function_tool, tool
    from robota.tools.registry import ToolRegistry

_HOMES = {
    "FunctionTool": "robota.tools.function_tool",
    "ToolRegistry": "robota.tools.registry",
    "create_function_tool": "robota.tools.function_tool",
    "read_tool": "robota.tools.builtins.read",
    "tool": "robota.tools.function_tool",
}

__all__ = ["FunctionTool", "ToolRegistry", "create_function_tool", "read_tool", "tool"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
