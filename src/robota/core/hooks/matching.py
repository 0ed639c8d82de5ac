"""Which of the configured hooks an occasion calls for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from robota.core.hooks.definition import NAMES_ONLY, TOOL_EVENTS, HookDefinition, HooksConfig
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
    "ConfigChange": ("source",),
    "Elicitation": ("mcp_server_name",),
    "ElicitationResult": ("mcp_server_name",),
}
"""The input field a matcher is compared with, the first one present; other events have none."""


_OLDER_NAMES = {"Agent": "Task"}
"""Tools that files of other programs may know under another name."""
_SIMPLE = re.compile(r"(?:[^*+?{)]|\)(?![*+?{]))*(?:[*+?{](?:[^*+?{)]|\)(?![*+?{]))*){0,2}")
"""Patterns that repeat at most two things, and no group: a short name is searched in no time."""
_SHORT = 200
_SECONDS = 2.0
_SEARCH = """
import re, sys
given = sys.stdin.buffer.read().decode("utf-8", "surrogatepass")
end = int(sys.argv[1])
sys.exit(0 if re.search(given[:end], given[end:]) else 3)
"""
_NOT_FOUND = 3


async def select_hooks(
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
    fields = _TARGETS.get(event)
    for group in config.get(event, ()):
        if fields is not None and group.matcher not in ("", "*"):
            target = next((value for name in fields if (value := hook_input.get(name))), None)
            fits = await _fits(group.matcher, target, event) if isinstance(target, str) else False
            if fits is None:  # nobody can tell, and a guard that runs too often is the lesser evil
                warnings.append(
                    f"The {event} matcher {group.matcher!r} takes too long; its hooks always run."
                )
            elif not fits:
                continue
        for hook in group.hooks:
            full = msgspec.structs.replace(hook, env={**group.env, **hook.env})
            identity = msgspec.structs.replace(full, source="")
            if identity not in seen and _meets_condition(hook, event, hook_input, matches_rule):
                seen.append(identity)
                hooks.append(full)
    return hooks, tuple(dict.fromkeys(warnings))


async def _fits(matcher: str, target: str, event: str) -> bool | None:
    other = _OLDER_NAMES.get(target) if event in TOOL_EVENTS else None
    return await matches(matcher, target) or (other is not None and await matches(matcher, other))


async def matches(matcher: str, target: str) -> bool | None:
    """Whether a matcher fits a name: all, exact names, or a regular expression found anywhere in it; `None`
    if that could not be found out in time."""
    if matcher in ("", "*"):
        return True
    if NAMES_ONLY.fullmatch(matcher):
        return target in [name.strip() for name in re.split(r"[|,]", matcher)]
    if len(target) <= _SHORT and _SIMPLE.fullmatch(matcher):
        return re.search(matcher, target) is not None
    return await _search_apart(matcher, target)


async def _search_apart(pattern: str, target: str) -> bool | None:
    """Search in a process of its own: a pattern that backtracks for ever would hold everything else here."""
    from robota.core.process import clean_environment, run_process  # noqa: PLC0415 - few patterns are so

    argv = [sys.executable, "-I", "-S", "-c", _SEARCH, str(len(pattern))]
    given = (pattern + target).encode("utf-8", "surrogatepass")
    result = await run_process(argv, env=clean_environment(), stdin=given, timeout=_SECONDS)
    return {0: True, _NOT_FOUND: False}.get(-1 if result.exit_code is None else result.exit_code)


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
