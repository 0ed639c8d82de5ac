"""Hooks: commands, requests and prompts that users attach to events of a session.

`parse_hooks` reads them from settings, `run_hooks` runs those an occasion calls for and folds their answers
into one `HookOutcome`, `as_context` frames what they have to say to the model. Names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names

if TYPE_CHECKING:
    from robota.core.hooks.definition import (
        DEFAULT_TIMEOUT,
        HOOK_EVENTS,
        HOOK_TYPES,
        HookDefinition,
        HookGroup,
        HooksConfig,
        claude_timeout,
        describe_unsupported,
        merge_hooks,
        parse_hooks,
    )
    from robota.core.hooks.executors import CommandExecutor, HookExecutor, HttpExecutor, read_ok_answer
    from robota.core.hooks.outcome import HookOutcome, HookResult, HookRun, as_context
    from robota.core.hooks.runner import complete_input, run_hooks

_MODULES = {
    "definition": (
        "DEFAULT_TIMEOUT HOOK_EVENTS HOOK_TYPES HookDefinition HookGroup HooksConfig claude_timeout "
        "describe_unsupported merge_hooks parse_hooks"
    ),
    "executors": "CommandExecutor HookExecutor HttpExecutor read_ok_answer",
    "outcome": "HookOutcome HookResult HookRun as_context",
    "runner": "complete_input run_hooks",
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "DEFAULT_TIMEOUT",
    "HOOK_EVENTS",
    "HOOK_TYPES",
    "CommandExecutor",
    "HookDefinition",
    "HookExecutor",
    "HookGroup",
    "HookOutcome",
    "HookResult",
    "HookRun",
    "HooksConfig",
    "HttpExecutor",
    "as_context",
    "claude_timeout",
    "complete_input",
    "describe_unsupported",
    "merge_hooks",
    "parse_hooks",
    "read_ok_answer",
    "run_hooks",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
