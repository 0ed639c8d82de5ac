"""What rules, the workspace and undo mean for tools of servers, and tools whose calls somebody passes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition
from tests.support.mcp_session import ends, offered, opened, write_servers

from robota.core.events import OwnerPathSegment
from robota.core.messages import JsonObject
from robota.core.provider import ToolSchema
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.core.tool import ToolContext, ToolResult
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call
from robota.tools import RelayMcpTool, ServerConnection, ServerDefinition

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("rule", ["mcp__stub", "mcp__stub__*"])
async def test_a_rule_that_denies_a_server_covers_exactly_its_tools(project: Path, rule: str) -> None:
    write_servers(project, stub=definition(own=3), stubborn=definition(own=3))
    calls = [
        call(f"mcp__{name}__{tool}", text="x") for name in ("stub", "stubborn") for tool in ("judge", "echo")
    ]
    provider = ScriptedProvider(calls, "Done.")
    async with opened(project, provider, settings={"permissions": {"deny": [rule]}}) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert {each.tool_name: each.outcome for each in heard} == {
        "mcp__stub__judge": "error",  # there is no such tool
        "mcp__stub__echo": "error",
        "mcp__stubborn__judge": "success",
        "mcp__stubborn__echo": "success",
    }
    theirs = {name for name in offered(provider.requests[0]) if name.startswith("mcp__")}
    assert theirs == {f"mcp__stubborn__{tool}" for tool in ("add", "judge", "echo")}


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
async def test_a_declared_write_is_asked_about_in_every_mode_but_the_free_one_and_can_be_undone(
    project: Path, tmp_path: Path, mode: str
) -> None:
    write_servers(project, stub=definition())
    near, far = project / "plan.md", tmp_path / "elsewhere.md"
    near.write_text("before")
    asked: list[PermissionQuestion] = []

    async def decide(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(allow=question.tool_input["target"] == str(near))

    provider = ScriptedProvider(
        [call("mcp__stub__write", target=str(near), text="after")],
        [call("mcp__stub__write", target=str(far), text="after")],
        "Done.",
    )
    options: dict[str, Any] = {"permission_mode": mode, "permission_handler": decide}
    async with opened(project, provider, **options) as session:
        heard = ends(session)
        await session.submit("Go.")
        assert [each.outcome for each in heard] == ["success", "denied"]
        assert [each.tool_input["target"] for each in asked] == [str(near), str(far)]
        assert near.read_text() == "after"
        assert not far.exists()
        undone = await session.execute_command("undo")
        assert undone is not None
        assert undone.success, undone.message
    assert near.read_text() == "before"


async def test_found_tools_stay_when_the_conversation_is_summarised(project: Path) -> None:
    write_servers(project, stub=definition(tools=40))
    find = [call("ToolSearch", query="select:mcp__stub__stub_tool_3")]
    provider = ScriptedProvider(
        find, "Found.", "A summary.", [call("mcp__stub__stub_tool_3", text="x")], "Done."
    )
    async with opened(project, provider, settings={"toolSearch": True}) as session:
        await session.submit("Look for it.")
        compacted = await session.execute_command("compact")
        assert compacted is not None
        assert compacted.success, compacted.message
        heard = ends(session)
        await session.submit("Use it.")
    theirs = [name for name in offered(provider.requests[-1]) if name.startswith("mcp__")]
    assert theirs == ["mcp__stub__stub_tool_3"]
    assert [each.outcome for each in heard] == ["success"]


async def test_a_relayed_tool_is_judged_and_its_calls_are_passed_on_with_their_path(
    project: Path,
) -> None:
    written = definition()
    server = ServerDefinition(name="far", command=written["command"], args=tuple(written["args"]))
    connection = ServerConnection(server)
    connection.start()
    paths: list[tuple[OwnerPathSegment, ...]] = []

    async def relay(
        arguments: JsonObject, context: ToolContext, path: tuple[OwnerPathSegment, ...]
    ) -> ToolResult | str:
        paths.append(path)
        return await connection.call("add", arguments, context)

    async def decide(question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(allow=question.tool_input == {"a": 2, "b": 3})

    schema = ToolSchema(
        name="far_add",
        description="Adds, far away.",
        parameters={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    )
    calls = [call("far_add", a=2, b=3), call("far_add", a=6, b=6), call("far_add", a="two")]
    try:
        async with InteractiveSession(
            provider=ScriptedProvider(calls, "Five."),
            cwd=project,
            tools=[RelayMcpTool(schema, relay)],
            permission_handler=decide,
        ) as session:
            heard = ends(session)
            result = await session.submit("Add.")
    finally:
        await connection.close()
    assert result.text == "Five."
    assert sorted(each.outcome for each in heard) == ["denied", "error", "success"]
    [done] = [each for each in heard if each.outcome == "success"]
    assert done.content == "5"
    assert [[segment.owner_type for segment in path] for path in paths] == [["execution", "tool", "agent"]]
    assert (paths[0][1].owner_id, paths[0][2].owner_id) == (done.call_id, "far_add")
