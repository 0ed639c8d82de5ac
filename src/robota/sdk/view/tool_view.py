"""What is shown of a tool call that has ended: the beginning of its result, or what it changed in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from robota.core.events import ToolEnded
from robota.core.messages import Json
from robota.sdk.tool_states import DiffLine, find_change, ran_with, subject
from robota.sdk.view.model import Say, Todo, TodoState
from robota.sdk.view.neutral import neutral_line, neutral_output, neutralise

PREVIEW_LINES = 4
LINE_SHOWN = 400
"""Characters of one line of a result; a longer one is shown whole by the key for it."""
DIFF_SHOWN = 12
DIFF_FIRST = 10
DIFF_CONTEXT = 3
_SIGNS = {"added": "+", "removed": "-", "same": " "}


class Shortened(Struct, frozen=True):
    """A text as it is shown, and the whole of it if that is more."""

    text: str
    full: str = ""


def show_seconds(seconds: float) -> str:
    """A span of time in a few letters."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def about(arguments: Mapping[str, Json]) -> str:
    """What a call is about, in one line."""
    return neutral_line(subject(arguments))


def preview(event: ToolEnded, say: Say) -> Shortened:
    """The first lines of what a tool said, or why it said nothing; also the one that says how a command
    failed."""
    said = event.content if event.outcome == "success" else event.error or event.content
    note = event.metadata.get("sandboxNote")
    if isinstance(note, str):
        said = f"{said}\n{note}"
    whole = neutral_output(said).strip("\n").rstrip()
    lines = whole.split("\n") if whole else []
    shown = [_short(line.rstrip()) for line in lines[:PREVIEW_LINES]]
    left = lines[PREVIEW_LINES:]
    code = event.metadata.get("exitCode")
    end = [line for line in left if code and line.endswith(f" {code}]")][-1:]
    if len(left) > len(end):
        shown.append(say("view.more-output", count=len(left) - len(end)))
    text = "\n".join([*shown, *end])
    return Shortened(text, whole if text != whole else "")


def has_failed(event: ToolEnded) -> bool:
    """Whether a command ended with another code than 0: the call went well, what it ran did not."""
    return bool(event.metadata.get("exitCode"))


def _short(line: str) -> str:
    return line if len(line) <= LINE_SHOWN else f"{line[: LINE_SHOWN - 1]}…"


def change(event: ToolEnded, say: Say) -> tuple[str, Shortened] | None:
    """The file that a call changed and its lines, with signs; `None` when it did not."""
    if event.outcome != "success":
        return None
    file, lines = find_change(event.tool_name, ran_with(event))
    if file is None or all(line.kind == "same" for line in lines):
        return None
    return neutral_line(file), shorten_diff([_mark(line) for line in _near_changes(lines)], say)


def shorten_diff(lines: Sequence[str], say: Say) -> Shortened:
    """Lines of a diff, at most a dozen."""
    if len(lines) <= DIFF_SHOWN:
        return Shortened("\n".join(lines))
    more = say("view.more-lines", count=len(lines) - DIFF_FIRST)
    return Shortened("\n".join([*lines[:DIFF_FIRST], more]), "\n".join(lines))


def _mark(line: DiffLine) -> str:
    return f"{_SIGNS[line.kind]} {neutralise(line.text)}".rstrip()


def _near_changes(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Without the lines that only stand far from a change."""
    changed = [at for at, line in enumerate(lines) if line.kind != "same"]
    near = {at + step for at in changed for step in range(-DIFF_CONTEXT, DIFF_CONTEXT + 1)}
    return [line for at, line in enumerate(lines) if at in near]


class _Item(Struct):
    content: str
    status: TodoState


class _Items(Struct):
    todos: list[_Item]


def read_todos(event: ToolEnded) -> tuple[Todo, ...] | None:
    """The list that a call of TodoWrite has written, if it is one."""
    if event.tool_name != "TodoWrite" or event.outcome != "success":
        return None
    try:
        items = msgspec.convert(event.arguments, _Items).todos
    except msgspec.ValidationError:
        return None
    return tuple(Todo(neutral_line(item.content), item.status) for item in items)
