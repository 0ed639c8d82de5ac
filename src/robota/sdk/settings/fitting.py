"""Settings fitted to the tools that a session has.

Files are shared between programs and projects: a rule or a hook for a tool that is not there is named and
left out, instead of keeping the session from starting. What looks like a slip in a deny or ask rule makes the
tool that was probably meant ask.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from robota.core.given import nearest
from robota.core.hooks.definition import TOOL_EVENTS, HookGroup, list_names
from robota.core.permissions.rules import RuleKind, find_unknown_tool
from robota.sdk.problems import Problem
from robota.sdk.settings.settings import Settings
from robota.sessions.permissions.live_rules import PermissionRules

_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")


def fit_to_tools(settings: Settings, tools: Collection[str]) -> Settings:
    """Without rules and hooks that name a tool which a session with these does not have."""
    problems: list[Problem] = []
    rules = {kind: _fit_rules(settings, kind, tools, problems) for kind in _KINDS}
    meant = (_find_meant(rule, tools) for rule in (*settings.rules.deny, *settings.rules.ask))
    rules["ask"] = tuple(dict.fromkeys((*rules["ask"], *filter(None, meant))))
    hooks = {
        event: tuple(filter(None, (_fit_group(event, group, tools, problems) for group in groups)))
        if event in TOOL_EVENTS
        else groups
        for event, groups in settings.hooks.items()
    }
    if not problems:
        return settings
    return replace(
        settings,
        rules=PermissionRules(mode=settings.rules.mode, **rules),
        hooks=hooks,
        problems=(*settings.problems, *problems),
    )


def _fit_rules(
    settings: Settings, kind: RuleKind, tools: Collection[str], problems: list[Problem]
) -> tuple[str, ...]:
    usable: list[str] = []
    for rule in getattr(settings.rules, kind):
        name = rule.partition("(")[0].strip()
        wrong = None if name in tools else find_unknown_tool(name, tools)
        if wrong is None:
            usable.append(rule)
            continue
        meant = _find_meant(rule, tools) if kind != "allow" else None
        outcome = f" Until it is corrected, every call of {meant} is asked about." if meant else ""
        sources = settings.origins.get(f"permissions.{kind}", ("the settings",))
        problems.append(Problem(", ".join(sources), wrong + outcome, subject=f"{kind} rule {rule}"))
    return tuple(usable)


def _find_meant(rule: str, tools: Collection[str]) -> str | None:
    """The tool that a rule with an unknown name was probably meant for."""
    name = rule.partition("(")[0].strip()
    is_known = name in tools or find_unknown_tool(name, tools) is None
    return None if is_known else nearest(name, tools, 0.75)


def _fit_group(
    event: str, group: HookGroup, tools: Collection[str], problems: list[Problem]
) -> HookGroup | None:
    """The group without names of tools that are not there; `None` when it has no others."""
    source = group.hooks[0].source if group.hooks else "the settings"

    def is_known(name: str) -> bool:
        wrong = None if name in tools else find_unknown_tool(name, tools)
        if wrong is not None:
            problems.append(Problem(source, wrong, subject=f"hooks.{event}"))
        return wrong is None

    named = list_names(group.matcher)
    known = [name for name in named if is_known(name)]
    hooks = tuple(
        hook
        for hook in group.hooks
        if not hook.condition or is_known(hook.condition.partition("(")[0].strip())
    )
    if (named and not known) or (group.hooks and not hooks):
        return None
    if known and not any(name in tools or _may_come(name) for name in known):
        absent = f"its hooks never run here: there is no tool {' or '.join(known)}."
        problems.append(Problem(source, absent, subject=f"hooks.{event}"))
    return replace(group, hooks=hooks, matcher="|".join(known) if len(known) < len(named) else group.matcher)


def _may_come(tool: str) -> bool:
    """Tools of servers come later, and `Task` is `Agent`."""
    return tool == "Task" or "__" in tool or "*" in tool
