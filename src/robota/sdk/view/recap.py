"""The end of an earlier conversation, shown when somebody goes on with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from robota.core.messages import AssistantMessage, HistoryEntry, SystemMessage, UserMessage
from robota.sdk.timeline import TOOL_SUMMARY
from robota.sdk.view.heard import show_prompt
from robota.sdk.view.neutral import neutral_line, neutralise

if TYPE_CHECKING:
    from robota.sdk.view.presenter import Presenter

ENTRIES = 100
PART = 800
"""Characters of an answer that are shown in one step."""


def recap(to: Presenter, entries: Sequence[HistoryEntry]) -> Iterator[Callable[[], object]]:
    """The steps that show the last entries, each a short one."""
    told = [entry for entry in entries if entry.category == "chat" or entry.type == TOOL_SUMMARY]
    left_out = max(0, len(told) - ENTRIES)
    if left_out:
        yield partial(to.emit, "notice", to.say("view.recap-left-out", count=left_out))
    for entry in told[left_out:]:
        yield from _show(to, entry.data)
    if told:
        yield partial(to.emit, "notice", to.say("view.recap-end"))


def _show(to: Presenter, data: Any) -> Iterator[Callable[[], object]]:
    match data:
        case UserMessage():
            yield partial(show_prompt, to, data)
        case AssistantMessage(content=text):
            for at in range(0, len(text), PART):
                yield partial(to.add_text, text[at : at + PART])
            yield to.end_text
        case SystemMessage(content=text):
            kind = "error" if text.startswith("Error: ") else "notice"
            yield partial(to.emit, kind, neutralise(text.removeprefix("Error: ")))
        case {"tools": [*tools]}:
            for at, tool in enumerate(tools):
                yield partial(_show_tool, to, tool, at == 0)


def _show_tool(to: Presenter, tool: Any, gap: bool) -> None:
    match tool:
        case {
            "toolName": str(name),
            "firstArg": str(argument),
            "result": "success" | "error" | "denied" as end,
        }:
            to.emit("tool", title=neutral_line(name), about=neutral_line(argument), state=end, gap=gap)
