"""Settings that change while a session is at work."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from robota.core.events import Noticed, SettingsChanged, ToolEnded
from robota.core.provider import ChatRequest
from robota.providers.scripted import Reply
from robota.sdk.interactive import InteractiveSession
from robota.sdk.settings.watch import FileWatch
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    path = tmp_path / "project"
    path.mkdir()
    (path / "secret.txt").write_text("password\n")
    (path / "open.txt").write_text("password\n")
    return path


def write(path: Path, settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))


def then(action: Callable[[], object], reply: Reply) -> Reply:
    """The reply of a model that is asked after something has happened."""

    def answer(_: ChatRequest) -> Reply:
        action()
        return reply

    return answer


def results(session: InteractiveSession) -> list[str]:
    found: list[str] = []
    session.events.on(ToolEnded, lambda event: found.append(event.content or event.error or ""))
    return found


def notices(session: InteractiveSession) -> list[str]:
    found: list[str] = []
    session.events.on(Noticed, lambda event: found.append(event.message))
    return found


CALLS = {
    "Read": call("Read", file_path="secret.txt"),
    "Grep": call("Grep", pattern="password", output_mode="files_with_matches"),
    "Glob": call("Glob", pattern="*.txt"),
    "Bash": call("Bash", command="cat secret.txt"),
    "WebFetch": call("WebFetch", url="https://example.com/", prompt="x"),
}


@pytest.mark.parametrize("where", [".robota/settings.local.json", ".claude/settings.json", "the user's"])
@pytest.mark.parametrize("tool", CALLS)
async def test_a_deny_rule_written_in_mid_run_binds_the_next_call(
    project: Path, tmp_path: Path, tool: str, where: str
) -> None:
    own = tmp_path / "home" / ".robota" / "settings.json"
    path = own if where == "the user's" else project / where
    deny = {"permissions": {"deny": ["Read(secret.txt)", "WebFetch(domain:example.com)"]}}
    provider = ScriptedProvider(
        [call("Read", "c0", file_path="secret.txt")], then(lambda: write(path, deny), [CALLS[tool]]), "Done."
    )
    async with InteractiveSession(
        cwd=project, provider=provider, permission_mode="bypassPermissions"
    ) as session:
        told = results(session)

        await session.submit("Look.")

    assert "password" in told[0]
    if tool in ("Grep", "Glob"):
        assert "open.txt" in told[1]
        assert "secret.txt" not in told[1]
    else:
        assert told[1].startswith("Permission denied")


async def test_calls_of_one_answer_all_wait_for_the_new_rules(project: Path) -> None:
    path = project / ".robota" / "settings.json"
    deny = {"permissions": {"deny": ["Read(secret.txt)"]}}
    reads = [call("Read", f"c{number}", file_path="secret.txt") for number in range(8)]
    provider = ScriptedProvider(then(lambda: write(path, deny), reads), "Done.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        told = results(session)

        await session.submit("Look.")

    assert len(told) == 8
    assert all(text.startswith("Permission denied") for text in told)


async def test_the_mode_that_the_user_chose_stays_and_the_change_is_on_record(project: Path) -> None:
    provider = ScriptedProvider("One.", "Two.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        changes: list[SettingsChanged] = []
        session.events.on(SettingsChanged, changes.append)
        await session.submit("1")
        session.permission_mode = "acceptEdits"
        mode = {"permissions": {"defaultMode": "plan", "ask": ["Bash"]}}
        write(Path(os.environ["ROBOTA_HOME"]) / "settings.json", mode)

        await session.submit("2")

        assert session.permission_mode == "acceptEdits"
        assert session.session.rules.rules.ask == ("Bash",)
        assert [change.keys for change in changes if "permissions" in change.keys] == [("permissions",)]


async def test_a_file_that_breaks_meanwhile_changes_nothing_and_is_told_once(project: Path) -> None:
    path = project / ".robota" / "settings.json"
    write(path, {"permissions": {"deny": ["Read(secret.txt)"]}})
    provider = ScriptedProvider(
        then(lambda: write(path, '{"permissions": '), [CALLS["Read"]]),
        [CALLS["Read"]],
        then(lambda: write(path, {"permissions": {"deny": ["Read(other.txt)"]}}), [CALLS["Read"]]),
        "Done.",
    )
    async with InteractiveSession(cwd=project, provider=provider) as session:
        told, said = results(session), notices(session)

        await session.submit("Look.")

    assert [text.startswith("Permission denied") for text in told] == [True, True, False]
    broken = [sentence for sentence in said if "cannot be used, so the old ones stay" in sentence]
    assert len(broken) == 1
    assert ".robota/settings.json" in broken[0]


async def test_a_hook_that_is_added_to_the_users_settings_fires(project: Path, tmp_path: Path) -> None:
    hook = {"type": "command", "command": "echo no >&2; exit 2"}
    settings = {"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}}
    path = tmp_path / "home" / ".robota" / "settings.json"
    provider = ScriptedProvider(then(lambda: write(path, settings), [CALLS["Read"]]), "Done.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        told = results(session)

        await session.submit("Look.")

    assert "no" in told[0]
    assert "password" not in told[0]


async def test_skills_and_agents_that_come_change_and_go_are_known_to_the_next_prompt(
    project: Path, tmp_path: Path
) -> None:
    skill = tmp_path / "home" / ".robota" / "skills" / "tidy" / "SKILL.md"
    agent = tmp_path / "home" / ".claude" / "agents" / "scout.md"
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("1", "2", "3")) as session:
        await session.submit("Hi")
        write(skill, "---\ndescription: Tidies.\n---\nTidy up.")
        write(agent, "---\nname: scout\ndescription: Looks.\n---\nLook.")
        await session.submit("Hi")
        assert "tidy" in [command.name for command in session.list_commands()]
        assert session.kit.subagents.agents["scout"].description == "Looks."

        write(skill, "---\ndescription: Tidies well.\n---\nTidy up.")
        agent.unlink()
        await session.submit("Hi")

        told = {command.name: command.description for command in session.list_commands()}
        assert told["tidy"] == "Tidies well."
        assert "scout" not in session.kit.subagents.agents


async def test_a_reload_that_is_cancelled_is_made_up_for(project: Path) -> None:
    session = InteractiveSession(cwd=project, provider=ScriptedProvider("One."))
    inner = await session.ready()
    write(project / ".robota" / "settings.json", {"permissions": {"deny": ["Read(secret.txt)"]}})
    reading = asyncio.ensure_future(session.ready())
    await asyncio.sleep(0)  # it has seen the change, and reads

    reading.cancel()
    await asyncio.wait((reading,))
    await session.ready()

    assert inner.rules.rules.deny == ("Read(secret.txt)",)
    await session.shutdown()


def test_a_watch_sees_files_come_change_and_go(tmp_path: Path) -> None:
    there, missing = tmp_path / "there", tmp_path / "missing"
    there.write_text("a")
    watch = FileWatch([str(there), str(missing), "bad\0name"])
    assert watch.find_changes() == []

    missing.write_text("b")
    assert watch.find_changes() == [str(missing)]
    (tmp_path / "new").write_text("a")
    os.replace(tmp_path / "new", there)
    missing.unlink()
    assert watch.find_changes() == [str(there), str(missing)]
    assert watch.find_changes() == []


def test_a_watch_sees_what_a_dangling_link_comes_to_and_directories_that_come_late(tmp_path: Path) -> None:
    link, late = tmp_path / "link", tmp_path / "late" / "below" / "settings.json"
    link.symlink_to(tmp_path / "target")
    watch = FileWatch([str(link), str(late), str(link)])
    assert watch.find_changes() == []

    (tmp_path / "target").write_text("a")
    assert watch.find_changes() == [str(link)]
    late.parent.mkdir(parents=True)
    assert watch.find_changes() == []
    late.write_text("b")
    assert watch.find_changes() == [str(late)]
    assert watch.find_changes() == []


async def test_a_rule_that_is_written_while_a_call_waits_for_the_reading_of_others_binds_it(
    project: Path,
) -> None:
    path = project / ".robota" / "settings.json"
    session = InteractiveSession(cwd=project, provider=ScriptedProvider("One."))
    inner = await session.ready()
    await inner.open()
    write(path, {"permissions": {"deny": ["Read(other.txt)"]}})
    inner.events.on(  # when the first has read, and the second waits for it
        SettingsChanged, lambda _: write(path, {"permissions": {"deny": ["Read(secret.txt)"]}})
    )

    await asyncio.gather(session.ready(), session.ready())

    assert inner.rules.rules.deny == ("Read(secret.txt)",)
    await session.shutdown()


async def test_what_a_front_end_denied_stays_denied_when_a_file_changes(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="secret.txt")], "Done.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        inner = await session.ready()
        inner.reload(rules=replace(inner.rules.rules, deny=("Read(secret.txt)",), ask=("Glob",)))
        write(project / ".robota" / "settings.json", {"permissions": {"deny": ["Read(other.txt)"]}})
        found = results(session)
        await session.submit("read it")
        write(project / ".robota" / "settings.json", {"permissions": {"deny": []}})
        await session.ready()

        assert "password" not in found[0]
        assert inner.rules.rules.deny == ("Read(secret.txt)",)
        assert inner.rules.rules.ask == ("Glob",)
