"""The TodoWrite tool and the list it keeps, which outlasts summaries and can be saved with a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.messages import Json, JsonObject
from robota.core.tool import ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]

MAX_TODOS = 200
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "maxItems": MAX_TODOS,
            "description": "The whole list, in the order in which things are to be done.",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "minLength": 1, "maxLength": 2000},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string"},
                },
                "required": ["content", "status"],
            },
        },
    },
    "required": ["todos"],
    "additionalProperties": False,
}
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Todo(Struct, frozen=True, omit_defaults=True, rename={"active_form": "activeForm"}):
    """One thing to do."""

    content: str
    status: TodoStatus
    active_form: str = ""
    """What is happening while it is in progress."""


class TodoList:
    """The things to do in one session."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Todo] = ()) -> None:
        self.items: tuple[Todo, ...] = tuple(items)

    def count(self, status: TodoStatus) -> int:
        return sum(item.status == status for item in self.items)

    @property
    def text(self) -> str:
        """The list word for word, one line for each item."""
        return "\n".join(f"{_BOXES[item.status]} {' '.join(item.content.split())}" for item in self.items)

    @property
    def open_text(self) -> str:
        """What is not done yet, for a summary of the conversation."""
        return TodoList([item for item in self.items if item.status != "completed"]).text

    def to_json(self) -> list[Json]:
        return [msgspec.to_builtins(item) for item in self.items]

    @classmethod
    def from_json(cls, items: Sequence[Mapping[str, Json]]) -> TodoList:
        """The list of a saved session. Raises `msgspec.ValidationError` for anything else."""
        return cls(msgspec.convert(items, tuple[Todo, ...]))


def todo_tool(todos: TodoList | None = None) -> FunctionTool:
    """The tool; whoever needs the list besides (screen, session, summary) passes it in."""
    held = TodoList() if todos is None else todos

    async def write_todos(todos: list[JsonObject]) -> ToolResult:
        held.items = msgspec.convert(todos, tuple[Todo, ...])
        return ToolResult(content=_report(held), metadata={"todos": held.to_json()})

    return FunctionTool("TodoWrite", text_beside(__file__), PARAMETERS, write_todos, tool_class="inspect")


def _report(todos: TodoList) -> str:
    if not todos.items:
        return "The todo list is empty now."
    done, active, waiting = (todos.count(status) for status in ("completed", "in_progress", "pending"))
    said = f"Todo list saved: {done} completed, {active} in progress, {waiting} pending."
    if active > 1:
        return f"{said} Better keep only one item in progress at a time."
    if active == 0 and waiting:
        return f"{said} Set the item you work on to in_progress."
    return said
