"""MCP servers of an agent's definition: for the subagent alone, as long as it works, under the same rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition
from tests.support.mcp_session import notices, offered, opened, write_servers

from robota.core.events import SubagentEvent, ToolEnded
from robota.sdk.agents.runner import AgentTask
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
TASK = AgentTask(agent="worker", prompt="Work.")


def write_agent(project: Path, servers: Any, **more: str) -> None:
    head = {"name": "worker", "description": "Works.", "mcpServers": servers, **more}
    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()]
    path = project / ".claude" / "agents" / "worker.md"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["---", *lines, "---", "Work hard."]))


def ends_below(session: InteractiveSession) -> dict[str, str]:
    """How the calls of subagents ended."""
    heard: dict[str, str] = {}

    def hear(event: SubagentEvent) -> None:
        if isinstance(event.inner, ToolEnded):
            heard[event.inner.tool_name] = event.inner.outcome

    session.events.on(SubagentEvent, hear)
    return heard


def theirs(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("mcp__")]


async def test_a_server_of_the_definition_is_there_for_the_subagent_only_and_only_while_it_works(
    project: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_agent(project, [{"own": definition(log=str(log), own=3)}], disallowedTools="mcp__own__judge")
    use = [call("mcp__own__add", a=1, b=2), call("mcp__own__echo", text="x")]
    provider = ScriptedProvider(use, "Worked.", "Done.")
    rules = {"permissions": {"deny": ["mcp__own__echo"]}}
    async with opened(project, provider, settings=rules) as session:
        heard = ends_below(session)
        outcome = await session.kit.subagents.run(TASK)
        assert outcome.output == "Worked."
        begun, process = log.read_text().split()[1:3]
        assert begun == "process"
        assert not Path(f"/proc/{process}").exists()
        assert "own" not in session.kit.servers.connections
        await session.submit("And you?")
    assert theirs(offered(provider.requests[0])) == ["mcp__own__add", "mcp__own__echo"]
    assert theirs(offered(provider.requests[-1])) == []
    assert heard == {"mcp__own__add": "success", "mcp__own__echo": "denied"}
    assert log.read_text().count("tools/call") == 1


async def test_a_server_that_is_named_is_the_sessions_own_and_needs_no_search(project: Path) -> None:
    write_servers(project, stub=definition(own=3))
    write_agent(project, ["stub", "gone"], tools="Read, mcp__stub__add")
    provider = ScriptedProvider([call("mcp__stub__add", a=1, b=2)], "Three.", "Hello.")
    async with opened(project, provider, settings={"toolSearch": True}) as session:
        heard, told = ends_below(session), notices(session)
        await session.kit.subagents.run(TASK)
        assert session.kit.servers.connections["stub"].starts == 1
        await session.submit("Hello.")
    assert offered(provider.requests[0]) == ["Read", "mcp__stub__add"]
    assert heard == {"mcp__stub__add": "success"}
    assert "There is no MCP server 'gone' here, which the agent worker names." in told


async def test_a_server_that_the_user_turned_off_stays_off_whatever_an_agent_calls_its_own(
    project: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_servers(project, stub=definition())
    write_agent(project, {"stub": definition(log=str(log))})
    provider = ScriptedProvider("Worked.")
    async with opened(project, provider, settings={"disabledMcpjsonServers": ["stub"]}) as session:
        await session.kit.subagents.run(TASK)
    assert theirs(offered(provider.requests[0])) == []
    assert not log.exists()


async def test_what_an_agent_would_start_is_shown_before_the_project_is_trusted(project: Path) -> None:
    write_agent(
        project, {"own": {"command": "start-me", "args": ["--now"]}, "odd": {"url": "https://x.example"}}
    )
    async with opened(project, ScriptedProvider("x"), trust_project=None) as session:
        assert any("own: start-me --now" in line for line in session.describe_trust())
        assert "worker" not in session.kit.subagents.agents
    async with opened(project, ScriptedProvider("x")) as session:
        problems = [str(each) for each in session.problems]
    assert any("MCP server odd" in each and "no `type`" in each for each in problems), problems
