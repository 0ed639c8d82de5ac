"""The KillBash tool: ends a background command.

It reaches only what this agent started, which was approved then; so it counts as inspecting and needs no new
approval.
"""

from __future__ import annotations

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.builtins.bash_output import describe_state, unknown_shell
from robota.tools.function_tool import FunctionTool, text_beside
from robota.tools.processes import ProcessTable

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "shell_id": {"type": "string", "description": "The id of the background command."},
    },
    "required": ["shell_id"],
    "additionalProperties": False,
}


def kill_bash_tool(table: ProcessTable) -> FunctionTool:
    async def kill(ctx: ToolContext, shell_id: str) -> ToolResult:
        process = table.find(shell_id)
        if process is None:
            return unknown_shell(table, shell_id)
        if not process.is_running:
            state = " ".join(describe_state(process))
            return ToolResult(content=f"{process.id} had already ended: {state}")
        await process.stop()
        return ToolResult(content=f"Stopped {process.id}: {process.title}")

    return FunctionTool(
        "KillBash",
        text_beside(__file__),
        PARAMETERS,
        kill,
        tool_class="inspect",
        aliases={"bash_id": "shell_id", "bashId": "shell_id", "shellId": "shell_id"},
    )
