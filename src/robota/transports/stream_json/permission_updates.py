"""Changes of rules, modes and directories that a host sends along with an answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from anyio import to_thread
from msgspec.structs import replace

from robota.core.errors import ValidationError
from robota.core.messages import Json
from robota.core.permissions.rules import RuleKind, RuleProblem, parse_rule
from robota.sdk.settings.write import add_rule, add_to_setting, change_setting, remove_rule

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

_KINDS = ("allow", "deny", "ask")
_FILES = {
    "userSettings": ("user", "settings.json"),
    "projectSettings": ("project", "settings.json"),
    "localSettings": ("project", "settings.local.json"),
}


async def apply_updates(session: InteractiveSession, updates: Json) -> None:
    """Carry them out in their order; the first that cannot be ends it."""
    if not isinstance(updates, list):
        raise ValidationError("updatedPermissions is a list.")
    for update in updates:
        await _apply(session, update)


async def _apply(session: InteractiveSession, update: Json) -> None:
    match update:
        case {"type": "addRules" | "replaceRules" | "removeRules" as what, "rules": list(rules)}:
            kind = update.get("behavior")
            if kind not in _KINDS:
                raise ValidationError(f"`behavior` is one of {', '.join(_KINDS)}, not {kind!r}.")
            texts = [_rule_text(rule) for rule in rules]
            await _change_rules(session, what, cast("RuleKind", kind), texts, update.get("destination"))
        case {"type": "setMode", "mode": str(mode)}:
            await session.switch_mode(mode)
            await _save_mode(session, mode, update.get("destination"))
        case {"type": "addDirectories" | "removeDirectories" as what, "directories": list(paths)}:
            await _change_directories(session, what, [str(path) for path in paths], update.get("destination"))
        case _:
            kind = update.get("type") if isinstance(update, dict) else type(update).__name__
            raise ValidationError(f"There is no permission update of the type {kind!r}, or it lacks a field.")


def _rule_text(rule: Json) -> str:
    """A rule whose content is null is about the whole tool."""
    match rule:
        case {"toolName": str(name)} if name:
            content = rule.get("ruleContent")
            text = f"{name}({content})" if content else name
            if isinstance(problem := parse_rule(text), RuleProblem):
                raise ValidationError(f"The rule {text!r} cannot be used: {problem.reason}.")
            return text
    raise ValidationError("A rule of a permission update needs `toolName`.")


async def _change_rules(
    session: InteractiveSession, what: str, kind: RuleKind, rules: list[str], destination: Json
) -> None:
    inner = session.session
    known = inner.rules.rules
    before: tuple[str, ...] = getattr(known, kind)
    if what == "addRules":
        after = tuple(dict.fromkeys((*before, *rules)))
    elif what == "replaceRules":
        after = tuple(rules)
    else:
        after = tuple(rule for rule in before if rule not in rules)
        inner.rules.granted = tuple(rule for rule in inner.rules.granted if rule not in rules)
    if kind == "allow" and what == "addRules":
        inner.rules.grant(rules)  # for the session: what the files say stays what it is
    else:
        inner.reload(rules=replace(known, **{kind: after}))
    place = _find_file(session, destination)
    if place is not None:
        path, project = place
        change = remove_rule if what == "removeRules" else add_rule
        for rule in rules:
            await to_thread.run_sync(partial(change, path, kind, rule, project=project))


async def _save_mode(session: InteractiveSession, mode: str, destination: Json) -> None:
    place = _find_file(session, destination)
    if place is not None:
        path, project = place
        key = "permissions.defaultMode"
        await to_thread.run_sync(partial(change_setting, path, key, mode, project=project))


async def _change_directories(
    session: InteractiveSession, what: str, paths: list[str], destination: Json
) -> None:
    rules = session.session.rules
    known = rules.additional_dirs
    if what == "addDirectories":
        rules.replace(additional_dirs=dict.fromkeys((*known, *paths)))
    else:
        rules.replace(additional_dirs=[path for path in known if path not in paths])
    place = _find_file(session, destination)
    if place is not None and what == "addDirectories":
        for path in paths:
            key = "permissions.additionalDirectories"
            await to_thread.run_sync(add_to_setting, place[0], key, path)


def _find_file(session: InteractiveSession, destination: Json) -> tuple[str, str | None] | None:
    """The settings file of a destination and, for a project's own, its directory; `None` for the session."""
    if destination in (None, "session", "cliArg"):
        return None
    known = _FILES.get(destination)
    if known is None:
        raise ValidationError(f"`destination` is one of session, {', '.join(_FILES)}, not {destination!r}.")
    places = session.project.places
    kind, name = known
    if kind == "user":
        return places.user(name), None
    return places.project(".robota", name), places.cwd
