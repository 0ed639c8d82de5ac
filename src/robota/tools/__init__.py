"""Tools: functions a model can call, and those that come with robota. Each is loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'robota.tools' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - importing one tool must not load them all

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
