"""Tools of servers and plugins that say which of their arguments name files."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import pytest
from tests.sessions.enforced_agent import EnforcedAgent, Person

from robota.core.messages import JsonObject
from robota.core.permissions import Touches
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import invoke_tool
from robota.sdk.workspace import Workspace
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.testing import call
from robota.tools.undo.guard import guarded
from robota.tools.undo.store import UndoStore

pytestmark = pytest.mark.anyio


class Save:
    """A tool of an MCP server that empties files."""

    name = "mcp__files__empty"
    description = "Empty a file"
    parameters: ClassVar[JsonObject] = {"type": "object", "properties": {"target": {"type": "string"}}}
    touches = (Touches("write", ("target",)),)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        Path(context.cwd, arguments["target"]).write_text("")
        return ToolResult(content="emptied")


class Look(Save):
    """A tool of a plugin that looks at files."""

    name = "look"
    tool_class: Literal["inspect"] = "inspect"
    touches = (Touches("read", ("target",)),)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(content=Path(context.cwd, arguments["target"]).read_text())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "project"
    path.mkdir()
    (path / "notes.txt").write_text("milk")
    (path.parent / "other.txt").write_text("eggs")
    return path


async def test_a_write_rule_stops_a_tool_that_declares_its_path(project: Path) -> None:
    rules = PermissionRules(deny=("Write(notes.txt)",), allow=("mcp__files__empty",))
    agent = EnforcedAgent(project, rules=rules, tools=[Save()])

    [content] = await agent.run(call("mcp__files__empty", target="./notes.txt"))

    assert "Write(notes.txt)" in content
    assert (project / "notes.txt").read_text() == "milk"


async def test_a_file_outside_the_workspace_is_asked_about(project: Path) -> None:
    person = Person(True)
    agent = EnforcedAgent(project, tools=[Look()], handler=person, guard=Workspace(str(project), LiveRules()))

    contents = await agent.run(
        call("look", "a", target="notes.txt"),
        call("look", "b", target="../other.txt"),
        call("look", "c", target="../other.txt"),
    )

    assert contents == ["milk", "eggs", "eggs"]
    assert [asked.reason for asked in person.asked] == [f"{project}/.. is outside the working directory."]


async def test_writing_outside_the_workspace_is_asked_about_every_time(project: Path) -> None:
    person = Person(True)
    agent = EnforcedAgent(project, tools=[Save()], handler=person, guard=Workspace(str(project), LiveRules()))

    await agent.run(*(call("mcp__files__empty", name, target="../other.txt") for name in ("a", "b")))

    assert len(person.asked) == 2
    assert [record["judged"][-1]["outside"] for record in agent.records] == [f"{project}/.."] * 2


async def test_a_call_of_it_is_undone(project: Path, tmp_path: Path) -> None:
    store = UndoStore(tmp_path / "undo")
    rules = PermissionRules(allow=("mcp__files__empty",))
    agent = EnforcedAgent(project, rules=rules, tools=[Save()], run_tool=guarded(invoke_tool, store))

    assert await agent.run(call("mcp__files__empty", target="notes.txt")) == ["emptied"]
    assert (project / "notes.txt").read_text() == ""

    [entry] = store.entries()
    assert entry.label == f"mcp__files__empty {project}/notes.txt"
    store.undo(entry.id)
    assert (project / "notes.txt").read_text() == "milk"
