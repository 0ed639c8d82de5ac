"""Which of the configured hooks an occasion calls for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from robota.core.hooks.definition import TOOL_EVENTS, HookDefinition, HooksConfig
from robota.core.messages import Json

MatchesRule: TypeAlias = Callable[[str, str, Mapping[str, Json]], bool]
"""(permission rule, tool name, tool input): whether the rule covers the call."""

_TARGETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TOOL_EVENTS, ("tool_name",)),
    "SessionStart": ("source",),
    "SessionEnd": ("reason",),
    "StopFailure": ("error", "reason"),
    "SubagentStart": ("agent_type", "agent_id"),
    "SubagentStop": ("agent_type", "agent_id"),
    "PreCompact": ("trigger",),
    "PostCompact": ("trigger",),
    "Notification": ("notification_type",),
}
"""The input field a matcher is compared with, the first one present; other events have none."""

_NAMES_ONLY = re.compile(r"[\w ,|-]*", re.ASCII)


def select_hooks(
    config: HooksConfig,
    event: str,
    hook_input: Mapping[str, Json],
    matches_rule: MatchesRule | None = None,
) -> tuple[list[HookDefinition], tuple[str, ...]]:
    """The handlers of an event whose matcher and `if` rule fit, and what was odd about the matchers.

    The handlers come in configuration order, each once.
    """
    hooks: list[HookDefinition] = []
    seen: list[HookDefinition] = []
    warnings: list[str] = []
    for group in config.get(event, ()):
        if not _fits(group.matcher, event, hook_input, warnings):
            continue
        for hook in group.hooks:
            identity = msgspec.structs.replace(hook, source="")
            if identity not in seen and _meets_condition(hook, event, hook_input, matches_rule):
                seen.append(identity)
                hooks.append(hook)
    return hooks, tuple(dict.fromkeys(warnings))


def matches(matcher: str, target: str) -> bool:
    """Whether a matcher fits a name: all, exact names, or a regular expression found anywhere in it."""
    if matcher in ("", "*"):
        return True
    if _NAMES_ONLY.fullmatch(matcher):
        return target in [name.strip() for name in re.split(r"[|,]", matcher)]
    try:
        return re.search(matcher, target) is not None
    except re.error:
        return matcher == target


def _fits(matcher: str, event: str, hook_input: Mapping[str, Json], warnings: list[str]) -> bool:
    fields = _TARGETS.get(event)
    if fields is None or matcher in ("", "*"):
        return True
    try:
        if not _NAMES_ONLY.fullmatch(matcher):
            re.compile(matcher)
    except re.error as error:
        why = f"it is no regular expression ({error})"
        warnings.append(f"The {event} matcher {matcher!r} is read as a plain name: {why}.")
    target = next((value for name in fields if (value := hook_input.get(name))), None)
    return isinstance(target, str) and matches(matcher, target)


def _meets_condition(
    hook: HookDefinition, event: str, hook_input: Mapping[str, Json], matches_rule: MatchesRule | None
) -> bool:
    if not hook.condition:
        return True
    if event not in TOOL_EVENTS:
        return False
    if matches_rule is None:  # nobody can tell, and a guard that runs too often is the lesser evil
        return True
    tool_name, tool_input = hook_input.get("tool_name"), hook_input.get("tool_input")
    return matches_rule(hook.condition, str(tool_name), tool_input if isinstance(tool_input, dict) else {})
