"""What a hook is and how hooks are read from settings: events, groups with a matcher, handlers.

Reading is strict about shape and lenient about names: every malformed entry is reported with its place, while
an event we never fire or a type nobody executes is kept and can be listed with `describe_unsupported`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from robota.core.errors import ConfigurationError
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
)
"""The occasions on which hooks run."""

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
    """Variables for a command: the group's, then its own."""

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
    reader = _Reader(source, default_timeout)
    config = reader.read(raw)
    if reader.problems:
        listing = "\n".join(f"- {problem}" for problem in reader.problems)
        raise ConfigurationError(f"The hooks in {source} cannot be used; correct these entries:\n{listing}")
    return config


def merge_hooks(*configs: HooksConfig) -> HooksConfig:
    """All hooks of all layers; a layer never removes another one's."""
    merged: dict[str, tuple[HookGroup, ...]] = {}
    for config in configs:
        for event, groups in config.items():
            merged[event] = merged.get(event, ()) + tuple(groups)
    return merged


def describe_unsupported(config: HooksConfig, types: Collection[str] = HOOK_TYPES) -> list[str]:
    """One sentence for each configured thing that will never take effect."""
    notes: dict[str, None] = {}
    for event, groups in config.items():
        if event not in HOOK_EVENTS:
            notes[f"Hooks for {event!r} never run: this program does not have that event."] = None
        for hook in (hook for group in groups for hook in group.hooks):
            if hook.type not in types:
                notes[f"The hook type {hook.type!r} ({event}, {hook.source}) cannot be executed."] = None
            if hook.condition and event not in TOOL_EVENTS:
                notes[f"The hook {hook.label!r} never runs: `if` has no meaning for {event}."] = None
    return list(notes)


class _Reader(Struct):
    """Turns raw settings into values and notes what is wrong on the way."""

    source: str
    default_timeout: TimeoutRule
    problems: list[str] = []

    def read(self, raw: Json) -> HooksConfig:
        if isinstance(raw, dict) and isinstance(raw.get("hooks"), dict):
            raw = raw["hooks"]
        if not isinstance(raw, dict):
            self.problems.append(f"hooks: expected an object of events, got {_kind(raw)}")
            return {}
        return {event: self._read_groups(event, groups) for event, groups in raw.items()}

    def _read_groups(self, event: str, raw: Json) -> tuple[HookGroup, ...]:
        if not isinstance(raw, list):
            self.problems.append(f"{event}: expected a list of groups, got {_kind(raw)}")
            return ()
        groups = [self._read_group(event, f"{event}[{index}]", entry) for index, entry in enumerate(raw)]
        return tuple(group for group in groups if group is not None)

    def _read_group(self, event: str, place: str, raw: Json) -> HookGroup | None:
        if not isinstance(raw, dict):
            self.problems.append(f"{place}: expected an object with `hooks`, got {_kind(raw)}")
            return None
        matcher, env, hooks = raw.get("matcher") or "", raw.get("env") or {}, raw.get("hooks")
        known = len(self.problems)
        if not isinstance(matcher, str):
            self.problems.append(f"{place}.matcher: expected a string, got {_kind(matcher)}")
        if not _is_environment(env):
            self.problems.append(f"{place}.env: expected an object of strings")
        if not isinstance(hooks, list):
            self.problems.append(f"{place}.hooks: expected a list of handlers, got {_kind(hooks)}")
        if len(self.problems) > known or not isinstance(hooks, list):
            return None
        read = [self._read_hook(event, f"{place}.hooks[{i}]", hook, env) for i, hook in enumerate(hooks)]
        return HookGroup(matcher=matcher, env=env, hooks=tuple(hook for hook in read if hook is not None))

    def _read_hook(self, event: str, place: str, raw: Json, env: JsonObject) -> HookDefinition | None:
        if not isinstance(raw, dict):
            self.problems.append(f"{place}: expected a handler object, got {_kind(raw)}")
            return None
        given = {name: value for name, value in raw.items() if value is not None}
        try:
            hook = msgspec.convert(given, HookDefinition)
        except msgspec.ValidationError as error:
            self.problems.append(f"{place}: {error}")
            return None
        if problem := _find_problem(hook):
            self.problems.append(f"{place}: {problem}")
            return None
        rule = hook.timeout if "timeout" in given else self.default_timeout
        return msgspec.structs.replace(
            hook,
            timeout=rule(event, hook.type) if callable(rule) else rule,
            env={**env, **hook.env},
            extra={name: value for name, value in given.items() if name not in _KNOWN},
            source=self.source,
        )


_KNOWN = frozenset(HookDefinition.__struct_encode_fields__)


def _find_problem(hook: HookDefinition) -> str | None:
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


def _is_environment(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _kind(value: Json) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    return names.get(type(value), "a number")
