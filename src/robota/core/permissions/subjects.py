"""What a tool call touches: the one table of tools and their arguments.

Permission rules, the guard of the workspace, hooks, summaries and undo all ask here. A tool that is not in
the table may declare what it touches (`tool.touches`). That can only restrict it: rules that deny or ask bind
it, the workspace is guarded, undo saves; but no allow rule covers a call because its tool says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Literal, TypeAlias

from msgspec import Struct

SubjectKind: TypeAlias = Literal["command", "read", "write", "search", "url", "query", "agent", "skill"]


class Touches(Struct, frozen=True):
    """Which arguments of a tool name something of a kind."""

    kind: SubjectKind
    fields: tuple[str, ...]
    default: str | None = None
    """What a call is about that gives none of them."""


class Subject(Struct, frozen=True):
    """One thing that a call touches."""

    kind: SubjectKind
    field: str
    value: object
    """As given, so not always a text."""
    declared: bool = False
    """Whether only the tool itself says so."""


PATHS = ("file_path", "filePath", "path", "notebook_path", "notebookPath")
FILE_KINDS = frozenset({"read", "write", "search"})

_COMMAND = Touches("command", ("command",))
_AGENT = Touches("agent", ("subagent_type", "subagentType", "agent", "name"), "general-purpose")
TOUCHES: dict[str, Touches] = {
    "Bash": _COMMAND,
    **dict.fromkeys(("Read", "NotebookRead"), Touches("read", PATHS)),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), Touches("write", PATHS)),
    **dict.fromkeys(("LS", "Grep", "Glob"), Touches("search", PATHS)),
    "WebFetch": Touches("url", ("url",)),
    "WebSearch": Touches("query", ("query",)),
    **dict.fromkeys(("Agent", "Task"), _AGENT),
    "Skill": Touches("skill", ("skill", "name", "command")),
}
"""The tools whose names rules know. A pattern is compared with these arguments, all of them when they name
files, else the first; a parameter rule (`Tool(name:value)`) cannot name them."""

_BY_CLASS = {
    "inspect": (Touches("read", PATHS),),
    "modify": (_COMMAND, Touches("write", PATHS)),
    "execute": (_COMMAND, Touches("write", tuple(name for name in PATHS if name != "path"))),
}
"""Tools of other names, by what their arguments are called. `path` may mean anything to a program."""


READING_TOOLS, SEARCHING_TOOLS, WRITING_TOOLS = (
    frozenset(name for name, touches in TOUCHES.items() if touches.kind == kind)
    for kind in ("read", "search", "write")
)


STANDARD_TOOLS: dict[str, str] = {touches.kind: name for name, touches in reversed(TOUCHES.items())}
"""For each kind the first tool of the table."""


def kind_of(tool: str) -> SubjectKind | None:
    """What a tool of the table touches."""
    return TOUCHES[tool].kind if tool in TOUCHES else None


def declared_touches(tool: object) -> tuple[Touches, ...]:
    """What a tool says that it touches."""
    return tuple(getattr(tool, "touches", ()))


def subjects(name: str, arguments: Mapping[str, object], tool: object = None) -> tuple[Subject, ...]:
    """What a call touches, as far as its arguments say."""
    return find_subjects(name, arguments, getattr(tool, "tool_class", None), declared_touches(tool))


def find_subjects(
    name: str, arguments: Mapping[str, object], tool_class: str | None, declared: Iterable[Touches] = ()
) -> tuple[Subject, ...]:
    """The same for a tool of which only the class is known, and what it declares."""
    if name in SEARCHING_TOOLS:
        return tuple(_searched(name, arguments))
    if name in TOUCHES:
        return tuple(_find(TOUCHES[name], arguments))
    by_name = [each for touches in _BY_CLASS.get(tool_class or "", ()) for each in _find(touches, arguments)]
    return (*by_name, *(each for touches in declared for each in _find(touches, arguments, declared=True)))


def _find(touches: Touches, arguments: Mapping[str, object], *, declared: bool = False) -> Iterator[Subject]:
    for field in touches.fields:
        given = arguments.get(field)
        for value in given if declared and isinstance(given, list) else [given]:
            if value is not None:
                yield Subject(touches.kind, field, value, declared)


def _searched(name: str, arguments: Mapping[str, object]) -> Iterator[Subject]:
    """Where a search looks: its pattern may lead elsewhere than its path says."""
    found = list(_find(TOUCHES[name], arguments))
    prefix = ""
    if name == "Glob":
        prefix = _fixed_prefix(arguments.get("pattern"))
    elif name == "Grep" and (files := arguments.get("glob")) and isinstance(files, str):
        prefix = "" if set(files) & set("*?[{!") else files
    roots = [each.value for each in found if isinstance(each.value, str) and each.value]
    yield from (each for each in found if each.value not in roots)
    for root in roots or ["."]:
        below = prefix and not prefix.startswith(("/", "~"))
        yield Subject("search", "path", f"{root.rstrip('/')}/{prefix}" if below else prefix or root)


def _fixed_prefix(pattern: object) -> str:
    """The directories of a search pattern before its first wildcard; a pattern without any is a path."""
    components = pattern.split("/") if isinstance(pattern, str) else []
    return "/".join(takewhile(lambda component: not set(component) & set("*?[{"), components))
