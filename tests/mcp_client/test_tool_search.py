"""Tools that are searched for: when, how they are found, and that they stay found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition
from tests.support.mcp_session import ends, offered, opened, write_servers

from robota.sdk.mcp.deferral import SearchPolicy, read_policy
from robota.sessions import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


def theirs(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("mcp__")]


async def test_before_the_first_search_only_the_servers_names_are_in_the_window(project: Path) -> None:
    servers = {f"server{at}": definition(name=f"s{at}", own=0, tools=20) for at in range(6)}
    write_servers(project, **servers)
    provider = ScriptedProvider(
        [call("ToolSearch", query="thing 7", max_results=2)], [call("mcp__server3__s3_tool_7")], "Done."
    )
    async with opened(project, provider, context_window=8_000) as session:
        listed = await session.execute_command("mcp")
        heard = ends(session)
        await session.submit("Go.")
    first, second, third = map(offered, provider.requests)
    assert theirs(first) == []
    search = next(tool for tool in provider.requests[0].tools if tool.name == "ToolSearch")
    assert "server0, server1, server2, server3, server4, server5" in search.description
    assert len(theirs(second)) == 2
    assert all(name.endswith("_tool_7") for name in theirs(second))
    assert second[: len(first)] == first
    assert third == second
    assert heard[0].outcome == "success"
    assert listed is not None
    assert "120 tools are found by searching" in listed.message


async def test_found_tools_are_there_again_when_the_session_is_resumed(project: Path, tmp_path: Path) -> None:
    write_servers(project, stub=definition(tools=40))
    store = SessionStore(tmp_path / "store")
    provider = ScriptedProvider([call("ToolSearch", query="select:mcp__stub__stub_tool_3")], "Found.")
    options: dict[str, Any] = {"session_store": store, "context_window": 8_000}
    async with opened(project, provider, **options) as session:
        await session.submit("Go.")
        id = session.session_id
    again = ScriptedProvider([call("mcp__stub__stub_tool_3", text="x")], "Done.")
    async with opened(project, again, resume_session_id=id, **options) as session:
        heard = ends(session)
        await session.submit("On.")
    assert theirs(offered(again.requests[0])) == ["mcp__stub__stub_tool_3"]
    assert heard[0].outcome == "success"


async def test_a_server_that_is_always_loaded_is_listed_and_a_setting_turns_searching_off(
    project: Path,
) -> None:
    write_servers(project, far=definition(tools=40), near={**definition(own=2), "alwaysLoad": True})
    provider = ScriptedProvider("One.")
    async with opened(project, provider, context_window=8_000) as session:
        await session.submit("Go.")
    assert theirs(offered(provider.requests[0])) == ["mcp__near__add", "mcp__near__judge"]
    plain = ScriptedProvider("One.")
    async with opened(project, plain, settings={"toolSearch": False}) as session:
        await session.submit("Go.")
    names = offered(plain.requests[0])
    assert len(theirs(names)) == 15 + 40 + 2
    assert "ToolSearch" not in names


async def test_what_cannot_be_found_is_said_with_the_servers_that_are_absent(project: Path) -> None:
    write_servers(project, stub=definition(), gone={"command": "there-is-no-such-program"})
    provider = ScriptedProvider([call("ToolSearch", query="zzz")], "Done.")
    async with opened(project, provider, settings={"toolSearch": True}) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert heard[0].content == "No tool fits these words.\nNot connected: gone."


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ("true", SearchPolicy("always")),
        ("false", SearchPolicy("never")),
        ("auto", SearchPolicy("auto", 0.1)),
        ("auto:25", SearchPolicy("auto", 0.25)),
        ("nonsense", SearchPolicy("auto", 0.1)),
    ],
)
def test_the_variable_counts_above_the_setting(word: str, policy: SearchPolicy) -> None:
    assert read_policy(True, {"ENABLE_TOOL_SEARCH": word}) == policy
    assert read_policy(False, {}) == SearchPolicy("never")
    assert read_policy("auto:5", {}) == SearchPolicy("auto", 0.05)
