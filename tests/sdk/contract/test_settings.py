"""Settings: layers, what is pooled, where a value comes from, writing, and files that change meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, write

from robota import InteractiveSession
from robota.core import ConfigurationError
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
LAYERS = (
    "project/.robota/settings.local.json",
    "project/.robota/settings.json",
    "project/.claude/settings.local.json",
    "project/.claude/settings.json",
    "home/.robota/settings.json",
    "home/.claude/settings.json",
)


def make(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    more.setdefault("trust_project", True)
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), **more)


async def denied(session: InteractiveSession, prompt: str = "Go") -> list[str]:
    heard = Heard(session)
    await session.submit(prompt)
    return [state.result for state in heard.of("tool_end")]


@pytest.mark.parametrize("at", range(len(LAYERS)))
async def test_the_higher_of_two_files_counts_and_is_named(project: Path, at: int) -> None:
    for place in LAYERS[at:]:
        write(project.parent / place, {"language": place})
    async with make(project) as session:
        await session.ready()
        settings = session.project.settings
        assert settings.language == LAYERS[at]
        assert settings.origins["language"][0] == str(project.parent / LAYERS[at])


async def test_variables_and_flags_are_above_all_files(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / ".robota/settings.local.json", {"language": "file"})
    monkeypatch.setenv("ROBOTA_LANGUAGE", "variable")
    async with make(project) as session:
        await session.ready()
        assert session.project.settings.language == "variable"
    async with make(project, settings={"language": "flag"}) as session:
        await session.ready()
        assert session.project.settings.language == "flag"


async def test_objects_are_merged_and_lists_of_rules_pooled(project: Path) -> None:
    for number, place in enumerate(LAYERS):
        write(
            project.parent / place,
            {"permissions": {"deny": [f"Read(secret{number})"]}, "env": {f"V{number}": "x"}},
        )
    async with make(project) as session:
        await session.ready()
        rules = " ".join(session.project.settings.rules.deny)
        assert all(f"secret{number}" in rules for number in range(len(LAYERS)))
        assert set(session.project.settings.env) == {f"V{number}" for number in range(len(LAYERS))}


@pytest.mark.parametrize("place", LAYERS)
async def test_a_deny_of_any_layer_wins_over_an_allow_of_any_other(project: Path, place: str) -> None:
    for other in LAYERS:
        write(project.parent / other, {"permissions": {"allow": ["Bash(touch made)"]}})
    write(project.parent / place, {"permissions": {"deny": ["Bash(touch *)"]}})
    async with make(project, [call("Bash", command="touch made")], "No.") as session:
        assert await denied(session) == ["denied"]
    assert not (project / "made").exists()


async def test_references_to_the_environment_are_filled_in_after_the_merge(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", "berlin")
    write(home / ".robota/settings.json", {"env": {"CITY": "$ENV:WHERE", "OTHER": "$ENV:NOT_SET_ANYWHERE"}})
    write(project / ".robota/settings.json", {"env": {"MORE": "x"}})
    async with make(project) as session:
        await session.ready()
        env = session.project.settings.env
        assert env["CITY"] == "berlin"
        assert env["MORE"] == "x"
        assert env.get("OTHER", "$ENV:NOT_SET_ANYWHERE") == "$ENV:NOT_SET_ANYWHERE"


async def test_comments_and_trailing_commas_are_accepted(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", '{\n  // mine\n  "language": "ko", /* so */\n}\n')
    async with make(project) as session:
        await session.ready()
        assert session.project.settings.language == "ko"
        assert session.problems == ()


@pytest.mark.parametrize(
    ("level", "mode"), [("safe", "plan"), ("moderate", "default"), ("full", "acceptEdits")]
)
async def test_a_trust_level_is_a_mode(project: Path, home: Path, level: str, mode: str) -> None:
    write(home / ".robota/settings.json", {"defaultTrustLevel": level})
    async with make(project) as session:
        await session.ready()
        assert session.permission_mode == mode
    async with make(project, permission_mode="bypassPermissions") as session:
        await session.ready()
        assert session.permission_mode == "bypassPermissions"


@pytest.mark.parametrize(
    ("sources", "seen"),
    [(None, {"user", "project", "local"}), ((), set()), (("user",), {"user"}), (("project",), {"project"})],
)
async def test_a_server_says_which_files_count(
    project: Path, home: Path, sources: Any, seen: set[str]
) -> None:
    write(home / ".robota/settings.json", {"env": {"user": "x"}})
    write(project / ".robota/settings.json", {"env": {"project": "x"}})
    write(project / ".robota/settings.local.json", {"env": {"local": "x"}})
    more = {} if sources is None else {"setting_sources": sources}
    async with make(project, **more) as session:
        await session.ready()
        assert set(session.project.settings.env) == seen


async def test_an_answer_for_the_project_is_written_and_keeps_what_was_there(project: Path) -> None:
    path = write(
        project / ".robota/settings.local.json", '{\n  // mine\n  "unknownThing": {"kept": true},\n}\n'
    )

    async def for_the_project(question: Any) -> str:
        return "allow-project"

    touch = [call("Bash", command="touch made")]
    async with make(project, touch, "Done.", touch, "Done.", permission_handler=for_the_project) as session:
        assert await denied(session) == ["success"]
    text = path.read_text()
    assert "// mine" in text
    assert '"unknownThing": {"kept": true}' in text
    assert "touch made" in text
    async with make(project, touch, "Done.") as session:
        assert await denied(session) == ["success"]


@pytest.mark.parametrize(
    ("rule", "tool", "arguments"),
    [
        ("Read(notes.txt)", "Read", {"file_path": "notes.txt"}),
        ("Bash(cat *)", "Bash", {"command": "cat notes.txt"}),
        ("Grep", "Grep", {"pattern": "milk"}),
        ("Glob", "Glob", {"pattern": "*"}),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://example.com/", "prompt": "x"}),
    ],
)
async def test_a_deny_that_is_written_while_the_session_runs_binds_the_next_call(
    project: Path, rule: str, tool: str, arguments: dict[str, Any]
) -> None:
    session = make(project, "Hello.", [call(tool, **arguments)], "No.", permission_mode="bypassPermissions")
    async with session:
        await session.submit("Hi")
        write(project / ".claude/settings.json", {"permissions": {"deny": [rule]}})
        assert await denied(session) == ["denied"]


async def test_a_file_that_breaks_meanwhile_changes_nothing_and_is_told(project: Path, home: Path) -> None:
    path = write(home / ".robota/settings.json", {"permissions": {"deny": ["Read(notes.txt)"]}})
    read = [call("Read", file_path="notes.txt")]
    async with make(project, read, "No.", read, "No.", read, "Yes.") as session:
        notices: list[str] = []
        session.on("notice", lambda event: notices.append(event.message))
        assert await denied(session) == ["denied"]
        path.write_text("{ broken")
        assert await denied(session) == ["denied"]
        assert any(str(path) in notice for notice in notices)
        write(path, {})
        assert await denied(session) == ["success"]


async def test_hooks_skills_and_agents_are_taken_from_changed_files(project: Path, home: Path) -> None:
    async with make(project, "One.", "Two.") as session:
        await session.submit("Go")
        write(
            home / ".robota/settings.json",
            {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}},
        )
        write(home / ".robota/skills/fresh/SKILL.md", "---\ndescription: New.\n---\nGo.\n")
        write(home / ".robota/agents/fresh.md", "---\ndescription: New.\n---\nGo.\n")
        await session.submit("Again")
        assert (project / "hooked").exists()
        assert "fresh" in {command.name for command in session.commands.commands()}
        assert "fresh" in session.project.agents.definitions


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"currentProvider": "nowhere"}, '"nowhere" was not found in providers'),
        (
            {"currentProvider": "x", "providers": {"x": {"model": "m"}}},
            'Provider profile "x" is missing type',
        ),
    ],
)
async def test_profiles_that_cannot_be_used_are_named(
    project: Path, home: Path, settings: dict[str, Any], words: str
) -> None:
    write(home / ".robota/settings.json", settings)
    async with make(project, "Fine.") as session:
        await session.submit("Go")
        assert words in " ".join(map(str, session.problems))


async def test_bypassing_can_be_forbidden(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"permissions": {"disableBypassPermissionsMode": "disable"}})
    session = make(project, "never", permission_mode="bypassPermissions")
    async with session:
        with pytest.raises(ConfigurationError, match="disabled by"):
            await session.ready()


async def test_the_config_command_shows_values_with_their_files(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"language": "ko"})
    async with make(project) as session:
        shown = await session.execute_command("config", "")
        assert shown is not None
        assert "language" in shown.message
        assert "settings.json" in shown.message
