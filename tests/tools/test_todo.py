from __future__ import annotations

from typing import Any

import msgspec
import pytest

from robota.core.tool import Tool, ToolContext, ToolResult, tool_class
from robota.tools.builtins.plan import Todo, TodoList, todo_tool

pytestmark = pytest.mark.anyio

PLAN = [
    {"content": "Read the parser", "status": "completed"},
    {"content": "Fix the bug", "status": "in_progress", "activeForm": "Fixing the bug"},
    {"content": "Run the tests", "status": "pending"},
]


async def write(todos: Any, held: TodoList | None = None) -> ToolResult:
    return await todo_tool(held).run({"todos": todos}, ToolContext())


def test_it_is_a_tool_that_inspects() -> None:
    tool = todo_tool()
    assert isinstance(tool, Tool)
    assert (tool.name, tool_class(tool)) == ("TodoWrite", "inspect")
    assert "replaces the one before" in tool.description


async def test_a_call_replaces_the_whole_list() -> None:
    held = TodoList([Todo("Something old", "pending")])
    result = await write(PLAN, held)
    assert result.text == "Todo list saved: 1 completed, 1 in progress, 1 pending."
    assert held.items == (
        Todo("Read the parser", "completed"),
        Todo("Fix the bug", "in_progress", "Fixing the bug"),
        Todo("Run the tests", "pending"),
    )
    assert result.metadata == {"todos": PLAN}


async def test_an_empty_list_clears_it() -> None:
    held = TodoList([Todo("Something old", "pending")])
    assert (await write([], held)).text == "The todo list is empty now."
    assert held.items == ()


async def test_more_than_one_item_in_progress_is_advised_against() -> None:
    result = await write([{"content": name, "status": "in_progress"} for name in "ab"])
    assert (result.ok, "only one item in progress" in result.text) == (True, True)


async def test_work_without_an_item_in_progress_is_pointed_out() -> None:
    assert "to in_progress" in (await write([{"content": "a", "status": "pending"}])).text


async def test_the_list_survives_saving_and_loading() -> None:
    held = TodoList()
    await write(PLAN, held)
    saved = msgspec.json.decode(msgspec.json.encode(held.to_json()))
    assert TodoList.from_json(saved).items == held.items


async def test_the_list_is_given_word_for_word() -> None:
    held = TodoList()
    await write(PLAN, held)
    assert held.text == "[x] Read the parser\n[>] Fix the bug\n[ ] Run the tests"
    assert held.open_text == "[>] Fix the bug\n[ ] Run the tests"


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        ("a", "todos"),
        ([{"content": "a"}], "status"),
        ([{"content": "", "status": "pending"}], "content"),
        ([{"content": "a", "status": "done"}], "in_progress"),
        ([{"content": "a", "status": "pending"}] * 201, "200"),
    ],
)
async def test_a_wrong_list_changes_nothing(todos: Any, said: str) -> None:
    held = TodoList([Todo("Kept", "pending")])
    result = await write(todos, held)
    assert not result.ok
    assert said in (result.error or "")
    assert held.items == (Todo("Kept", "pending"),)
