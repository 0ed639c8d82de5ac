"""One tool call under judgement, and what the parts of the evaluator tell each other about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from robota.core.permissions.modes import PermissionMode, ToolClass
from robota.core.permissions.paths import Place
from robota.core.permissions.rules import PRIMARY_FIELDS, Rule, RuleSet, split_parameter

READING_TOOLS = frozenset({"Read", "NotebookRead"})
SEARCHING_TOOLS = frozenset({"Grep", "Glob", "LS"})
WRITING_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
PATH_ARGUMENTS = ("file_path", "filePath", "path", "notebook_path", "notebookPath")


class Call(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, object]
    mode: PermissionMode
    tool_class: ToolClass | None
    place: Place
    allow: RuleSet
    deny: RuleSet
    ask: RuleSet


class Hit(Struct, frozen=True):
    """A deny or ask rule that applies to a call."""

    part: str | None
    certain: bool = True
    """False: it could not be evaluated, so someone has to be asked."""
    reason: str = ""


class Cover(Struct, frozen=True):
    """Why a call needs no question."""

    rule: str
    part: str | None = None


class Gap(Struct, frozen=True):
    """What no allow rule covers."""

    part: str | None = None
    reason: str = ""


class Subject(Protocol):
    """What a call is about: a shell command, a file, an address, or something else."""

    def hit(self, rule: Rule) -> Hit | None:
        """How a deny or ask rule with a pattern applies; rules without one were handled before."""

    def cover(self) -> Cover | Gap:
        """The allow rules that cover the whole call, or what they leave open."""

    def mode_gap(self) -> Gap | None:
        """Why the mode's permission does not reach this call, if it does not."""


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
    if split is None or split[0] in PRIMARY_FIELDS.get(call.tool, ()):
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
    if text.isascii():
        return not text.isprintable() and any((c < " " and c not in "\t\n") or c == "\x7f" for c in text)
    return any(
        (character < " " and character not in "\t\n")
        or "\x7f" <= character <= "\x9f"
        or character in "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        or "\ud800" <= character <= "\udfff"
        for character in text
    )
