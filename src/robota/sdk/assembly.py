"""Puts an agent together: provider, built-in tools, permissions. Front ends get the agent from here."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from robota.core.permissions import PermissionMode, explain_permission
from robota.core.provider import Provider
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import ToolContext, ToolResult, tool_class
from robota.core.tool_batch import PreparedCall, RunTool, invoke_tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.read import read_tool

SYSTEM_MESSAGE = (
    "You are robota, a coding assistant in a terminal. Use the tools to look at the project before you "
    "answer, keep answers short, and say what you could not check. The working directory is {cwd}."
)
DENIED = "Permission denied. The user did not approve this action."


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """What a person is asked before a tool runs."""

    tool_name: str
    tool_input: dict[str, object]
    cwd: str
    reason: str


Agent: TypeAlias = Robota
"""What front ends hold in their hands."""
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool]]


def create_agent(
    provider: Provider,
    *,
    model: str,
    cwd: str | None = None,
    mode: PermissionMode = "default",
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    approve: Approve | None = None,
    max_rounds: int = 0,
    context_window: int | None = None,
) -> Robota:
    """An agent with the built-in tools. Without `approve` nobody can be asked: what would ask is denied."""
    where = os.getcwd() if cwd is None else cwd
    run_tool = permitted(mode, allow, deny, approve)
    return Robota(
        provider,
        model=model,
        tools=(read_tool(), bash_tool()),
        system_message=SYSTEM_MESSAGE.format(cwd=where),
        max_rounds=max_rounds,
        config=AgentConfig(cwd=where, run_tool=run_tool, context_window=context_window),
    )


def permitted(
    mode: PermissionMode, allow: Sequence[str], deny: Sequence[str], approve: Approve | None
) -> RunTool:
    """Running a tool only as the permission rules say."""

    async def run_tool(call: PreparedCall, context: ToolContext) -> ToolResult:
        if call.tool is None or call.answer is not None:
            return await invoke_tool(call, context)
        verdict = explain_permission(
            call.request.name,
            call.arguments,
            mode=mode,
            allow=allow,
            deny=deny,
            cwd=context.cwd,
            tool_class=tool_class(call.tool),
        )
        if verdict.decision == "approve" and approve is not None:
            request = ApprovalRequest(
                tool_name=call.request.name,
                tool_input=call.arguments,
                cwd=context.cwd,
                reason=verdict.reason,
            )
            if await approve(request):
                return await invoke_tool(call, context)
        elif verdict.decision == "auto":
            return await invoke_tool(call, context)
        return ToolResult(ok=False, denied=True, error=f"{DENIED} {verdict.reason}", error_code="denied")

    return run_tool
