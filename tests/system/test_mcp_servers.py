"""The reference MCP servers from the npm registry, end to end through a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_session import ends, opened, write_servers

from robota.core.events import ToolProgressed
from robota.core.messages import ImagePart, ToolMessage
from robota.core.questions import FormAnswer, FormQuestion, PermissionAnswer
from robota.sessions import SessionStore
from robota.sessions.replay.session_replay import replay_session
from robota.testing import ScriptedProvider, call

pytestmark = [pytest.mark.system, pytest.mark.anyio]

PROGRAMS = Path(__file__).parents[2] / ".venv" / "mcp-servers" / "node_modules" / ".bin"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    path = tmp_path / "project"
    path.mkdir()
    write_servers(
        path,
        everything={"command": program("everything")},
        files={"command": program("filesystem"), "args": [str(path)]},
        memory={"command": program("memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}},
    )
    return path


def program(name: str) -> str:
    found = PROGRAMS / f"mcp-server-{name}"
    assert found.exists(), "tests/system/install.sh installs it"
    return str(found)


async def test_tools_progress_images_and_structured_results(project: Path) -> None:
    calls = [
        call("mcp__everything__get-sum", a=2, b=3),
        call("mcp__everything__trigger-long-running-operation", duration=0.2, steps=2),
        call("mcp__everything__get-tiny-image"),
        call("mcp__everything__get-structured-content", location="Chicago"),
        call("mcp__files__write_file", path=str(project / "new.txt"), content="milk"),
        call(
            "mcp__memory__create_entities",
            entities=[{"name": "Ann", "entityType": "person", "observations": []}],
        ),
    ]
    provider = ScriptedProvider(calls, [call("mcp__memory__search_nodes", query="Ann")], "Done.")
    shown: list[str] = []
    async with opened(project, provider, settings={"toolSearch": False}) as session:
        session.events.on(ToolProgressed, lambda event: shown.append(event.text.strip()))
        heard = ends(session)
        await session.submit("Go.")
        messages = [each for each in session.session.messages if isinstance(each, ToolMessage)]
    assert {each.tool_name: each.error for each in heard if each.outcome != "success"} == {}
    said = {each.name: each for each in messages}
    assert "5" in said["mcp__everything__get-sum"].content
    assert shown == ["1/2", "2/2"]
    assert [type(part) for part in said["mcp__everything__get-tiny-image"].parts] == [ImagePart]
    assert "temperature" in said["mcp__everything__get-structured-content"].content
    assert (project / "new.txt").read_text() == "milk"
    assert "person" in said["mcp__memory__search_nodes"].content


async def test_prompts_and_resources(project: Path) -> None:
    provider = ScriptedProvider("Rain.", "Read.")
    async with opened(project, provider) as session:
        await session.submit("/mcp__everything__args-prompt Oslo")
        await session.submit("Sum up @everything:demo://resource/static/document/features.md please.")
    first, second = (str(each.messages[-1].content) for each in provider.requests)
    assert "Oslo" in first
    assert "demo://resource/static/document/features.md" in second
    assert len(second) > 500


async def test_elicitation_and_sampling(project: Path) -> None:
    asked: list[FormQuestion] = []

    async def fill_in(question: FormQuestion) -> FormAnswer:
        asked.append(question)
        return FormAnswer(action="accept", content={"name": "Ann"})

    async def allow(question: Any) -> PermissionAnswer:
        return PermissionAnswer(allow=True)

    provider = ScriptedProvider(
        [call("mcp__everything__trigger-elicitation-request")],
        [call("mcp__everything__trigger-sampling-request", prompt="Say four.", maxTokens=10)],
        "Four.",
        "Done.",
    )
    options: dict[str, Any] = {
        "ask_handler": fill_in,
        "permission_handler": allow,
        "permission_mode": "default",
    }
    async with opened(project, provider, settings={"toolSearch": False}, **options) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert asked[0].server == "everything"
    assert "Ann" in heard[0].content
    assert "Four." in heard[1].content


async def test_an_interrupted_call_ends_at_once_and_the_server_serves_on(project: Path) -> None:
    slow = call("mcp__everything__trigger-long-running-operation", duration=600, steps=6000)
    provider = ScriptedProvider([slow], [call("mcp__everything__echo", message="still here")], "Done.")
    async with opened(project, provider, settings={"toolSearch": False}) as session:
        stop = session.events.on(ToolProgressed, lambda _: session.abort())
        assert (await session.submit("Go.")).interrupted
        stop()
        heard = ends(session)
        await session.submit("Again.")
        assert session.kit.servers.connections["everything"].starts == 1
    assert heard[0].content == "Echo: still here"


async def test_a_whole_project_runs_end_to_end_and_replays_without_the_servers(
    project: Path, tmp_path: Path
) -> None:
    (project / "CLAUDE.md").write_text("Answer in one word.\n")
    skill = project / ".claude" / "skills" / "note" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: note\ndescription: Notes things.\n---\nNote $ARGUMENTS.\n")
    hook = {"type": "command", "command": "echo heard >> heard.txt"}
    (project / ".claude" / "settings.json").write_text(
        json.dumps(
            {
                "permissions": {"allow": ["mcp__files", "mcp__everything__echo"]},
                "hooks": {"PreToolUse": [{"matcher": "mcp__.*", "hooks": [hook]}]},
            }
        )
    )
    store = SessionStore(tmp_path / "store")
    provider = ScriptedProvider(
        [call("mcp__everything__echo", message="one"), call("mcp__everything__get-env")],
        [call("mcp__files__list_directory", path=str(project))],
        "Done.",
    )
    options: dict[str, Any] = {"session_store": store, "permission_mode": "default"}
    async with opened(project, provider, settings={"toolSearch": False}, **options) as session:
        heard = ends(session)
        await session.submit("/note the milk")
        id = session.session_id
    assert {each.tool_name: each.outcome for each in heard} == {
        "mcp__everything__echo": "success",
        "mcp__everything__get-env": "denied",
        "mcp__files__list_directory": "success",
    }
    assert (project / "heard.txt").read_text() == "heard\n" * 3
    (project / ".mcp.json").unlink()
    report = await replay_session(tmp_path / "store" / f"{id}.jsonl")
    assert report.divergence is None
