"""What a front end shows of tool calls: which run, what they are about, how they ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from robota.core.events import ToolEnded, ToolOutcome, ToolStarted
from robota.core.messages import Json
from robota.core.tool_call import RAN_WITH

SUBJECTS = ("command", "file_path", "path", "url", "query", "pattern", "prompt", "skill")
"""Arguments that say what a call is about."""
ARGUMENT_SHOWN = 80
TAIL_KEPT = 30
"""Of a longer argument, so that the name of a file stays in sight."""
FINISHED_KEPT = 50
DIFF_LINES = 200
"""Of one call; the rest of a larger change is in the file."""


class DiffLine(Struct, frozen=True):
    """One line of a change."""

    kind: Literal["added", "removed", "same"]
    text: str


class ToolState(Struct, frozen=True, kw_only=True, rename="camel"):
    """One call, as it is now."""

    tool_name: str
    first_arg: str = ""
    is_running: bool = True
    result: ToolOutcome | None = None
    """How it ended."""
    diff_lines: tuple[DiffLine, ...] = ()
    diff_file: str | None = None
    call_id: str = ""


class ToolSummary(Struct, frozen=True):
    """A call of a finished turn."""

    name: str
    args: str = ""
    """All of its arguments, as JSON text."""


class ToolStates:
    """The calls under way, and the last that ended."""

    __slots__ = ("_finished", "_running")

    def __init__(self) -> None:
        self._running: dict[str, ToolState] = {}
        self._finished: deque[ToolState] = deque(maxlen=FINISHED_KEPT)

    @property
    def shown(self) -> list[ToolState]:
        return [*self._finished, *self._running.values()]

    def clear(self) -> None:
        self._running.clear()
        self._finished.clear()

    def start(self, event: ToolStarted) -> ToolState:
        state = self._running[event.call_id] = _describe(event)
        return state

    def end(self, event: ToolEnded) -> ToolState:
        """The finished state; also of a call that was denied and so never began."""
        self._running.pop(event.call_id, None)
        state = _describe(event, event.outcome)
        self._finished.append(state)
        return state


def call_order(call: ToolState | ToolEnded) -> tuple[int, int]:
    """Calls in the order in which the model made them; in which they end depends on timing."""
    batch, _, index = call.call_id.rpartition("-")
    return int(batch.rpartition("-r")[2]), int(index)


def _describe(event: ToolStarted | ToolEnded, result: ToolOutcome | None = None) -> ToolState:
    arguments = ran_with(event) if isinstance(event, ToolEnded) else event.arguments
    file, lines = find_change(event.tool_name, arguments)
    return ToolState(
        tool_name=event.tool_name,
        first_arg=first_argument(arguments),
        is_running=result is None,
        result=result,
        diff_lines=lines,
        diff_file=file,
        call_id=event.call_id,
    )


def ran_with(event: ToolEnded) -> Mapping[str, Json]:
    """The arguments with which a call ran: the user, or a hook, may have changed them."""
    changed = event.metadata.get(RAN_WITH)
    return changed if isinstance(changed, dict) else event.arguments


def first_argument(arguments: Mapping[str, Json]) -> str:
    """The first argument of a call, short enough for one line, with the end in sight."""
    return _shorten(next(iter(arguments.values()), ""))


def subject(arguments: Mapping[str, Json]) -> str:
    """What a call is about, as short: the command, file or question, wherever the model put it, else the
    first argument."""
    for name, value in arguments.items():
        if name in SUBJECTS and isinstance(value, str):
            return _shorten(value)
    asked = arguments.get("questions")
    first = asked[0] if isinstance(asked, list) and asked else None
    question = first.get("question") if isinstance(first, dict) else None
    return _shorten(question) if isinstance(question, str) else first_argument(arguments)


def _shorten(value: Json) -> str:
    text = value if isinstance(value, str) else write_value(value)
    if len(text) <= ARGUMENT_SHOWN:
        return text
    return f"{text[: ARGUMENT_SHOWN - TAIL_KEPT - 3]}...{text[-TAIL_KEPT:]}"


def write_value(value: Json) -> str:
    import json  # noqa: PLC0415 - few calls begin with anything but a text

    return json.dumps(value, ensure_ascii=False)


def find_change(tool_name: str, arguments: Mapping[str, Json]) -> tuple[str | None, tuple[DiffLine, ...]]:
    """The file that a call changes and how, as far as its arguments tell."""
    path = arguments.get("file_path", arguments.get("filePath"))
    if tool_name == "Edit":
        old = arguments.get("old_string", arguments.get("oldString"))
        new = arguments.get("new_string", arguments.get("newString"))
    elif tool_name == "Write":
        old, new = "", arguments.get("content")
    else:
        return None, ()
    if not (isinstance(path, str) and isinstance(old, str) and isinstance(new, str)):
        return None, ()
    return path, compare_lines(old, new)


def compare_lines(old: str, new: str) -> tuple[DiffLine, ...]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - with the first change

    before, after = old.splitlines()[: DIFF_LINES * 2], new.splitlines()[: DIFF_LINES * 2]
    lines: list[DiffLine] = []
    for tag, start, end, other_start, other_end in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            lines += [DiffLine("same", line) for line in before[start:end]]
        else:
            lines += [DiffLine("removed", line) for line in before[start:end]]
            lines += [DiffLine("added", line) for line in after[other_start:other_end]]
    return tuple(lines[:DIFF_LINES])
