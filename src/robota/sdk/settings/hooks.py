"""The hooks of all layers, pooled: no layer removes another one's; a project cannot turn off the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from robota.core.hooks.definition import (
    DEFAULT_TIMEOUT,
    HOOK_TYPES,
    HookDefinition,
    HooksConfig,
    claude_timeout,
    merge_hooks,
    read_hooks,
)
from robota.core.permissions.globs import compile_glob
from robota.sdk.problems import Problem
from robota.sdk.settings.jsonc import read_place
from robota.sdk.settings.merge import Entry, Merged, make_printable

HANDLERS = (*HOOK_TYPES, "mcp_tool")
"""The handler types of a session with everything."""


def build_hooks(merged: Merged, env: Mapping[str, str], is_secret: Callable[[str], bool]) -> HooksConfig:
    """Every usable hook, with the variables `env`; what is wrong with the others is added to the problems.

    Headers of a project's hooks may not name variables that are secret.
    """
    switches = merged.written.get("disableAllHooks", [])
    off_for_all = _is_on(entry for entry in switches if not entry.layer.of_project)
    off_for_project = _is_on(entry for entry in switches if entry.layer.of_project)
    configs = []
    for entry in merged.written.get("hooks", ()):
        if off_for_all or (off_for_project and entry.layer.of_project):
            continue
        config, problems = read_hooks(
            entry.value,
            source=entry.layer.path,
            default_timeout=DEFAULT_TIMEOUT if entry.layer.dialect == "robota" else claude_timeout,
            types=HANDLERS,
        )
        for place, reason in map(take_apart, problems):
            merged.report(entry.layer, tuple(read_place(place)), reason)
        if entry.layer.of_project:
            config = _filter(
                config, partial(_without_secrets, is_secret=is_secret, entry=entry, merged=merged)
            )
        configs.append(config)
    pooled, refused = permit_http_hooks(
        merge_hooks(*configs),
        urls=merged.values.get("allowedHttpHookUrls"),
        variables=merged.values.get("httpHookAllowedEnvVars"),
    )
    merged.problems += refused
    return with_variables(pooled, env)


def _without_secrets(
    hook: HookDefinition, is_secret: Callable[[str], bool], entry: Entry, merged: Merged
) -> HookDefinition:
    secret = [name for name in hook.allowed_env_vars if is_secret(name)]
    for name in secret:
        message = f"a project's hook gets no credentials: {name} stays as it is written. passEnv lets it."
        merged.report(entry.layer, ("hooks",), message)
    return replace(hook, allowed_env_vars=tuple(x for x in hook.allowed_env_vars if x not in secret))


def _is_on(entries: Iterable[Entry]) -> bool:
    """What the highest of these layers says."""
    said = [entry.value for entry in entries]
    return bool(said and said[-1])


def take_apart(problem: str) -> tuple[str, str]:
    """What is wrong with hooks (`PreToolUse[0].hooks[1]: …`) as the place in their file and a sentence."""
    place, _, reason = problem.partition(": ")
    place = place if place == "hooks" else f"hooks.{place}"
    return place, reason if reason.endswith((".", "?")) else f"{reason}."


def with_variables(config: HooksConfig, env: Mapping[str, str]) -> HooksConfig:
    """Hooks whose commands get these variables, unless a group has others of the same name."""
    if not env:
        return config
    return {
        event: tuple(replace(group, env={**env, **group.env}) for group in groups)
        for event, groups in config.items()
    }


def permit_http_hooks(
    config: HooksConfig, *, urls: Sequence[str] | None, variables: Sequence[str] | None
) -> tuple[HooksConfig, list[Problem]]:
    """Hooks without http handlers that may not go where they want to; `None` is no restriction.

    Whoever adds hooks from elsewhere (plugins, skills) asks here too.
    """
    if urls is None and variables is None:
        return config, []
    globs = None if urls is None else [compile_glob(url) for url in urls]
    problems: list[Problem] = []

    def permit(hook: HookDefinition) -> HookDefinition | None:
        if hook.type != "http":
            return hook
        if globs is not None and not any(glob.matches(hook.url) for glob in globs):
            message = "allowedHttpHookUrls has no entry for this address; the hook does not run."
            problems.append(Problem(hook.source, message, subject=make_printable(hook.label)))
            return None
        if variables is None:
            return hook
        return replace(hook, allowed_env_vars=tuple(x for x in hook.allowed_env_vars if x in variables))

    return _filter(config, permit), problems


def _filter(config: HooksConfig, keep: Callable[[HookDefinition], HookDefinition | None]) -> HooksConfig:
    return {
        event: tuple(
            replace(group, hooks=tuple(kept for hook in group.hooks if (kept := keep(hook)) is not None))
            for group in groups
        )
        for event, groups in config.items()
    }
