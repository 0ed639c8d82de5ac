"""A tool call as editors show it: its kind, the files it is about, what it changes and what it says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolKind,
)

from robota.core.messages import Json
from robota.core.permissions.subjects import FILE_KINDS, subjects
from robota.sdk.tool_states import subject
from robota.sdk.view.neutral import neutral_line, neutral_output
from robota.transports.acp.content import text_block

Content: TypeAlias = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

KINDS: dict[str, ToolKind] = {
    "Read": "read", "Glob": "search", "Grep": "search", "Edit": "edit", "Write": "edit",
    "Bash": "execute", "BashOutput": "execute", "KillBash": "execute", "WebFetch": "fetch",
    "WebSearch": "fetch", "TodoWrite": "think", "Agent": "think", "EnterPlanMode": "switch_mode",
    "ExitPlanMode": "switch_mode",
}  # fmt: skip
LARGEST_BEFORE = 1 << 20
"""Bytes of a file that is shown as it was before a call wrote it."""


def kind_of_call(tool: str) -> ToolKind:
    return KINDS.get(tool, "other")


def title_of_call(tool: str, arguments: Mapping[str, Json]) -> str:
    """A command as it is; else the tool and what it is about."""
    if tool == "Bash" and isinstance(command := arguments.get("command"), str):
        return neutral_line(command) or tool
    about = neutral_line(subject(arguments))
    return f"{tool} {about}" if about and tool != "TodoWrite" else tool


def find_locations(
    tool: str, arguments: Mapping[str, Json], cwd: str, line: Json = None
) -> list[ToolCallLocation]:
    """The files that a call is about; searches are about none in particular."""
    offset = arguments.get("offset") if tool == "Read" else line
    number = int(offset) if isinstance(offset, int | float) and offset > 0 else None
    return [
        ToolCallLocation(path=os.path.join(cwd, subject.value), line=number)
        for subject in subjects(tool, arguments)
        if subject.kind in FILE_KINDS and subject.kind != "search" and isinstance(subject.value, str)
    ]


def find_diff(
    tool: str, arguments: Mapping[str, Json], cwd: str, before: str | None
) -> FileEditToolCallContent | None:
    """What a call of Edit or Write changes; `before` is what the file to be written held."""
    path = arguments.get("file_path", arguments.get("filePath"))
    if tool == "Edit":
        old = arguments.get("old_string", arguments.get("oldString")) or None
        new = arguments.get("new_string", arguments.get("newString"))
    elif tool == "Write":
        old, new = before, arguments.get("content")
    else:
        return None
    if not isinstance(path, str) or not isinstance(new, str):
        return None
    return FileEditToolCallContent(
        type="diff",
        path=os.path.join(cwd, path),
        old_text=old if isinstance(old, str) else None,
        new_text=new,
    )


def read_before(tool: str, arguments: Mapping[str, Json], cwd: str) -> str | None:
    """What the file holds that a call is about to write; `None` if there is none, or it is no short text."""
    path = arguments.get("file_path", arguments.get("filePath"))
    if tool != "Write" or not isinstance(path, str):
        return None
    try:
        with open(os.path.join(cwd, path), "rb") as file:
            data = file.read(LARGEST_BEFORE + 1)
        return data.decode() if len(data) <= LARGEST_BEFORE else None
    except (OSError, ValueError):
        return None


def say(text: str) -> ContentToolCallContent:
    return ContentToolCallContent(type="content", content=text_block(text))


def fence(text: str) -> str:
    """What a program printed, as Markdown that is shown as it is."""
    clean = neutral_output(text).strip("\n")
    longest = max((len(run) for run in _runs_of_ticks(clean)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{clean}\n{ticks}"


def _runs_of_ticks(text: str) -> Sequence[str]:
    import re  # noqa: PLC0415 - once per result

    return re.findall("`+", text) if "`" in text else ()
