"""Puts an agent together: provider, built-in tools, permissions. Front ends get the agent from here."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.core.permissions import (
    PermissionExplanation,
    PermissionMode,
    evaluate_permission,
    explain_permission,
)
from robota.core.provider import Provider
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import Tool, ToolClass, ToolContext, ToolResult, tool_class
from robota.core.tool_batch import PreparedCall, RunTool, invoke_tool
from robota.sdk.workspace import Workspace
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.edit import edit_tool
from robota.tools.builtins.glob import glob_tool
from robota.tools.builtins.grep import grep_tool
from robota.tools.builtins.read import read_tool
from robota.tools.builtins.todo import todo_tool
from robota.tools.builtins.web_fetch import web_fetch_tool
from robota.tools.builtins.web_search import web_search_tool
from robota.tools.builtins.write import write_tool

SYSTEM_MESSAGE = (
    "You are robota, a coding assistant in a terminal. Use the tools to look at the project before you "
    "answer, keep answers short, and say what you could not check. The working directory is {cwd}."
)
DENIED = "Permission denied. The user did not approve this action."
NOBODY_TO_ASK = "Permission denied. Nobody can be asked here; an allow rule would let it run."
FORBIDDEN = "Permission denied."


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """What a person is asked before a tool runs."""

    tool_name: str
    tool_input: dict[str, object]
    cwd: str
    reason: str


Agent: TypeAlias = Robota
"""What front ends hold in their hands."""
Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool]]


class Rules(Struct, frozen=True, kw_only=True):
    """What may run without a question, and what may not run at all."""

    mode: PermissionMode = "default"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


def create_agent(
    provider: Provider,
    *,
    model: str,
    rules: Rules | None = None,
    cwd: str | None = None,
    approve: Approve | None = None,
    max_rounds: int = 0,
    context_window: int | None = None,
) -> Robota:
    """An agent with the built-in tools. Without `approve` nobody can be asked: what would ask is denied."""
    where = working_directory() if cwd is None else cwd
    in_force = rules or Rules()
    run_tool = permitted(in_force, Workspace(where), approve)
    return Robota(
        provider,
        model=model,
        tools=create_default_tools(in_force, where),
        system_message=SYSTEM_MESSAGE.format(cwd=where),
        max_rounds=max_rounds,
        config=AgentConfig(cwd=where, run_tool=run_tool, context_window=context_window),
    )


def working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise ConfigurationError(
            f"The working directory cannot be used ({error.strerror}): change to another one."
        ) from error


def create_default_tools(rules: Rules, cwd: str) -> Sequence[Tool]:
    """The built-in tools under these rules: files that may not be read do not appear in searches either."""

    def is_denied(path: str) -> bool:
        return evaluate_permission("Read", {"file_path": path}, deny=rules.deny, cwd=cwd) == "deny"

    def may_follow(url: str) -> bool:
        return explain("WebFetch", {"url": url}, rules, cwd).decision == "auto"

    denied = is_denied if rules.deny else None
    return (
        read_tool(),
        write_tool(),
        edit_tool(),
        glob_tool(denied=denied),
        grep_tool(denied=denied),
        bash_tool(),
        web_fetch_tool(may_follow=may_follow),
        web_search_tool(),
        todo_tool(),
    )


def explain(
    tool_name: str, arguments: JsonObject, rules: Rules, cwd: str, kind: ToolClass | None = None
) -> PermissionExplanation:
    return explain_permission(
        tool_name,
        arguments,
        mode=rules.mode,
        allow=rules.allow,
        deny=rules.deny,
        cwd=cwd,
        tool_class=kind,
    )


def permitted(rules: Rules, workspace: Workspace, approve: Approve | None) -> RunTool:
    """Running a tool only as the rules, the workspace and the user say."""

    async def run_tool(call: PreparedCall, context: ToolContext) -> ToolResult:
        if call.tool is None or call.answer is not None:
            return await invoke_tool(call, context)
        verdict = explain(call.request.name, call.arguments, rules, context.cwd, tool_class(call.tool))
        decision, reason = verdict.decision, verdict.reason
        outside = workspace.outside(call.request.name, call.arguments)
        by_mode = verdict.rule is None and rules.mode != "bypassPermissions"
        if decision == "auto" and outside is not None and by_mode:  # a rule of the user's own goes before
            decision, reason = "approve", f"{outside} is outside the working directory."
        if decision == "approve" and approve is not None:
            request = ApprovalRequest(
                tool_name=call.request.name, tool_input=call.arguments, cwd=context.cwd, reason=reason
            )
            if await approve(request):
                decision = "auto"
                if outside is not None:
                    workspace.remember(call.request.name, outside)
        if decision == "auto":
            return await invoke_tool(call, context)
        said = NOBODY_TO_ASK if decision == "approve" and approve is None else DENIED
        if decision == "deny":
            said = FORBIDDEN
        return ToolResult(ok=False, denied=True, error=f"{said} {reason}", error_code="denied")

    return run_tool
