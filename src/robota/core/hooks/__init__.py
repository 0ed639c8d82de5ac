"""Hooks: commands, requests and prompts that users attach to events of a session.

`parse_hooks` reads them from settings, `run_hooks` runs those an occasion calls for and folds their answers
into one `HookOutcome`, `as_context` frames what they have to say to the model. Names are loaded on first use.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.core.hooks.definition": (
        "DEFAULT_TIMEOUT HOOK_EVENTS HOOK_TYPES HookDefinition HookGroup HooksConfig check_hooks "
        "claude_timeout describe_unsupported merge_hooks parse_hooks"
    ),
    "robota.core.hooks.executors": "CommandExecutor HookExecutor HttpExecutor hook read_ok_answer",
    "robota.core.hooks.outcome": "HookOutcome HookResult HookRun as_context",
    "robota.core.hooks.runner": "complete_input run_hooks",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
