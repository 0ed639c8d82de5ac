"""Running the hooks of one occasion: which of the configured ones it calls for, and what they answer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import anyio
import msgspec

from robota.core.errors import ConfigurationError, describe_exception
from robota.core.hooks.definition import (
    HOOK_EVENTS,
    NAMES_ONLY,
    TOOL_EVENTS,
    HookDefinition,
    HookGroup,
    HooksConfig,
    list_names,
    parse_hooks,
)
from robota.core.hooks.executors import (
    CommandExecutor,
    FunctionExecutor,
    HookExecutor,
    HttpExecutor,
    timed_out,
)
from robota.core.hooks.outcome import HookOutcome, HookResult, fold, read_result, record_run
from robota.core.messages import Json, JsonObject
from robota.core.process import clean_environment, run_process

Executors: TypeAlias = Iterable[HookExecutor] | Mapping[str, HookExecutor]
MatchesRule: TypeAlias = Callable[[str, str, Mapping[str, Json]], bool]
"""(permission rule, tool name, tool input): whether the rule covers the call."""

_SAME_VALUE: dict[str, tuple[str, str]] = {
    "PostToolUse": ("tool_response", "tool_output"),
    "UserPromptSubmit": ("prompt", "user_message"),
    "Stop": ("last_assistant_message", "response"),
    "SubagentStop": ("last_assistant_message", "response"),
    "StopFailure": ("error", "reason"),
}
"""Fields that two generations of hooks know under different names."""
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


async def run_hooks(
    config: HooksConfig | Mapping[str, Json] | None,
    event: str,
    hook_input: Mapping[str, Json],
    *,
    executors: Executors = (),
    matches_rule: MatchesRule | None = None,
    is_due: Callable[[HookDefinition], bool] | None = None,
) -> HookOutcome:
    """Run every hook configured for an event that fits the input, all at once, and fold their answers.

    `config` is what `parse_hooks` returned, or the raw object. `executors` are added to the built-in ones for
    `command` and `http`. `matches_rule` judges a handler's `if`, and `is_due` whether one that fits runs at
    all. A hook that breaks is part of the outcome, never an exception.
    """
    if event not in HOOK_EVENTS:
        raise ConfigurationError(f"There is no hook event {event!r}; known: {', '.join(HOOK_EVENTS)}.")
    groups = tuple(as_config(config).get(event, ())) if config else ()
    if not groups:
        return HookOutcome(event=event)
    full_input = complete_input(event, hook_input)
    hooks, warnings = await select_hooks({event: groups}, event, full_input, matches_rule)
    hooks = hooks if is_due is None else list(filter(is_due, hooks))
    if not hooks:
        return HookOutcome(event=event, warnings=warnings)
    table = executor_table(executors)
    results: list[HookResult] = [HookResult(failure="did not run")] * len(hooks)

    async def run(place: int, hook: HookDefinition) -> None:
        results[place] = await _execute(table.get(hook.type), hook, full_input)

    async with anyio.create_task_group() as group:
        for place, hook in enumerate(hooks):
            group.start_soon(run, place, hook)
    answered = list(zip(hooks, results, strict=True))
    outcome = fold(event, [read_result(event, hook.label, result) for hook, result in answered])
    return msgspec.structs.replace(
        outcome,
        warnings=warnings + outcome.warnings,
        runs=tuple(record_run(hook.type, hook.label, result) for hook, result in answered),
    )


def complete_input(event: str, hook_input: Mapping[str, Json]) -> JsonObject:
    """The input as hooks get it: with the event's name, and each value under all names it is known by."""
    full = {**hook_input, "hook_event_name": event}
    first, second = _SAME_VALUE.get(event, ("", ""))
    if first in full:
        full.setdefault(second, full[first])
    elif second in full:
        full[first] = full[second]
    return full


def as_config(config: HooksConfig | Mapping[str, Json]) -> HooksConfig:
    """What `parse_hooks` made, or makes, of the hooks that were given in either form."""
    if isinstance(config, Mapping) and all(
        isinstance(groups, tuple | list) and all(isinstance(group, HookGroup) for group in groups)
        for groups in config.values()
    ):
        return config
    return parse_hooks(config, source="the options")


def executor_table(
    extra: Executors, keep_variables: Collection[str] | Callable[[], Collection[str]] = ()
) -> dict[str, HookExecutor]:
    """The executors by their types: ours, and over them those that were given."""
    command = CommandExecutor(keep_variables=keep_variables)
    ours: tuple[HookExecutor, ...] = (command, HttpExecutor(), FunctionExecutor())
    table = {executor.type: executor for executor in ours}
    added = extra.values() if isinstance(extra, Mapping) else extra
    return table | {executor.type: executor for executor in added}


async def _execute(executor: HookExecutor | None, hook: HookDefinition, hook_input: JsonObject) -> HookResult:
    if executor is None:
        return HookResult(exit_code=1, failure=f"has the type {hook.type!r}, which nothing here can execute")
    with anyio.move_on_after(hook.timeout):
        try:
            return await executor.execute(hook, hook_input)
        except Exception as error:  # noqa: BLE001 - executors from outside may raise anything
            return HookResult(exit_code=1, failure=f"failed: {describe_exception(error)}")
    return timed_out(hook.timeout)


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
        return target in list_names(matcher)
    if len(target) <= _SHORT and _SIMPLE.fullmatch(matcher):
        return re.search(matcher, target) is not None
    return await _search_apart(matcher, target)


async def _search_apart(pattern: str, target: str) -> bool | None:
    """Search in a process of its own: a pattern that backtracks for ever would hold everything else here."""
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
