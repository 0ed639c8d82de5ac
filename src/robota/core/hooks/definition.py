"""What a hook is and how hooks are read from settings: events, groups with a matcher, handlers.

Every malformed entry and every misspelt name is reported with its place. Events and handler types that only
other programs have are no mistakes, because settings are shared: `describe_unsupported` lists what takes no
effect here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ConfigurationError
from robota.core.given import kind_of_value, nearest, suggest
from robota.core.messages import Json, JsonObject

HOOK_EVENTS: tuple[str, ...] = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Notification",
    "WorktreeCreate",
    "WorktreeRemove",
    "ConfigChange",
    "Elicitation",
    "ElicitationResult",
)
"""The occasions on which hooks run."""

_EVENTS_ELSEWHERE = """
    CwdChanged DirectoryAdded FileChanged InstructionsLoaded MessageDisplay PermissionDenied
    PostToolBatch Setup TaskCompleted TaskCreated TeammateIdle UserPromptExpansion
"""
"""Events of another program whose settings have the same form."""
TOOL_EVENTS = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"})
HOOK_TYPES: tuple[str, ...] = ("command", "http", "prompt", "agent")
DEFAULT_TIMEOUT = 10.0

_NEEDED: dict[str, tuple[str, ...]] = {
    "command": ("command",),
    "http": ("url",),
    "prompt": ("prompt",),
    "agent": ("agent", "prompt"),
}
"""Of these fields a handler type needs at least one."""

NAMES_ONLY = lazy_pattern(r"[\w ,|-]*", re.ASCII)
"""A matcher that lists names; anything else is a regular expression."""

TimeoutRule: TypeAlias = float | Callable[[str, str], float]
"""Seconds for a handler that names none, or how to get them from event and type."""


class HookDefinition(Struct, frozen=True, kw_only=True, rename="camel"):
    """One handler; which fields count depends on its type."""

    type: str
    timeout: Annotated[float, Meta(gt=0)] = DEFAULT_TIMEOUT
    """Seconds."""
    condition: str = field(default="", name="if")
    """One permission rule the tool call must match; tool events only."""
    status_message: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for a command, besides those of its group."""

    command: str = ""
    args: tuple[str, ...] | None = None
    """With arguments the command is a program to start, without them a line for the shell."""
    shell: Literal["bash", "powershell"] = "bash"

    url: str = ""
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    allowed_env_vars: tuple[str, ...] = ()
    """Variables that `$NAME` in header values may name."""

    prompt: str = ""
    model: str = ""
    agent: str = ""
    max_turns: int | None = None

    extra: Mapping[str, Json] = field(default_factory=dict)
    """Every other field, as configured: for handler types added from outside."""
    source: str = ""
    """Where it was configured."""

    @property
    def label(self) -> str:
        """A short name for messages."""
        text = " ".join((self.command or self.url or self.agent or self.type).split())
        return text if len(text) <= 80 else f"{text[:77]}..."


class HookGroup(Struct, frozen=True, kw_only=True):
    """Handlers that share a matcher."""

    hooks: tuple[HookDefinition, ...]
    matcher: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if problem := _find_pattern_problem(self.matcher):
            raise ConfigurationError(f"The matcher {problem}.")


HooksConfig: TypeAlias = Mapping[str, tuple[HookGroup, ...]]
"""Event to groups, in the order they were configured."""


def claude_timeout(event: str, hook_type: str) -> float:
    """The timeouts of `.claude/` settings and plugins."""
    if event == "SessionEnd":
        return 1.5
    if event == "UserPromptSubmit" or hook_type == "prompt":
        return 30.0
    return 60.0 if hook_type == "agent" else 600.0


def parse_hooks(
    raw: Json, *, source: str = "settings", default_timeout: TimeoutRule = DEFAULT_TIMEOUT
) -> HooksConfig:
    """Hooks from a settings file's `hooks` object or a plugin's hooks file (`{"hooks": {...}}`).

    Malformed entries raise one `ConfigurationError` that lists all of them with place and reason.
    """
    config, problems = read_hooks(raw, source=source, default_timeout=default_timeout)
    if problems:
        listing = "\n".join(f"- {problem}" for problem in problems)
        raise ConfigurationError(f"The hooks in {source} cannot be used; correct these entries:\n{listing}")
    return config


def read_hooks(
    raw: Json,
    *,
    source: str = "settings",
    default_timeout: TimeoutRule = DEFAULT_TIMEOUT,
    types: Collection[str] | None = None,
) -> tuple[HooksConfig, tuple[str, ...]]:
    """The same for those who go on without what is malformed: all that can be used, and what is wrong with
    the rest, each with its place (`PreToolUse[0].hooks[1]: …`). With the handler `types` that there are, what
    takes no effect belongs to the rest."""
    reader = _Reader(source, default_timeout, types)
    config = reader.read(raw)
    return config, tuple(reader.problems)


def merge_hooks(*configs: HooksConfig) -> HooksConfig:
    """All hooks of all layers; a layer never removes another one's."""
    merged: dict[str, tuple[HookGroup, ...]] = {}
    for config in configs:
        for event, groups in config.items():
            merged[event] = merged.get(event, ()) + tuple(groups)
    return merged


def check_hooks(config: HooksConfig, tools: Collection[str] | None = None) -> None:
    """Raise for hooks that would never run because a name is wrong: that of an event, or of a tool in a
    matcher or `if`, for a session that has these tools."""
    from robota.core.permissions.rules import find_unknown_tool  # noqa: PLC0415 - when a session begins

    for event, groups in config.items():
        if problem := _find_unknown_event(event):
            raise ConfigurationError(f"These hooks cannot be used: {problem}")
        for group in groups if tools is not None and event in TOOL_EVENTS else ():
            for name in _named_tools(group):
                if wrong := find_unknown_tool(name, tools or ()):
                    raise ConfigurationError(f"The {event} hooks for {name!r} would never run: {wrong}")


def _named_tools(group: HookGroup) -> Iterator[str]:
    """The names of tools that a group spells out; what a pattern may match is not known."""
    yield from list_names(group.matcher)
    yield from (hook.condition.partition("(")[0].strip() for hook in group.hooks if hook.condition)


def list_names(matcher: str) -> tuple[str, ...]:
    """The names that a matcher lists; none for one that is a pattern or matches everything."""
    if matcher in ("", "*") or not NAMES_ONLY.fullmatch(matcher):
        return ()
    return tuple(filter(None, (name.strip() for name in re.split(r"[|,]", matcher))))


def _find_unknown_event(event: str) -> str | None:
    if event in HOOK_EVENTS or event in _EVENTS_ELSEWHERE.split():
        return None
    return f"there is no event {event!r}; {suggest(event, HOOK_EVENTS)}"


def describe_unsupported(config: HooksConfig, types: Collection[str] = HOOK_TYPES) -> list[str]:
    """One sentence for each configured thing that will never take effect."""
    notes: dict[str, None] = {}
    for event, groups in config.items():
        if event not in HOOK_EVENTS and groups:
            notes[f"Hooks for {event!r} never run: this program does not have that event."] = None
        for hook in (hook for group in groups for hook in group.hooks):
            if why := _find_futility(hook, event, types):
                notes[f"The {event} hook {hook.label!r} ({hook.source}) never runs: {why}."] = None
    return list(notes)


def _find_futility(hook: HookDefinition, event: str, types: Collection[str]) -> str | None:
    if hook.type not in types:
        return f"nothing here can execute the type {hook.type!r}"
    return f"`if` has no meaning for {event}" if hook.condition and event not in TOOL_EVENTS else None


class _Reader(Struct):
    """Turns raw settings into values and notes what is wrong on the way."""

    source: str
    default_timeout: TimeoutRule
    types: Collection[str] | None
    """That can be executed; `None` if whatever takes no effect is kept."""
    problems: list[str] = []

    def read(self, raw: Json) -> HooksConfig:
        if isinstance(raw, dict) and "hooks" in raw:
            raw = raw["hooks"]
        if not isinstance(raw, dict):
            self.problems.append(f"hooks: expected an object of events, got {kind_of_value(raw)}")
            return {}
        known = {}
        for event, groups in raw.items():
            if problem := _find_unknown_event(event):
                self.problems.append(f"{event}: {problem}")
            elif event not in HOOK_EVENTS and self.types is not None:
                self.problems.append(f"{event}: its hooks never run: there is no such event here")
            else:
                known[event] = self._read_groups(event, groups)
        return known

    def _read_groups(self, event: str, raw: Json) -> tuple[HookGroup, ...]:
        if not isinstance(raw, list):
            self.problems.append(f"{event}: expected a list of groups, got {kind_of_value(raw)}")
            return ()
        groups = [self._read_group(event, f"{event}[{index}]", entry) for index, entry in enumerate(raw)]
        return tuple(group for group in groups if group is not None)

    def _read_group(self, event: str, place: str, raw: Json) -> HookGroup | None:
        if isinstance(raw, HookGroup):  # of the program itself, among those of its settings
            return raw
        if not isinstance(raw, dict):
            self.problems.append(f"{place}: expected an object with `hooks`, got {kind_of_value(raw)}")
            return None
        matcher, env, hooks = raw.get("matcher") or "", raw.get("env") or {}, raw.get("hooks")
        known = len(self.problems)
        if not isinstance(matcher, str):
            self.problems.append(f"{place}.matcher: expected a string, got {kind_of_value(matcher)}")
        elif problem := _find_pattern_problem(matcher):
            self.problems.append(f"{place}.matcher: {problem}")
        self._check_fields(place, raw, ("matcher", "env", "hooks", "description"))
        if not _is_environment(env):
            self.problems.append(f"{place}.env: expected an object of strings")
        if not isinstance(hooks, list):
            self.problems.append(f"{place}.hooks: expected a list of handlers, got {kind_of_value(hooks)}")
        if len(self.problems) > known or not isinstance(hooks, list):
            return None
        read = [self._read_hook(event, f"{place}.hooks[{i}]", hook) for i, hook in enumerate(hooks)]
        return HookGroup(matcher=matcher, env=env, hooks=tuple(hook for hook in read if hook is not None))

    def _read_hook(self, event: str, place: str, raw: Json) -> HookDefinition | None:
        if not isinstance(raw, dict):
            self.problems.append(f"{place}: expected a handler object, got {kind_of_value(raw)}")
            return None
        given = {name: value for name, value in raw.items() if value is not None}
        try:
            hook = msgspec.convert(given, HookDefinition)
        except msgspec.ValidationError as error:
            self.problems.append(f"{place}: {error}")
            return None
        self._check_fields(place, raw, _KNOWN | _FIELDS_ELSEWHERE)
        if problem := _find_problem(hook):
            self.problems.append(f"{place}: {problem}")
            return None
        if self.types is not None and (why := _find_futility(hook, event, self.types)):
            self.problems.append(f"{place}: it never runs: {why}")
            return None
        rule = hook.timeout if "timeout" in given else self.default_timeout
        return msgspec.structs.replace(
            hook,
            timeout=rule(event, hook.type) if callable(rule) else rule,
            extra={name: value for name, value in given.items() if name not in _KNOWN},
            source=self.source,
        )

    def _check_fields(self, place: str, raw: JsonObject, known: Collection[str]) -> None:
        """A field nobody knows may be for somebody else, one that is almost ours is a slip."""
        for name in sorted(raw.keys() - known):
            if near := nearest(name, known, 0.8):
                self.problems.append(f"{place}.{name}: there is no such field; did you mean {near!r}?")


_FIELDS_ELSEWHERE = frozenset(("async", "asyncRewake", "continueOnBlock", "input", "once", "server", "tool"))
_KNOWN = frozenset(HookDefinition.__struct_encode_fields__)


def _find_problem(hook: HookDefinition) -> str | None:
    if hook.type not in HOOK_TYPES and (near := nearest(hook.type, HOOK_TYPES)):
        return f"there is no handler type {hook.type!r}; did you mean {near!r}?"
    if hook.condition:
        from robota.core.permissions.rules import RuleProblem, parse_rule  # noqa: PLC0415 - few have one

        if isinstance(rule := parse_rule(hook.condition), RuleProblem):
            return f"its `if` is not a permission rule: {rule.reason}"
    needed = _NEEDED.get(hook.type, ())
    if needed and not any(getattr(hook, name).strip() for name in needed):
        return f"a {hook.type!r} handler needs `{'` or `'.join(needed)}`"
    if hook.type == "http":
        from robota.http.errors import UrlError  # noqa: PLC0415 - most settings have no http hooks
        from robota.http.url import parse_url  # noqa: PLC0415 - as above

        try:
            parse_url(hook.url)
        except UrlError as error:
            return str(error).rstrip(".")
    return None


def _find_pattern_problem(matcher: str) -> str | None:
    if NAMES_ONLY.fullmatch(matcher) or matcher == "*":
        return None
    try:
        re.compile(matcher)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{matcher!r} is neither a list of names nor a regular expression ({error})"
    return None


def _is_environment(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
