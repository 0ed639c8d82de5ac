"""The timeline as a front end shows it, made from the one that a session keeps.

The session keeps things in the order in which they happened and messages as the model sees them. Here prompts
are shown as they were typed, what the engine said to the model is left out, and the summary of a turn's tools
stands before its answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

from msgspec.structs import replace

from robota.core.conversation import ConversationStore
from robota.core.events import ToolEnded
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from robota.sdk.tool_states import ToolState, ToolSummary, call_order

DISPLAY = "display"
SHELL_LINE = "shell"
"""The origin of what the model is told of a command that the user ran."""
"""The metadata of a prompt that front ends show in other words."""
TOOL_SUMMARY = "tool-summary"
REMARK = "system-message"
"""An entry that is shown as a message, and that the model does not see."""
_MARKS = {"success": "✓", "error": "✗", "denied": "⊘", None: "⟳"}


def tool_entry(state: ToolState) -> HistoryEntry:
    """`tool-start` or `tool-end`."""
    kind = "tool-start" if state.is_running else "tool-end"
    return HistoryEntry(category="event", type=kind, data=_describe(state))


def _describe(state: ToolState) -> dict[str, object]:
    return {
        "toolName": state.tool_name,
        "firstArg": state.first_arg,
        "isRunning": state.is_running,
        "result": state.result,
    }


def summary_entry(states: Iterable[ToolState]) -> HistoryEntry:
    """`tool-summary`: what a turn did with its tools."""
    ended = sorted(states, key=call_order)
    lines = [f"{_MARKS[state.result]} {state.tool_name}({state.first_arg})" for state in ended]
    data = {
        "toolSummaries": [{"name": state.tool_name, "args": state.first_arg} for state in ended],
        "tools": [_describe(state) for state in ended],
        "summary": "\n".join(lines),
    }
    return HistoryEntry(category="event", type=TOOL_SUMMARY, data=data)


def summarize(calls: Iterable[ToolEnded]) -> tuple[ToolSummary, ...]:
    ordered = sorted(calls, key=call_order)
    return tuple(ToolSummary(call.tool_name, encode(call.arguments).decode()) for call in ordered)


def remark_entry(words: str) -> HistoryEntry:
    return HistoryEntry(category="event", type=REMARK, data={"content": words})


def show_history(entries: Iterable[HistoryEntry]) -> list[HistoryEntry]:
    """The timeline for people."""
    shown: list[HistoryEntry] = []
    answer = -1  # where the last answer to the prompt under way stands
    for entry in entries:
        data = entry.data
        if isinstance(data, UserMessage | AssistantMessage | ToolMessage | SystemMessage):
            if (visible := show_message(data)) is None:
                continue
            if isinstance(data, AssistantMessage):
                answer = len(shown)
            elif isinstance(data, UserMessage):
                answer = -1
            shown.append(entry if visible is data else replace(entry, data=visible))
        elif entry.type == TOOL_SUMMARY and answer >= 0:
            shown.insert(answer, entry)
            answer += 1
        else:
            shown.append(_show_remark(entry) if entry.type == REMARK else entry)
    return shown


def show_message(message: Message) -> Message | None:
    """A message as it is shown; `None` for one that is between the engine and the model."""
    if isinstance(message, UserMessage):
        if message.metadata.get("origin", "steering") not in ("steering", SHELL_LINE):
            return None
        display = message.metadata.get(DISPLAY)
        return replace(message, content=display) if isinstance(display, str) else message
    if isinstance(message, AssistantMessage):
        return message if message.content.strip() else None
    return None  # results are shown as events, and the system message is not a part of the talk


def _show_remark(entry: HistoryEntry) -> HistoryEntry:
    words = entry.data.get("content", "") if isinstance(entry.data, dict) else ""
    message = SystemMessage(str(words), id=entry.id, timestamp=entry.timestamp)
    return HistoryEntry(category="chat", type="system", data=message, id=entry.id, timestamp=entry.timestamp)


class ShownHistory(Sequence[HistoryEntry]):
    """The timeline as it is now; made when it is looked at, because most results are not asked for it."""

    __slots__ = ("_conversation", "_count", "_entries")

    def __init__(self, conversation: ConversationStore) -> None:
        self._conversation = conversation
        self._count = len(conversation.entries)
        self._entries: list[HistoryEntry] | None = None

    def _made(self) -> list[HistoryEntry]:
        if self._entries is None:
            self._entries = show_history(self._conversation.history[: self._count])
        return self._entries

    @overload
    def __getitem__(self, index: int) -> HistoryEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[HistoryEntry]: ...
    def __getitem__(self, index: int | slice) -> HistoryEntry | list[HistoryEntry]:
        return self._made()[index]

    def __len__(self) -> int:
        return len(self._made())
