"""Commands about what the files of a project and its user say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota.sdk.commands.effects import CommandResult, ProviderChosen
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("home/.robota", "work/.robota"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "work"


def write(project: Path, *, user: Any = None, own: Any = None) -> None:
    for values, place in ((user, project.parent / "home"), (own, project)):
        if values is not None:
            (place / ".robota" / "settings.json").write_text(json.dumps(values))


def make(project: Path, **options: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=project,
        provider=ScriptedProvider("yes"),
        environment={"HOME": str(project.parent / "home")},
        **options,
    )


async def run(session: InteractiveSession, name: str, args: str = "") -> CommandResult:
    result = await session.execute_command(name, args)
    assert result is not None
    return result


HOOKS = {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}],
    "Setup": [{"hooks": [{"type": "command", "command": "never"}]}],
}


async def test_status_tells_how_the_session_stands(project: Path) -> None:
    write(project, user={"model": "m-1"})
    async with make(project, session_name="work") as session:
        lines = dict(
            line.split(": ", 1) for line in (await run(session, "status")).message.split("\n") if line
        )

        assert lines["Session"] == f"{session.session_id} (work)"
        assert lines["Directory"] == f"{project} (not trusted)"
        assert lines["Provider"] == "scripted, model m-1"
        assert lines["Permission mode"] == "default"
        assert lines["Saved"] == "nowhere: there is no store"
        assert lines["Sandbox"].startswith("auto, ")
        assert lines["Context"].endswith(" tokens (0%)")
        assert lines["Problems"] == "none"


async def test_status_without_a_sandbox_says_so(project: Path) -> None:
    write(project, user={"sandbox": "off"})
    async with make(project, trust_project=True) as session:
        message = (await run(session, "status")).message

        assert "Sandbox: off" in message
        assert f"Directory: {project} (trusted)" in message


async def test_doctor_names_origins_hooks_that_never_run_and_every_problem(project: Path) -> None:
    write(project, user={"language": "Korean", "hooks": HOOKS, "langauge": "x"})
    async with make(project) as session:
        message = (await run(session, "doctor")).message

        assert "Settings:\n" in message
        assert "  language: ~/.robota/settings.json" in message
        problems = message.partition("Problems:\n")[2]
        assert "settings.json:1: hooks.Setup: its hooks never run: there is no such event here." in problems
        assert "langauge" in problems
        assert (await run(session, "status")).message.endswith(
            f"Problems: {len(session.problems)} (see /doctor)"
        )


async def test_a_project_is_trusted_after_its_wishes_were_shown(project: Path) -> None:
    async with make(project) as session:
        assert (await run(session, "trust")).message == (
            f"{project} is not trusted, and wants nothing that would need it."
        )
    write(project, own={"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}})
    async with make(project) as session:
        asked = (await run(session, "trust")).message
        assert asked.startswith(
            f"Do you trust {project}? Its files want this:\nHooks that run by themselves:\n"
        )
        assert asked.endswith("\nIf you trust it: /trust yes")
        assert (await run(session, "hooks")).message == "There are no hooks here."
        assert not (await run(session, "trust", "maybe")).success

        assert (await run(session, "trust", "yes")).message == (
            f"You trust {project}: what it wants counts from now on."
        )
        assert (await run(session, "hooks")).message == "Hooks:\n  Stop: command true"
    async with make(project) as session:
        assert (await run(session, "trust")).message.startswith(f"{project} is trusted.\nHooks that run")


async def test_hooks_are_listed_with_their_events_and_matchers(project: Path) -> None:
    write(project, user={"hooks": HOOKS})
    async with make(project) as session:
        assert "  PreToolUse (Bash): command true" in (await run(session, "hooks")).message
    write(project, user={})
    async with make(project) as session:
        assert (await run(session, "hooks")).message == "There are no hooks here."


async def test_servers_are_listed(project: Path) -> None:
    write(project, user={"mcpServers": {"files": {"command": "no-such-server", "args": ["server"]}}})
    (project / ".mcp.json").write_text(
        '{"mcpServers": {"web": {"type": "http", "url": "https://a.example"}}}'
    )
    async with make(project) as session:
        message = (await run(session, "mcp")).message
        assert message.startswith("MCP servers:\n  files (user): ")
        assert message.endswith("are not connected (/trust):\n  web: https://a.example  [.mcp.json]")
    (project / ".mcp.json").unlink()
    write(project, user={})
    async with make(project) as session:
        assert (await run(session, "mcp")).message.startswith("No MCP servers are configured here: ")


async def test_agents_are_listed_with_where_they_come_from(project: Path) -> None:
    (project / ".robota" / "agents").mkdir()
    (project / ".robota" / "agents" / "tester.md").write_text(
        "---\ndescription: Runs the tests\n---\nTest it.\n"
    )
    async with make(project, trust_project=True) as session:
        message = (await run(session, "agents")).message

        assert "  tester (.robota/agents/tester.md): Runs the tests" in message
        assert "  general-purpose (built-in): " in message


async def test_skills_are_listed_by_how_they_are_called(project: Path) -> None:
    async with make(project) as session:
        assert (await run(session, "skills")).message.startswith("There are no skills here")
    (project / ".robota" / "skills" / "audit").mkdir(parents=True)
    (project / ".robota" / "skills" / "audit" / "SKILL.md").write_text(
        "---\nname: audit\ndescription: Looks for\n  holes\nargument-hint: '[file]'\n---\nLook.\n"
    )
    async with make(project) as session:
        assert (await run(session, "skills")).message == "Skills:\n  /audit [file]: Looks for holes"


async def test_config_lists_what_is_set_and_where(project: Path) -> None:
    write(
        project,
        user={"language": "Korean", "providers": {"a": {"type": "x", "apiKey": "sk-secret-123"}}},
        own={"model": "m-2"},
    )
    async with make(project, trust_project=True) as session:
        message = (await run(session, "config")).message

        assert 'language = "Korean"  [~/.robota/settings.json]' in message
        assert 'model = "m-2"  [.robota/settings.json]' in message
        assert "sk-secret-123" not in message


async def test_config_shows_one_setting_with_its_meaning(project: Path) -> None:
    write(project, user={"language": "Korean"})
    async with make(project) as session:
        told = await run(session, "config", "get language")
        usual = await run(session, "config", "get sandbox")
        wrong = await run(session, "config", "get langauge")

        assert told.message == ('language = "Korean"  [~/.robota/settings.json]\nThe language of answers.')
        assert usual.message.startswith('sandbox = "auto"  [default]\n')
        assert wrong.message == "There is no setting 'langauge'; did you mean 'language'?"
        assert not wrong.success


async def test_config_changes_the_users_own_file(project: Path) -> None:
    write(project, user={"language": "Korean"})
    path = project.parent / "home" / ".robota" / "settings.json"
    async with make(project) as session:
        text = await run(session, "config", "set language Brazilian Portuguese")
        nested = await run(session, "config", "set permissions.defaultMode plan")
        number = await run(session, "config", "set autoCompactThreshold 0.5")
        gone = await run(session, "config", "unset language")
        again = await run(session, "config", "unset language")

        assert text.message == 'language = "Brazilian Portuguese"  [~/.robota/settings.json]'
        assert dict(text.data) == {"path": str(path)}
        assert [each.success for each in (nested, number, gone, again)] == [True, True, True, False]
        assert json.loads(path.read_text()) == {
            "permissions": {"defaultMode": "plan"},
            "autoCompactThreshold": 0.5,
        }


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ("set langauge x", "language"),
        ("set autoCompactThreshold much", "autoCompactThreshold"),
        ("set language", "Usage: /config"),
        ("unset", "Usage: /config"),
        ("change it", "/config knows no 'change'"),
    ],
)
async def test_config_refuses_what_would_not_work(project: Path, args: str, part: str) -> None:
    async with make(project) as session:
        result = await run(session, "config", args)

        assert part in result.message
        assert not result.success
        assert not (project.parent / "home" / ".robota" / "settings.json").exists()


async def test_provider_shows_lists_and_chooses_profiles(project: Path) -> None:
    profiles = {"a": {"type": "x", "model": "m-1"}, "b": {"type": "y"}}
    write(project, user={"currentProvider": "a", "providers": profiles})
    async with make(project, model="m-1") as session:
        current = await run(session, "provider")
        listed = await run(session, "provider", "list")
        chosen = await run(session, "provider", "switch b")
        wrong = await run(session, "provider", "switch c")
        usage = await run(session, "provider", "switch")

        assert current.message == "Provider: scripted, model m-1, profile a"
        assert listed.message == "* a: x, m-1\n  b: y"
        assert chosen.effect == ProviderChosen("b")
        assert wrong.message.startswith('There is no provider profile "c"')
        assert usage.message == "Usage: /provider [current | list | switch NAME]"
        assert [each.success for each in (wrong, usage)] == [False, False]
