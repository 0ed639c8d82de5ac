"""Agents: definitions, tools, models, what front ends hear of them, work in the background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, write

from robota import InteractiveSession, create_project_session_store
from robota.core import SubagentEvent, ToolEnded
from robota.core.event_names import owner_path
from robota.sdk import AgentTask, assemble_subagent_prompt
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
FREE = "bypassPermissions"


def agent(where: Path, name: str, body: str = "You check things.", **head: str) -> Path:
    head = {"description": f"About {name}.", **head}
    lines = "".join(f"{key}: {value}\n" for key, value in head.items() if value)
    return write(where / f"{name}.md", f"---\n{lines}---\n{body}\n")


def make(project: Path, *replies: Any, **more: Any) -> tuple[InteractiveSession, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    more.setdefault("permission_mode", FREE)
    return InteractiveSession(cwd=project, provider=provider, trust_project=True, **more), provider


def names(request: Any) -> set[str]:
    return {tool.name for tool in request.tools}


async def test_three_agents_are_built_in(project: Path) -> None:
    session, _ = make(project)
    async with session:
        await session.ready()
        known = session.project.agents.definitions
        assert set(known) == {"general-purpose", "Explore", "Plan"}
        assert known["general-purpose"].model == ""
        assert known["general-purpose"].tools is None
        assert known["Explore"].model == "claude-haiku-4-5"
        assert set(known["Explore"].disallowed_tools) == {"Write", "Edit"}
        assert set(known["Plan"].disallowed_tools) == {"Write", "Edit"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("project/.robota/agents", "project/.claude/agents"),
        ("project/.claude/agents", "home/.robota/agents"),
        ("home/.robota/agents", "home/.claude/agents"),
    ],
)
async def test_the_first_home_counts_and_a_built_in_agent_can_be_replaced(
    project: Path, first: str, second: str
) -> None:
    for where, word in ((first, "First."), (second, "Second.")):
        agent(project.parent / where, "Explore", word)
    session, provider = make(project, "Done.")
    async with session:
        await session.ready()
        outcome = await session.kit.subagents.run(AgentTask(agent="Explore", prompt="Look"))
        assert outcome.output == "Done."
        assert str(provider.requests[0].messages[0].content).startswith("First.")


async def test_tools_are_denied_then_allowed_and_agent_goes_always(project: Path) -> None:
    agent(project / ".robota/agents", "a", disallowedTools="Write")
    agent(project / ".robota/agents", "b", tools="Read, Write, Agent", disallowedTools="Write")
    session, provider = make(project, "Done.", "Done.")
    async with session:
        await session.ready()
        for name in ("a", "b"):
            await session.kit.subagents.run(AgentTask(agent=name, prompt="Go"))
        all_but, few = map(names, provider.requests)
        assert {"Read", "Edit", "Bash"} <= all_but
        assert not {"Write", "Agent"} & all_but
        assert few == {"Read"}


async def test_the_prompt_is_body_claude_agents_suffix(project: Path) -> None:
    write(project / "CLAUDE.md", "Notes for Claude.")
    write(project / "AGENTS.md", "Notes for agents.")
    agent(project / ".robota/agents", "a", "The body.")
    session, provider = make(project, "Done.")
    async with session:
        await session.ready()
        await session.kit.subagents.run(AgentTask(agent="a", prompt="Go"))
    prompt = str(provider.requests[0].messages[0].content)
    places = [prompt.index(part) for part in ("The body.", "Notes for Claude.", "Notes for agents.")]
    assert places == sorted(places)
    assert prompt.endswith(assemble_subagent_prompt(""))
    assert "500 words" in assemble_subagent_prompt("x", is_fork_worker=True)
    assert "500 words" not in assemble_subagent_prompt("x")


async def test_a_model_calls_an_agent_and_gets_its_report(project: Path) -> None:
    agent(project / ".robota/agents", "reviewer")
    session, provider = make(
        project, [call("Agent", prompt="Look at a.py", subagent_type="reviewer")], "All fine.", "It is fine."
    )
    async with session:
        heard = Heard(session)
        result = await session.submit("Have it reviewed")
        assert result.text == "It is fine."
        assert str(provider.requests[1].messages[-1].content) == "Look at a.py"
        assert "All fine." in str(provider.requests[2].messages[-1].content)
        assert [state.tool_name for state in heard.of("tool_end")] == ["Agent"]
        assert heard.closings() == ["complete"]


async def test_an_unknown_agent_is_an_error_that_names_those_there_are(project: Path) -> None:
    session, provider = make(project, [call("Agent", prompt="Go", subagent_type="nobody")], "No.")
    async with session:
        heard = Heard(session)
        await session.submit("Go")
        assert heard.of("tool_end")[0].result == "error"
        said = str(provider.requests[1].messages[-1].content)
        assert "Unknown agent type: nobody" in said
        assert "general-purpose" in said


async def test_events_of_a_subagent_have_an_owner(project: Path) -> None:
    session, _ = make(
        project,
        [call("Agent", prompt="Go")],
        [call("Read", file_path="notes.txt")],
        "Milk.",
        "Milk, it says.",
    )
    async with session:
        nested: list[SubagentEvent] = []
        session.events.on(SubagentEvent, nested.append)
        heard = Heard(session)
        await session.submit("Go")
        (end,) = [event for event in nested if isinstance(event.inner, ToolEnded)]
        path = [segment.owner_type for segment in owner_path(end, "main")]
        assert path[0] == path[-3] == "agent"
        assert path[-2:] == ["execution", "tool"]
        assert "Read" not in [state.tool_name for state in heard.of("tool_end")]
        assert "".join(heard.of("text_delta")).strip() == "Milk, it says."


async def test_a_subagent_has_no_more_rights_than_its_parent(project: Path) -> None:
    agent(project / ".robota/agents", "bold", permissionMode="bypassPermissions")
    replies = (
        [call("Agent", prompt="Go", subagent_type="bold")],
        [call("Bash", command="touch made")],
        "No.",
        "No.",
    )
    settings = {"subagents": {"policy": "auto"}}
    session, _ = make(project, *replies, permission_mode="default", settings=settings)
    async with session:
        await session.submit("Go")
    assert not (project / "made").exists()


async def test_a_model_that_is_not_there_is_replaced_with_a_notice(project: Path) -> None:
    agent(project / ".robota/agents", "small", model="haiku")
    task = [call("Agent", prompt="Go", subagent_type="small")]
    session, provider = make(project, task, "Done.", "Done.", model="scripted")
    async with session:
        notices: list[str] = []
        session.on("notice", lambda event: notices.append(event.message))
        assert (await session.submit("Go")).success
        assert {request.model for request in provider.requests} == {provider.requests[0].model}
        assert any("small" in notice and "haiku" in notice for notice in notices)


async def test_its_transcript_is_a_file_of_its_own(project: Path, tmp_path: Path) -> None:
    store = create_project_session_store(tmp_path / "sessions")
    session, _ = make(project, [call("Agent", prompt="Go")], "Report.", "Done.", session_store=store)
    async with session:
        await session.submit("Go")
    (path,) = (tmp_path / "sessions" / session.session_id / "subagents").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "Report." in path.read_text()
    assert path.stem in json.dumps(lines[0])


async def test_an_agent_in_the_background_reports_later(project: Path) -> None:
    session, provider = make(
        project,
        [call("Agent", prompt="Look", run_in_background=True)],
        lambda request: "Found." if request.messages[-1].content == "Look" else "Started.",
        lambda request: "Found." if request.messages[-1].content == "Look" else "Started.",
        "You found it.",
    )
    async with session:
        await session.submit("Go")
        (task,) = session.kit.background.list()
        ended = await session.kit.background.wait(task.task_id)
        assert ended.state == "completed"
        await session.submit("And?")
        assert "Found." in str(provider.requests[-1].messages)


async def test_an_agent_keeps_notes_where_its_head_says(project: Path, home: Path) -> None:
    agent(project / ".claude/agents", "checker", memory="project", tools="Grep")
    agent(project / ".robota/agents", "other", memory="user")
    folder = project / ".claude/agent-memory/checker"
    write(folder / "MEMORY.md", "- The tests are in t/.\n")
    session, provider = make(
        project, [call("Write", file_path=str(folder / "more.md"), content="x")], "Done.", "Done."
    )
    async with session:
        await session.ready()
        await session.kit.subagents.run(AgentTask(agent="checker", prompt="Go"))
        await session.kit.subagents.run(AgentTask(agent="other", prompt="Go"))
        assert not [each for each in session.problems if "memory" in str(each)]
    first, other = provider.requests[0], provider.requests[-1]
    assert "The tests are in t/." in str(first.messages[0].content)
    assert names(first) == {"Grep", "Read", "Write", "Edit"}
    assert (folder / "more.md").read_text() == "x"
    assert str(home / ".robota/agent-memory/other") in str(other.messages[0].content)


async def test_a_wrong_kind_of_memory_is_named(project: Path) -> None:
    path = agent(project / ".claude/agents", "checker", memory="everywhere")
    session, _ = make(project)
    async with session:
        await session.ready()
        assert any(str(path) in str(each) and "everywhere" in str(each) for each in session.problems)


async def test_how_many_work_at_once_follows_the_settings(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"subagents": {"maxConcurrent": 1}})
    session, _ = make(project, *["Done."] * 4)
    async with session:
        await session.ready()
        write(home / ".robota/settings.json", {"subagents": {"maxConcurrent": 3}})
        await session.submit("Hello")
        assert session.kit.subagents.options.max_parallel == 3
        tasks = [await session.execute_command("agent", "run general-purpose Look") for _ in range(3)]
        assert all(answer is not None and answer.success for answer in tasks), tasks
        for task in session.kit.background.list():
            assert (await session.kit.background.wait(task.task_id)).state == "completed"


async def test_variables_that_commands_may_have_follow_the_settings(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "abcdefgh12345678")
    show = [call("Bash", command="echo ${DEPLOY_TOKEN:-nothing} > out")]
    handler = {"type": "command", "command": "echo ${DEPLOY_TOKEN:-nothing} > hooked"}
    hooks = {"Stop": [{"hooks": [handler]}]}
    write(home / ".robota/settings.json", {"hooks": hooks})
    session, _ = make(project, show, "Done.", show, "Done.")
    async with session:
        await session.submit("Go")
        assert (project / "out").read_text() == (project / "hooked").read_text() == "nothing\n"
        write(home / ".robota/settings.json", {"hooks": hooks, "passEnv": ["DEPLOY_TOKEN"]})
        await session.submit("Go")
        assert (project / "out").read_text() == (project / "hooked").read_text() == "abcdefgh12345678\n"


async def test_calls_of_subagents_in_earlier_processes_count_too(project: Path, tmp_path: Path) -> None:
    store = create_project_session_store(tmp_path / "sessions")
    read = [call("Read", file_path="notes.txt")]
    session, _ = make(project, [call("Agent", prompt="Go")], read, "Milk.", "Milk.", session_store=store)
    async with session:
        await session.submit("Go")
    again, provider = make(
        project,
        read,
        "No.",
        session_store=store,
        resume_session_id=session.session_id,
        settings={"budget": {"maxToolCalls": 2}},
    )
    async with again:
        await again.submit("Read it yourself")
    assert "budget of 2 tool calls is used up" in str(provider.requests[1].messages[-1].content)
