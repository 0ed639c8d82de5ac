"""Tools: functions a model can call, and those that come with robota. Each is loaded when first used."""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.tools.function_tool": "FunctionTool create_function_tool tool",
    "robota.tools.registry": "ToolRegistry",
    "robota.tools.openapi.tool": "OpenAPITool load_openapi",
    "robota.tools.builtins.bash": "bash_tool",
    "robota.tools.builtins.files": "read_tool write_tool edit_tool",
    "robota.tools.builtins.search": "glob_tool grep_tool",
    "robota.tools.builtins.web": "web_fetch_tool web_search_tool",
    "robota.tools.builtins.background": "bash_output_tool kill_bash_tool",
    "robota.tools.builtins.ask_user": "ask_user_tool",
    "robota.tools.builtins.plan": "PlanState TodoList plan_tools todo_tool",
    "robota.tools.processes": "ProcessTable",
    "robota.tools.mcp.definition": "ServerDefinition",
    "robota.tools.mcp.connection": "ServerConnection",
    "robota.tools.mcp.tool": "McpTool RelayMcpTool",
    "robota.tools.undo.store": "UndoStore",
    "robota.tools.undo.guard": "guarded",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
