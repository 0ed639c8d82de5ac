"""The four permission modes and what each does with a tool when no rule decided."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

PermissionMode: TypeAlias = Literal["plan", "default", "acceptEdits", "bypassPermissions"]
PermissionDecision: TypeAlias = Literal["auto", "approve", "deny"]
TrustLevel: TypeAlias = Literal["safe", "moderate", "full"]
ToolClass: TypeAlias = Literal["inspect", "modify", "execute"]

_CLASSES: dict[str | None, ToolClass] = {each: each for each in get_args(ToolClass)}

TRUST_TO_MODE: dict[TrustLevel, PermissionMode] = {
    "safe": "plan",
    "moderate": "default",
    "full": "acceptEdits",
}

CLASS_POLICY: dict[PermissionMode, dict[ToolClass, PermissionDecision]] = {
    "plan": {"inspect": "auto", "modify": "deny", "execute": "deny"},
    "default": {"inspect": "auto", "modify": "approve", "execute": "approve"},
    "acceptEdits": {"inspect": "auto", "modify": "auto", "execute": "approve"},
    "bypassPermissions": {"inspect": "auto", "modify": "auto", "execute": "auto"},
}

UNKNOWN_TOOL_FALLBACK: dict[PermissionMode, PermissionDecision] = {
    "plan": "deny",
    "default": "approve",
    "acceptEdits": "approve",
    "bypassPermissions": "auto",
}

KNOWN_TOOLS: dict[str, ToolClass] = {
    "Read": "inspect",
    "Glob": "inspect",
    "Grep": "inspect",
    "WebFetch": "inspect",
    "WebSearch": "inspect",
    "Write": "modify",
    "Edit": "modify",
    "Bash": "execute",
}

MODE_POLICY: dict[PermissionMode, dict[str, PermissionDecision]] = {
    mode: {tool: policy[tool_class] for tool, tool_class in KNOWN_TOOLS.items()}
    for mode, policy in CLASS_POLICY.items()
}


def classify_tool(tool: str, declared: str | None) -> ToolClass | None:
    """The class that counts: fixed for known tools, declared for tools of ours, none for MCP tools."""
    return KNOWN_TOOLS.get(tool) or (None if tool.startswith("mcp__") else _CLASSES.get(declared))


def decide_by_mode(mode: PermissionMode, tool_class: ToolClass | None) -> PermissionDecision:
    return UNKNOWN_TOOL_FALLBACK[mode] if tool_class is None else CLASS_POLICY[mode][tool_class]
