"""Hooks: commands, requests and prompts that users attach to events of a session.

`parse_hooks` reads them from settings, `run_hooks` runs those an occasion calls for and folds their answers
into one `HookOutcome`, `as_context` frames what they have to say to the model.
"""

from __future__ import annotations

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
