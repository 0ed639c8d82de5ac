"""Permissions: whether a tool call runs, is asked about, or is refused.

Everything is resolved on first use: importing this package costs nothing, and the shell grammar is loaded
only when a shell command is judged.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robota.core.permissions.effects import CommandEffects, analyse_command
    from robota.core.permissions.evaluate import evaluate_permission, explain_permission
    from robota.core.permissions.explain import PermissionExplanation
    from robota.core.permissions.modes import (
        MODE_POLICY,
        TRUST_TO_MODE,
        UNKNOWN_TOOL_FALLBACK,
        PermissionDecision,
        PermissionMode,
        ToolClass,
        TrustLevel,
    )
    from robota.core.permissions.rules import Rule, RuleProblem, check_rules, parse_rule
    from robota.core.permissions.suggest import narrowest_rules

__all__ = [
    "MODE_POLICY",
    "TRUST_TO_MODE",
    "UNKNOWN_TOOL_FALLBACK",
    "CommandEffects",
    "PermissionDecision",
    "PermissionExplanation",
    "PermissionMode",
    "Rule",
    "RuleProblem",
    "ToolClass",
    "TrustLevel",
    "analyse_command",
    "check_rules",
    "evaluate_permission",
    "explain_permission",
    "narrowest_rules",
    "parse_rule",
]

_HOMES = {
    "MODE_POLICY": "modes",
    "TRUST_TO_MODE": "modes",
    "UNKNOWN_TOOL_FALLBACK": "modes",
    "PermissionDecision": "modes",
    "PermissionMode": "modes",
    "ToolClass": "modes",
    "TrustLevel": "modes",
    "CommandEffects": "effects",
    "analyse_command": "effects",
    "PermissionExplanation": "explain",
    "evaluate_permission": "evaluate",
    "explain_permission": "evaluate",
    "Rule": "rules",
    "RuleProblem": "rules",
    "check_rules": "rules",
    "parse_rule": "rules",
    "narrowest_rules": "suggest",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
