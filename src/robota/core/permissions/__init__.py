"""Permissions: whether a tool call runs, is asked about, or is refused.

Names are loaded when they are first used: importing this package costs nothing, and the shell grammar is
loaded only when a shell command is judged.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.core.permissions.evaluate": (
        "PermissionExplanation evaluate_permission explain_permission narrowest_rules"
    ),
    "robota.core.permissions.modes": (
        "MODE_POLICY PermissionDecision PermissionMode TRUST_TO_MODE ToolClass TrustLevel "
        "UNKNOWN_TOOL_FALLBACK"
    ),
    "robota.core.permissions.rules": "Rule RuleProblem check_rules parse_rule",
    "robota.core.permissions.subjects": "Touches",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
