"""How rules apply to a call: what all matchers share, and those for files and for plain arguments.

There is one matcher for each kind of thing that a call is about: a shell command (`command_matcher`), an
address (`url_matcher`), files, or any other argument.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from robota.core.permissions.modes import PermissionMode, ToolClass
from robota.core.permissions.paths import (
    DeniedPaths,
    PathForms,
    Place,
    covers,
    in_workspace,
    is_protected,
    resolve,
    shorten,
)
from robota.core.permissions.rules import Rule, RuleSet, compared_fields, split_parameter, text_glob
from robota.core.permissions.subjects import (
    FILE_KINDS,
    READING_TOOLS,
    SEARCHING_TOOLS,
    TOUCHES,
    WRITING_TOOLS,
    Touches,
    find_subjects,
)

_CONTROLS = frozenset(
    "\x7f\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
).union(map(chr, (*range(9), *range(11, 32), *range(0x80, 0xA0))))


_RARER_TOOLS = ("MultiEdit", "NotebookEdit")


class Call(Struct, frozen=True, gc=False):
    """One tool call under judgement."""

    tool: str
    arguments: Mapping[str, object]
    mode: PermissionMode
    tool_class: ToolClass | None
    place: Place
    allow: RuleSet
    deny: RuleSet
    ask: RuleSet
    touches: tuple[Touches, ...] = ()
    """What the tool declares."""


class Hit(Struct, frozen=True, gc=False):
    """A deny or ask rule that applies to a call."""

    part: str | None
    certain: bool = True
    """False: it could not be evaluated, so someone has to be asked."""
    reason: str = ""


class Cover(Struct, frozen=True, gc=False):
    """Why a call needs no question."""

    rule: str
    part: str | None = None
    whole: bool = False
    """Whether the rule is about every command there is."""


class Gap(Struct, frozen=True, gc=False):
    """What no allow rule covers."""

    part: str | None = None
    reason: str = ""


class Matcher(Protocol):
    def relevant(self, rules: RuleSet) -> Sequence[Rule]:
        """The deny or ask rules that may apply: a matcher may be sure of many others at once."""
        return rules.rules

    def hit(self, rule: Rule) -> Hit | None:
        """How a deny or ask rule with a pattern applies; rules without one were handled before."""

    def cover(self) -> Cover | Gap:
        """The allow rules that cover the whole call, or what they leave open."""

    def narrowest(self) -> list[str]:
        """The narrowest allow rules that would cover the call; none when none can be written safely."""


def first_cover(call: Call, covers: Callable[[Rule], bool], part: str | None) -> Cover | Gap:
    """The first allow rule that covers a call by itself."""
    for rule in call.allow.rules:
        if covers(rule):
            return Cover(rule.text, part)
    return Gap(part, "no rule allows it")


def text_argument(arguments: Mapping[str, object], *names: str) -> str | None:
    """The first of the named arguments, when it is a text."""
    for name in names:
        if name in arguments:
            value = arguments[name]
            return value if isinstance(value, str) else None
    return None


def parameter_hit(call: Call, pattern: str) -> Hit | None:
    """A parameter rule (`model:opus`); an argument that was left out never matches."""
    split = split_parameter(pattern)
    if split is None or split[0] in compared_fields(call.tool):
        return None
    name, glob = split
    value = call.arguments.get(name)
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (str, int, float)):
        text = str(value)
    else:
        return None
    return Hit(f"{name}: {text}") if glob.matches(text) else None


def has_controls(text: str) -> bool:
    """Whether a text holds controls or changes of direction, which people and parsers see differently."""
    if text.isprintable():
        return False
    surrogates = not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
    return surrogates or not _CONTROLS.isdisjoint(text)


def _as_json(arguments: Mapping[str, object]) -> str | None:
    """All arguments as one text, the same for the same arguments."""
    try:
        return json.dumps(arguments, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return None


class TextMatcher(Matcher):
    """Agents, skills, searches, MCP tools and tools nobody knows.

    Rules are compared with the argument that the tool is about, or with all of them as JSON.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._fields = compared_fields(call.tool)
        self._value = text_argument(call.arguments, *self._fields)
        if call.tool in TOUCHES and not any(call.arguments.get(name) for name in self._fields):
            self._value = TOUCHES[call.tool].default
        if self._value is None and not self._fields and call.arguments:
            self._value = _as_json(call.arguments)

    def hit(self, rule: Rule) -> Hit | None:
        pattern = rule.pattern
        if not self._names(rule):
            return None
        if pattern is None:
            return Hit(self._value)
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        if self._value is not None and (self._fields or self._matches(pattern)):
            return Hit(self._value) if self._matches(pattern) else None
        if self._fields or split_parameter(pattern) is None:
            return Hit(None, certain=False, reason="the rule cannot be compared with this call's arguments")
        return None

    def cover(self) -> Cover | Gap:
        return first_cover(self._call, self._covers, self._value)

    def narrowest(self) -> list[str]:
        if self._value is None:
            return [self._call.tool]
        return [] if "*" in self._value else [f"{self._call.tool}({self._value})"]

    def _names(self, rule: Rule) -> bool:
        """`Task` is the older name of `Agent`."""
        tool = self._call.tool
        other = {"Agent": "Task", "Task": "Agent"}.get(tool)
        return rule.names(tool) or (other is not None and rule.names(other))

    def _covers(self, rule: Rule) -> bool:
        return self._names(rule) and (
            rule.pattern is None or (self._value is not None and self._matches(rule.pattern))
        )

    def _matches(self, pattern: str) -> bool:
        forms = [self._value or ""]
        if self._call.tool == "Skill" and (given := text_argument(self._call.arguments, "args", "arguments")):
            forms.append(f"{forms[0]} {given}")
        return any(text_glob(pattern).matches(form) for form in forms)


class FileMatcher(Matcher):
    """Calls that read, search or write files."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._searches = call.tool in SEARCHING_TOOLS
        self._problem: str | None = None
        self._paths: list[tuple[str, PathForms]] = []
        for subject in find_subjects(call.tool, call.arguments, call.tool_class):
            if subject.kind in FILE_KINDS:
                self._add(subject.value)
        if not self._paths and self._problem is None:
            self._problem = "the path is missing"
        self._shown = self._paths[0][0] if self._paths else None

    def _add(self, path: object) -> None:
        if not isinstance(path, str) or not path:
            self._problem = self._problem or "the path is not a text"
            return
        if has_controls(path):
            self._problem = "the path holds control or direction-changing characters"
        try:
            self._paths.append((path, resolve(path, self._call.place.cwd, self._call.place.home)))
        except (OSError, ValueError):
            self._problem = "the path cannot be resolved"

    def hit(self, rule: Rule) -> Hit | None:
        if not self.concerns(rule):
            return None
        pattern, own = rule.pattern, rule.names(self._call.tool)
        if pattern is None:
            return Hit(self._shown)
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        wanted = text_argument(self._call.arguments, "pattern") if self._searches and own else None
        if wanted is not None and text_glob(pattern).matches(wanted):
            return Hit(wanted)
        denied = DeniedPaths(pattern, self._call.place)
        for path, forms in self._paths:
            if denied.hits(forms, directory=self._searches):
                return Hit(path)
        problem = self._problem
        if problem is None and own and wanted is None and self._call.tool in ("Grep", "Glob"):
            problem = "the pattern is missing or is not a text"
        return None if problem is None else Hit(self._shown, certain=False, reason=problem)

    def concerns(self, rule: Rule) -> bool:
        """A Read rule binds searching and writing too, Write and Edit rules bind each other. A rule without a
        pattern that turns off a rarer tool turns off that one alone."""
        tool, writes = self._call.tool, self._call.tool_class == "modify" or self._call.tool in WRITING_TOOLS
        if rule.names(tool):
            return True
        if any(rule.names(each) for each in READING_TOOLS):
            return not writes or rule.pattern is not None
        if rule.pattern is None and rule.tool in _RARER_TOOLS:
            return False
        return writes and any(rule.names(each) for each in WRITING_TOOLS)

    def cover(self) -> Cover | Gap:
        if self._problem is not None:
            return Gap(self._shown, self._problem)
        return first_cover(self._call, self._covers, self._shown)

    def _covers(self, rule: Rule) -> bool:
        return rule.names(self._call.tool) and all(
            covers(rule.pattern, forms, self._call.place) for _, forms in self._paths
        )

    def mode_gap(self) -> Gap | None:
        """Why the mode does not reach the call: `acceptEdits` means the workspace and no protected file."""
        if self._call.mode != "acceptEdits" or self._call.tool_class != "modify":
            return None
        if self._problem is not None:
            return Gap(self._shown, self._problem)
        for path, forms in self._paths:
            if not in_workspace(forms, self._call.place):
                return Gap(path, "the file is outside the workspace")
            if is_protected(forms):
                return Gap(path, "the file is protected because it decides what runs later")
        return None

    def narrowest(self) -> list[str]:
        paths = [shorten(forms.lexical[0], self._call.place) for _, forms in self._paths]
        if any("*" in path for path in paths):
            return []
        return [f"{self._call.tool}({path})" for path in dict.fromkeys(paths)]
