"""Agents of a project, through the front door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.agents.agent_files import write_agent
from tests.sdk.agents.workshop import start

from robota.core.events import Noticed, ToolEnded
from robota.sdk.agents.subagent import SUFFIX
from robota.sdk.interactive import InteractiveSession
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    path = tmp_path / "project"
    path.mkdir()
    return path


def make_session(project: Path, *replies: Any, **options: Any) -> InteractiveSession:
    given = {"trust_project": True, "permission_mode": "bypassPermissions", "model": "claude-sonnet-4-6"}
    return InteractiveSession(
        cwd=project, provider=ScriptedProvider(*replies), environment={"HOME": str(project.parent / "home")},
        session_store=SessionStore(project.parent / "sessions"), **{**given, **options},
    )  # fmt: skip


def results(session: InteractiveSession) -> list[ToolEnded]:
    ended: list[ToolEnded] = []
    session.events.on(ToolEnded, ended.append)
    return ended


async def test_an_agent_of_the_project_works_on_a_task(project: Path) -> None:
    write_agent(
        project / ".claude" / "agents", "reviewer",
        "name: reviewer", "description: Reviews changes.", "tools: Read, Grep", "model: haiku",
        body="You review changes.",
    )  # fmt: skip
    (project / "a.txt").write_text("hello\n")
    (project / "CLAUDE.md").write_text("Use tabs.\n")
    (project / "AGENTS.md").write_text("Run make.\n")
    session = make_session(
        project, [start("look at a.txt", subagent_type="reviewer")], [call("Read", file_path="a.txt")],
        "It greets.", "The review is done.",
    )  # fmt: skip
    ended = results(session)
    async with session:
        result = await session.submit("review")
        provider = session.session.agent.provider
        requests = getattr(provider, "inner", provider).requests
    assert result.text == "The review is done."
    assert [each.content for each in ended] == ["It greets."]
    first, asked = requests[0], requests[1]
    [tool] = [tool for tool in first.tools if tool.name == "Agent"]
    assert "- reviewer: Reviews changes. (Tools: Read, Grep)" in tool.description
    assert sorted(tool.name for tool in asked.tools) == ["Grep", "Read"]
    assert "haiku" in asked.model
    assert asked.messages[0].content == "\n\n".join(
        ("You review changes.", f"The working directory is {project}.", "Use tabs.", "Run make.", SUFFIX)
    )
    transcript = ended[0].metadata["transcriptPath"]
    assert transcript.startswith(f"{project.parent}/sessions/{session.session_id}/subagents/reviewer-")


async def test_agents_of_a_project_that_nobody_trusts_are_not_there(project: Path) -> None:
    write_agent(project / ".claude" / "agents", "trap")
    session = make_session(project, [start(subagent_type="trap")], "done", trust_project=None)
    ended = results(session)
    async with session:
        await session.submit("go")
    assert (ended[0].error or "").startswith(
        "Unknown agent type: trap. There are general-purpose, Explore, Plan."
    )


async def test_what_is_wrong_with_an_agent_is_told_once(project: Path) -> None:
    path = write_agent(project / ".robota" / "agents", "odd", "description: Odd.", "tools: Read, Grpe")
    session = make_session(project, "hi")
    notices: list[Noticed] = []
    session.events.on(Noticed, notices.append)
    async with session:
        await session.submit("go")
        [problem] = session.problems
    assert str(problem) == (
        f"{path}:3: odd: It names the tool 'Grpe', which has no effect: there is no such tool, but 'Grep'."
    )
    assert [notice.message for notice in notices].count(str(problem)) == 1


async def test_the_policy_never_leaves_the_tool_out(project: Path) -> None:
    session = make_session(project, "hi", settings={"subagents": {"policy": "never"}})
    async with session:
        await session.submit("go")
        assert "Agent" not in session.session.agent.toolset.tools


async def test_a_policy_that_is_tightened_while_the_session_runs_counts(project: Path) -> None:
    session = make_session(project, "hi", [start()], "done")
    ended = results(session)
    async with session:
        await session.submit("go")
        (project / ".robota").mkdir()
        (project / ".robota" / "settings.json").write_text('{"subagents": {"policy": "never"}}')
        await session.submit("go on")
    assert ended[0].error == "The settings let no subagents start: do the work here."


async def test_settings_may_let_subagents_start_without_a_question(project: Path) -> None:
    (project.parent / "home" / ".robota").mkdir()
    (project.parent / "home" / ".robota" / "settings.json").write_text('{"subagents": {"policy": "auto"}}')
    session = make_session(project, [start()], "report", "done", permission_mode="default")
    ended = results(session)
    async with session:
        await session.submit("go")
    assert ended[0].content == "report"


async def test_agents_that_are_written_or_changed_while_the_session_runs_are_offered(project: Path) -> None:
    session = make_session(project, "one", "two", "three")
    async with session:
        await session.submit("go")
        path = write_agent(project / ".robota" / "agents", "late")
        await session.submit("go on")
        path.write_text(path.read_text().replace("Does late.", "Does better."))
        await session.submit("and on")
        provider = session.session.agent.provider
        requests = getattr(provider, "inner", provider).requests
    shown = [tool.description for request in requests for tool in request.tools if tool.name == "Agent"]
    assert ["- late: Does late." in text for text in shown] == [False, True, False]
    assert ["- late: Does better." in text for text in shown] == [False, False, True]
