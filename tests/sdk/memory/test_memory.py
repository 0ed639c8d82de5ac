"""Memory through the front door."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota.core.events import Noticed
from robota.core.messages import UserMessage
from robota.sdk.commands.effects import CommandResult
from robota.sdk.interactive import InteractiveSession
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def make(
    project: Path, *, provider: ScriptedProvider | None = None, save: bool = False, **options: Any
) -> InteractiveSession:
    return InteractiveSession(
        cwd=project,
        provider=provider or ScriptedProvider("Yes.", repeat=True),
        session_store=SessionStore(project.parent / "sessions"),
        environment={"HOME": str(project.parent / "home"), "ROBOTA_MEMORY": "1"},
        **{"settings": {"memory": {"autoSave": save}}, **options},
    )


def index(project: Path) -> str:
    path = project / ".robota" / "memory" / "MEMORY.md"
    return path.read_text() if path.exists() else ""


def events(session: InteractiveSession) -> list[str]:
    found: list[Any] = [each.data for each in session.session.history if each.type == "memory-event"]
    return [each["event"].removeprefix("memory_") for each in found]


async def run(session: InteractiveSession, args: str) -> CommandResult:
    answer = await session.execute_command("memory", args)
    assert answer is not None
    return answer


async def test_what_was_agreed_to_is_known_to_the_next_session(project: Path) -> None:
    async with make(project) as session:
        await session.submit("Please remember that the tests need two workers.")
        assert index(project) == ""
        waiting = (await run(session, "pending")).message
        assert "(project/general) the tests need two workers" in waiting
        id = waiting.split()[0]
        assert id.startswith("mem_")
        approved = await run(session, f"approve {id}")
        assert approved.success
        assert "(project/general) the tests need two workers" in approved.message
        assert events(session) == ["candidate_extracted", "candidate_queued", "candidate_approved"]

    provider = ScriptedProvider("Two.")
    async with make(project, provider=provider) as later:
        await later.submit("How many of them?")
    system = provider.requests[0].messages[0].content
    assert "## Memory" in system
    assert "the tests need two workers" in system


async def test_what_is_certain_is_saved_at_once_where_the_user_said_so(project: Path) -> None:
    async with make(project, save=True) as session:
        await session.submit("remember that tabs are used. 앞으로는 짧게 답해줘")
        assert "tabs are used" in index(project)
        assert [each.text for each in session.kit.memory.files.pending()] == ["앞으로는 짧게 답해줘"]
        assert events(session).count("candidate_saved") == 1


@pytest.mark.parametrize(("trusted", "saved"), [(True, True), (False, False)])
async def test_a_project_may_have_things_saved_without_a_question_only_if_it_is_trusted(
    project: Path, trusted: bool, saved: bool
) -> None:
    (project / ".robota").mkdir()
    (project / ".robota" / "settings.json").write_text('{"memory": {"enabled": true, "autoSave": true}}')
    async with make(project, settings={}, trust_project=trusted) as session:
        await session.submit("remember that spaces are used")
        assert ("spaces" in index(project)) == saved
        assert ("candidate_queued" in events(session)) == (not saved)


async def test_a_secret_is_neither_saved_nor_written_anywhere(project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    async with make(project, save=True) as session:
        await session.submit(f"remember that the key is {secret}")
        assert events(session) == ["candidate_extracted", "candidate_skipped"]
        refused = await run(session, f"add {secret}")
        assert not refused.success
        assert "not saved" in refused.message
    files = [each for each in project.parent.rglob("*") if each.is_file()]
    assert files
    assert not [each for each in files if secret.encode() in each.read_bytes()]


@pytest.mark.parametrize(
    ("setting", "variable", "on"),
    [(None, None, False), (True, None, True), (True, "0", False), (False, "1", True)],
)
async def test_off_by_default_and_the_environment_wins(
    project: Path, setting: bool | None, variable: str | None, on: bool
) -> None:
    home = project.parent / "home"
    if setting is not None:
        (home / ".robota").mkdir(parents=True)
        (home / ".robota" / "settings.json").write_text(json.dumps({"memory": {"enabled": setting}}))
    environment = {"HOME": str(home)} | ({} if variable is None else {"ROBOTA_MEMORY": variable})
    provider = ScriptedProvider("Yes.")
    async with InteractiveSession(cwd=project, provider=provider, environment=environment) as session:
        await session.submit("remember that tabs are used")
        assert (len(events(session)) > 0) == on
        assert ("Memory is off" in (await run(session, "list")).message) == (not on)
        assert (project / ".robota").exists() == on


async def test_topics_that_belong_to_a_prompt_are_told_once_with_it(project: Path) -> None:
    provider = ScriptedProvider("Ok.", "Ok.", "Ok.")
    session = make(project, provider=provider)
    assert (await run(session, "add feedback/deploy: never on fridays")).success
    assert (await run(session, "add project/style: tabs")).success
    await session.submit("Can we deploy today?")
    await session.submit("Really deploy?")

    told = [
        [each.content for each in request.messages if isinstance(each, UserMessage)]
        for request in provider.requests
    ]
    assert sum("never on fridays" in words for words in told[0]) == 1
    assert sum("never on fridays" in words for words in told[1]) == 1
    assert not any("tabs" in words for words in told[1])
    assert (await run(session, "used")).message.startswith("deploy (score ")
    assert events(session) == ["retrieved"]
    assert [each.content for each in session.messages if each.role == "user"] == [
        "Can we deploy today?",
        "Really deploy?",
    ]
    await session.shutdown()

    report = await replay_session(project.parent / "sessions" / f"{session.session_id}.jsonl")
    assert report.divergence is None, str(report.divergence)
    later = make(project, resume_session_id=session.session_id)
    assert "deploy" in (await run(later, "used")).message
    await later.shutdown()


async def test_the_notes_can_be_listed_shown_added_and_refused(project: Path) -> None:
    async with make(project) as session:
        assert "Remembered: [" in (await run(session, "add reference/api: see docs/api.md")).message
        assert "Known already: [" in (await run(session, "add reference/api: See docs/api.md!")).message
        assert "api: 1 note" in (await run(session, "")).message
        assert "see docs/api.md" in (await run(session, "show api")).message
        assert "see docs/api.md" in (await run(session, "show")).message
        assert "There is no topic 'apo'" in (await run(session, "show apo")).message
        assert "nothing to remember" in (await run(session, "add")).message
        await session.submit("remember that one is one. remember that two is two")
        assert "Forgotten: one is one\nForgotten: two is two" in (await run(session, "reject all")).message
        assert (await run(session, "pending")).message == "Nothing is waiting."
        assert not (await run(session, "approve all")).success
        assert "No note 'mem_x' is waiting" in (await run(session, "approve mem_x")).message
        assert "Usage: /memory approve" in (await run(session, "approve")).message


async def test_files_that_cannot_be_used_are_named_and_the_prompt_goes_on(project: Path) -> None:
    (project / ".robota").mkdir()
    (project / ".robota" / "memory").symlink_to("/etc", target_is_directory=True)
    async with make(project) as session:
        notices: list[str] = []
        session.events.on(Noticed, lambda event: notices.append(event.message))
        result = await session.submit("remember that tabs are used")
        assert result.text == "Yes."
        assert any("memory is not used" in notice and "link" in notice for notice in notices)


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        ("Read(.robota/memory/MEMORY.md)", {"known from the start"}),
        ("Read(.robota/memory/topics/deploy.md)", {"never on fridays"}),
        ("Read(**/memory/**)", {"known from the start", "never on fridays", "ask the owner"}),
        ("Read", {"known from the start", "never on fridays", "ask the owner"}),
    ],
)
async def test_what_must_not_be_read_is_not_remembered(project: Path, rule: str, hidden: set[str]) -> None:
    topics = project / ".robota" / "memory" / "topics"
    topics.mkdir(parents=True)
    texts = {
        topics.parent / "MEMORY.md": "known from the start",
        topics / "deploy.md": "never on fridays",
        topics / "deploy-keys.md": "ask the owner",
    }
    for path, text in texts.items():
        path.write_text(f"# Notes\n- [2026-11-16] (project/x) {text}\n")
    provider = ScriptedProvider("Yes.", repeat=True)
    async with make(project, provider=provider, settings={"permissions": {"deny": [rule]}}) as session:
        await session.submit("How do we deploy?")
        told = str(provider.requests[0].messages)
        assert {text for text in texts.values() if text not in told} == hidden
        listed = (await run(session, "list")).message
        assert ("deploy:" in listed) == ("never on fridays" not in hidden)

        session.session.reload(rules=PermissionRules(deny=("Read(.robota/**)",)))
        assert session.kit.memory.files.read_start() == ""
