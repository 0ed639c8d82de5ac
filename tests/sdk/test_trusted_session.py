"""Trust through the front door: what a project may do before, after and for one session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from robota.core.events import Noticed, ToolEnded
from robota.core.questions import PermissionAnswer, PermissionQuestion
from robota.sdk.interactive import InteractiveSession
from robota.sdk.trust import TrustStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

HOOK = {
    "hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "touch fired"}]}]}
}
READ = [call("Read", file_path="notes.txt")]
WRITE = [call("Write", file_path="new.txt", content="x")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.txt").write_text("milk\n")
    return path


def write(project: Path, settings: dict[str, Any], name: str = ".claude/settings.json") -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text(json.dumps(settings))


def listen(session: InteractiveSession) -> list[str]:
    heard: list[str] = []
    session.events.on(Noticed, lambda event: heard.append(event.message))
    return heard


async def outcome_of(session: InteractiveSession) -> str:
    """How the only call of a prompt ended."""
    ended: list[str] = []
    stop = session.events.on(ToolEnded, lambda event: ended.append(event.outcome))
    await session.submit("Go.")
    stop()
    return ended[0]


async def test_hooks_act_once_the_user_has_trusted_the_project_and_in_every_later_session(
    project: Path,
) -> None:
    write(project, HOOK)
    session = InteractiveSession(cwd=project, provider=ScriptedProvider(READ, "1", READ, "2"))
    heard = listen(session)
    await session.submit("Read.")
    assert not (project / "fired").exists()
    assert [notice for notice in heard if "is not trusted" in notice]
    assert session.project.trust.asks
    assert any("touch fired" in line for line in session.project.trust.describe())

    await session.trust_project()

    assert not session.project.trust.asks
    await session.submit("Read.")
    assert (project / "fired").exists()
    await session.shutdown()
    (project / "fired").unlink()
    async with InteractiveSession(cwd=project, provider=ScriptedProvider(READ, "3")) as later:
        told = listen(later)
        await later.submit("Read.")
        assert (project / "fired").exists()
        assert not [notice for notice in told if "trusted" in notice]

        await later.forget_project()

        assert not later.session.hooks.has("PreToolUse")


async def test_a_hook_that_changes_is_off_until_it_was_seen(project: Path) -> None:
    write(project, HOOK)
    provider = ScriptedProvider(READ, "1", READ, "2")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.ready()
        await session.trust_project()
        heard = listen(session)
        write(project, json.loads(json.dumps(HOOK).replace("fired", "stolen")))

        await session.submit("Read.")

        assert [path.name for path in project.iterdir() if path.name in ("fired", "stolen")] == []
        assert session.project.trust.state == "changed"
        assert [notice for notice in heard if "has changed since you trusted it" in notice]
        assert any("+ " in line and "touch stolen" in line for line in session.project.trust.describe())
        await session.trust_project()
        await session.submit("Read.")
        assert (project / "stolen").exists()


async def test_what_is_trusted_is_what_was_seen_not_what_came_meanwhile(project: Path) -> None:
    write(project, HOOK)
    async with InteractiveSession(cwd=project, provider=ScriptedProvider()) as session:
        await session.ready()
        shown = session.project.trust
        write(project, {**HOOK, "env": {"SNEAKED": "in"}})
        await session.ready()  # another front end is at work, too

        await session.trust_project(shown)

        assert session.project.trust.state == "changed"
        assert [wish.text for wish in session.project.trust.added] == ["SNEAKED=in  [.claude/settings.json]"]


async def test_a_change_that_nobody_has_looked_at_is_not_trusted_by_the_way(project: Path) -> None:
    write(project, HOOK)
    async with InteractiveSession(cwd=project, provider=ScriptedProvider()) as session:
        await session.ready()
        write(project, {**HOOK, "env": {"SNEAKED": "in"}})

        await session.trust_project()

        assert session.project.trust.state == "changed"


async def test_a_yes_is_about_the_question_that_was_shown(project: Path) -> None:
    write(project, HOOK)
    async with InteractiveSession(cwd=project, provider=ScriptedProvider()) as session:
        shown = await session.execute_command("trust")
        assert shown is not None
        assert "touch fired" in shown.message
        write(project, {**HOOK, "env": {"SNEAKED": "in"}})

        await session.execute_command("trust", "yes")

        assert session.project.trust.state == "changed"
        again = await session.execute_command("trust")
        assert again is not None
        assert "+ SNEAKED=in" in again.message
        assert "touch fired" not in again.message
        await session.execute_command("trust", "yes")
        assert session.project.trusted


@pytest.mark.parametrize(("word", "outcome"), [(True, "success"), (False, "denied"), (None, "denied")])
async def test_whoever_makes_the_session_decides_for_it_and_nothing_is_kept(
    project: Path, word: bool | None, outcome: str
) -> None:
    write(project, {"permissions": {"allow": ["Write(new.txt)"]}}, ".robota/settings.json")
    provider = ScriptedProvider(WRITE, "1")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=word) as session:
        assert await outcome_of(session) == outcome

        assert TrustStore(os.environ["ROBOTA_HOME"]).directories == {}
        await session.trust_project()
        assert session.project.trusted
        await session.forget_project()
        assert not session.project.trusted


async def test_a_rule_allowed_for_the_project_is_saved_and_counts_in_the_next_session(project: Path) -> None:
    asked: list[PermissionQuestion] = []

    async def always(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(allow=True, scope="project")

    provider = ScriptedProvider(WRITE, "1")
    async with InteractiveSession(cwd=project, provider=provider, permission_handler=always) as session:
        heard = listen(session)
        assert await outcome_of(session) == "success"
        assert heard == []

    saved = json.loads((project / ".robota" / "settings.local.json").read_text())
    assert saved == {"permissions": {"allow": [asked[0].rule]}}
    (project / "new.txt").unlink()
    async with InteractiveSession(cwd=project, provider=ScriptedProvider(WRITE, "2")) as later:
        told = listen(later)
        assert await outcome_of(later) == "success"
        assert told == []
        assert later.project.trusted


async def test_a_rule_saved_in_an_untrusted_project_waits_with_the_rest_and_says_so(project: Path) -> None:
    write(project, HOOK)

    async def always(question: PermissionQuestion) -> str:
        return "allow-project"

    provider = ScriptedProvider(WRITE, "1")
    async with InteractiveSession(cwd=project, provider=provider, permission_handler=always) as session:
        heard = listen(session)
        assert await outcome_of(session) == "success"
        assert [notice for notice in heard if "counts once this directory is trusted" in notice]

    async with InteractiveSession(cwd=project, provider=ScriptedProvider(WRITE, "2")) as later:
        assert await outcome_of(later) == "denied"
        assert any("Write(" in line for line in later.project.trust.describe())


async def test_settings_that_cannot_be_saved_leave_the_rule_for_the_session_and_say_why(
    project: Path,
) -> None:
    (project / ".robota").mkdir()

    async def always(question: PermissionQuestion) -> str:
        (project / ".robota" / "settings.local.json").write_text("{ broken")
        return "allow-project"

    provider = ScriptedProvider(WRITE, "1")
    async with InteractiveSession(cwd=project, provider=provider, permission_handler=always) as session:
        heard = listen(session)
        assert await outcome_of(session) == "success"

    assert [notice for notice in heard if "could not be saved" in notice and "is not JSON" in notice]
    assert (project / ".robota" / "settings.local.json").read_text() == "{ broken"


async def test_a_damaged_ledger_of_trust_is_named_and_nothing_is_trusted(project: Path) -> None:
    write(project, {"permissions": {"allow": ["Write(new.txt)"]}}, ".robota/settings.json")
    ledger = Path(os.environ["ROBOTA_HOME"]) / "trust.json"
    ledger.parent.mkdir()
    ledger.write_text("{")
    async with InteractiveSession(cwd=project, provider=ScriptedProvider(WRITE, "1")) as session:
        heard = listen(session)

        assert await outcome_of(session) == "denied"
        assert [notice for notice in heard if "trust.json is damaged" in notice]


async def test_a_server_may_leave_the_files_of_its_project_alone(project: Path) -> None:
    write(project, HOOK)
    provider = ScriptedProvider("1")
    async with InteractiveSession(cwd=project, provider=provider, setting_sources=("user",)) as session:
        heard = listen(session)
        await session.submit("Hi")

        assert not session.project.trust.wishes
        assert heard == []
