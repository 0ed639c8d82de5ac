"""Changes of rules, modes and directories that a host sends along with an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

from anyio import to_thread
from msgspec.structs import replace

from robota.core.errors import ValidationError
from robota.core.messages import Json
from robota.core.permissions.rules import RuleKind, RuleProblem, parse_rule
from robota.sdk.settings.write import add_to_setting, change_setting, remove_from_setting

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

SetMode: TypeAlias = Callable[[str], Awaitable[object]]
Place: TypeAlias = tuple[str, str | None]
"""A settings file and, for a project's own, its directory."""

_KINDS = ("allow", "deny", "ask")
_FILES = {
    "userSettings": ("user", "settings.json"),
    "projectSettings": ("project", "settings.json"),
    "localSettings": ("project", "settings.local.json"),
}


async def apply_updates(session: InteractiveSession, updates: Json, set_mode: SetMode) -> None:
    """Carry them out in their order; the first that cannot be ends it."""
    if not isinstance(updates, list):
        raise ValidationError("updatedPermissions is a list.")
    for update in updates:
        await _apply(session, update, set_mode)


async def _apply(session: InteractiveSession, update: Json, set_mode: SetMode) -> None:
    match update:
        case {"type": "addRules" | "replaceRules" | "removeRules" as what, "rules": list(rules)}:
            kind = update.get("behavior")
            if kind not in _KINDS:
                raise ValidationError(f"`behavior` is one of {', '.join(_KINDS)}, not {kind!r}.")
            texts = [_rule_text(rule) for rule in rules]
            place = _find_file(session, update.get("destination"))
            _change_rules(session, what, cast("RuleKind", kind), texts)
            await _write(place, what, f"permissions.{kind}", texts)
        case {"type": "setMode", "mode": str(mode)}:
            place = _find_file(session, update.get("destination"))
            await set_mode(mode)
            await _write(place, "setMode", "permissions.defaultMode", mode)
        case {"type": "addDirectories" | "removeDirectories" as what, "directories": list(given)}:
            paths = [session.project.places.locate(str(path)) for path in given]
            place = _find_file(session, update.get("destination"))
            _change_directories(session, what, paths)
            await _write(place, what, "permissions.additionalDirectories", paths)
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


def _change_rules(session: InteractiveSession, what: str, kind: RuleKind, rules: list[str]) -> None:
    inner = session.session
    live, known = inner.rules, inner.rules.rules
    before: tuple[str, ...] = getattr(known, kind)
    if kind == "allow" and what == "addRules":
        live.grant(rules)  # for the session: what the files say stays what it is
        return
    if kind == "allow" and what == "replaceRules":
        live.granted = tuple(rules)
        return
    if what == "removeRules":
        live.granted = tuple(rule for rule in live.granted if kind != "allow" or rule not in rules)
        after = [rule for rule in before if rule not in rules]
    else:
        written = getattr(session.project.settings.rules, kind)
        after = [rule for rule in before if what == "addRules" or rule in written]
        after += [rule for rule in rules if rule not in after]
    inner.reload(rules=replace(known, **{kind: tuple(after)}))


def _change_directories(session: InteractiveSession, what: str, paths: list[str]) -> None:
    kept = [path for path in session.session.rules.additional_dirs if path not in paths]
    session.session.reload(additional_dirs=[*kept, *(paths if what == "addDirectories" else ())])


async def _write(place: Place | None, what: str, key: str, value: str | list[str]) -> None:
    """Into a settings file, if one was meant."""
    if place is None:
        return
    path, project = place
    if what in ("setMode", "replaceRules"):
        await to_thread.run_sync(partial(change_setting, path, key, value, project=project))
        return
    change = add_to_setting if what.startswith("add") else remove_from_setting
    for item in value:
        await to_thread.run_sync(partial(change, path, key, item, project=project))


def _find_file(session: InteractiveSession, destination: Json) -> Place | None:
    """Where a destination is kept; `None` for the session."""
    if destination in (None, "session", "cliArg"):
        return None
    known = _FILES.get(destination) if isinstance(destination, str) else None
    if known is None:
        raise ValidationError(f"`destination` is one of session, {', '.join(_FILES)}, not {destination!r}.")
    places = session.project.places
    kind, name = known
    if kind == "user":
        return places.user(name), None
    return places.project(".robota", name), places.cwd
