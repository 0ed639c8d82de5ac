"""Running the hooks of one occasion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

import anyio
import msgspec

from robota.core.errors import ConfigurationError, describe_exception
from robota.core.hooks.definition import HOOK_EVENTS, HookDefinition, HookGroup, HooksConfig, parse_hooks
from robota.core.hooks.executors import (
    CommandExecutor,
    FunctionExecutor,
    HookExecutor,
    HttpExecutor,
    timed_out,
)
from robota.core.hooks.matching import MatchesRule, select_hooks
from robota.core.hooks.outcome import HookOutcome, HookResult, fold, read_result, record_run
from robota.core.messages import Json, JsonObject

Executors: TypeAlias = Iterable[HookExecutor] | Mapping[str, HookExecutor]

_SAME_VALUE: dict[str, tuple[str, str]] = {
    "PostToolUse": ("tool_response", "tool_output"),
    "UserPromptSubmit": ("prompt", "user_message"),
    "Stop": ("last_assistant_message", "response"),
    "SubagentStop": ("last_assistant_message", "response"),
    "StopFailure": ("error", "reason"),
}
"""Fields that two generations of hooks know under different names."""


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
    groups = _groups_of(config, event)
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


def _groups_of(config: HooksConfig | Mapping[str, Json] | None, event: str) -> tuple[HookGroup, ...]:
    if event not in HOOK_EVENTS:
        raise ConfigurationError(f"There is no hook event {event!r}; known: {', '.join(HOOK_EVENTS)}.")
    return tuple(as_config(config).get(event, ())) if config else ()


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
