"""Files that are wrong: each is named with its place and a reason, and everything else keeps working."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, write

from robota import InteractiveSession, create_project_session_store
from robota.core import ConfigurationError, StorageError
from robota.sdk import AgentTask, Problem, SubmitPrompt
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
GOOD_SKILL = "---\ndescription: A good one.\n---\nDo it well.\n"
GOOD_AGENT = "---\ndescription: A good one.\n---\nYou are good.\n"


def trusted(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), trust_project=True, **more)


def about(session: InteractiveSession, path: Path) -> list[Problem]:
    return [each for each in session.problems if each.source == str(path)]


async def works(session: InteractiveSession) -> None:
    result = await session.submit("Hello")
    assert result.success, result.error


BROKEN_YAML = (
    "---\ndescription: [unclosed\nallowed-tools: Read\n---\nThe text.\n",
    "---\n\t- x: : y\n  {{{\n---\nThe text.\n",
    "---\ndescription: 'open\n---\nThe text.\n",
)


@pytest.mark.parametrize("text", BROKEN_YAML)
async def test_a_skill_with_a_broken_head(project: Path, text: str) -> None:
    path = write(project / ".claude/skills/broken/SKILL.md", text)
    write(project / ".claude/skills/good/SKILL.md", GOOD_SKILL)
    async with trusted(project, "Fine.") as session:
        await works(session)
        found = about(session, path)
        assert found
        assert all(each.message for each in found)
        for name, words in (("broken", "The text."), ("good", "Do it well.")):
            answer = await session.execute_command(name, "")
            assert answer is not None
            assert isinstance(answer.effect, SubmitPrompt)
            assert words in answer.effect.input


@pytest.mark.parametrize("text", BROKEN_YAML)
async def test_an_agent_with_a_broken_head_is_not_offered(project: Path, text: str) -> None:
    path = write(project / ".claude/agents/broken.md", text)
    write(project / ".claude/agents/good.md", GOOD_AGENT)
    async with trusted(project, "Fine.", "Done.") as session:
        await works(session)
        assert about(session, path)
        assert "good" in session.project.agents.definitions
        assert "broken" not in session.project.agents.definitions


async def test_a_skill_without_a_description(project: Path) -> None:
    path = write(
        project / ".claude/skills/plain/SKILL.md", "---\nname: plain\n---\n# Count the lines\nAll of them.\n"
    )
    async with trusted(project, "Fine.") as session:
        await works(session)
        assert any("description" in each.message for each in about(session, path))
        shown = {command.name: command.description for command in session.commands.commands()}
        assert shown["plain"] == "Count the lines"


async def test_an_agent_without_a_description_is_not_offered(project: Path) -> None:
    path = write(project / ".robota/agents/nameless.md", "---\nmodel: sonnet\n---\nWords.\n")
    async with trusted(project, "Fine.") as session:
        await works(session)
        assert any("description" in each.message for each in about(session, path))
        assert "nameless" not in session.project.agents.definitions


async def test_an_agent_that_names_unknown_tools_works_with_the_others(project: Path) -> None:
    head = "---\ndescription: x\ntools: Read, Grpe, Teleport\n---\nLook.\n"
    path = write(project / ".claude/agents/odd.md", head)
    provider = ScriptedProvider("Done.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.ready()
        messages = " ".join(each.message for each in about(session, path))
        assert "'Grpe'" in messages
        assert "'Grep'" in messages
        assert "'Teleport'" in messages
        outcome = await session.kit.subagents.run(AgentTask(agent="odd", prompt="Go"))
        assert outcome.success
        assert {tool.name for tool in provider.requests[0].tools} == {"Read"}


async def test_a_cyclic_import_is_read_once_and_named(project: Path) -> None:
    write(project / "AGENTS.md", "First. @docs/a.md\n")
    write(project / "docs/a.md", "Second. @b.md\n")
    path = write(project / "docs/b.md", "Third. @a.md\n")
    provider = ScriptedProvider("Fine.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await works(session)
        system = str(provider.requests[0].messages[0].content)
        for word in ("First.", "Second.", "Third."):
            assert system.count(word) == 1
        assert any("a.md" in str(each) for each in about(session, path))


STOP = '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{%s, "command": "x"}]}\n    ]\n  }\n}'


@pytest.mark.parametrize(
    ("settings", "line", "words"),
    [
        ('{\n  "langauge": "ko"\n}', 2, ["langauge", "language"]),
        ('{\n  "permissions": {\n    "alow": ["Read"]\n  }\n}', 3, ["alow", "allow"]),
        ('{\n  "language": 7\n}', 2, ["language"]),
        ('{\n  "permissions": "all"\n}', 2, ["permissions"]),
        ('{\n  "permissions": {\n    "deny": "Read"\n  }\n}', 3, ["deny"]),
        ('{\n  "autoCompactThreshold": 7\n}', 2, ["autoCompactThreshold"]),
        ('{\n  "hooks": {\n    "PreToolUze": []\n  }\n}', 3, ["PreToolUze", "PreToolUse"]),
        (STOP % '"type": "comand"', 4, ["comand", "command"]),
        (STOP % '"type": "command", "timeout": "long"', 4, ["timeout"]),
        (STOP.replace('{"hooks"', '{"matcher": "Re(ad", "hooks"') % '"type": "command"', 4, ["Re(ad"]),
    ],
)  # fmt: skip
async def test_a_slip_in_settings_is_named_with_file_line_and_key(
    project: Path, home: Path, settings: str, line: int, words: list[str]
) -> None:
    path = write(home / ".robota/settings.json", settings)
    write(project / ".robota/settings.json", {"language": "de"})
    provider = ScriptedProvider("Gut.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await works(session)
        (problem,) = about(session, path)
        assert problem.line == line
        assert all(word in str(problem) for word in words), str(problem)
        assert "?." not in str(problem)
        assert "German" in str(provider.requests[0].messages[0].content)


@pytest.mark.parametrize("text", ["{", '{"a": }', "[1, 2]", "not json", '{"language": "ko"'])
async def test_a_settings_file_that_does_not_parse_stops_with_its_place(
    home: Path, project: Path, text: str
) -> None:
    path = write(home / ".robota/settings.json", text)
    session = InteractiveSession(cwd=project, provider=ScriptedProvider("never"))
    async with session:
        with pytest.raises(ConfigurationError) as caught:
            await session.ready()
        assert str(path) in str(caught.value)


async def test_a_hook_with_an_invalid_matcher_does_not_take_the_others_along(project: Path) -> None:
    good = {"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2"}]}
    bad = {"matcher": "[", "hooks": [{"type": "command", "command": "exit 0"}]}
    write(project / ".robota/settings.json", {"hooks": {"PreToolUse": [bad, good]}})
    replies = ([call("Bash", command="touch made")], "No.")
    async with trusted(project, *replies, permission_mode="bypassPermissions") as session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["denied"]
    assert not (project / "made").exists()


async def test_five_thousand_skills(project: Path) -> None:
    for number in range(5_000):
        write(
            project / f".claude/skills/skill-{number:04}/SKILL.md",
            f"---\ndescription: Number {number}.\n---\nGo {number}.\n",
        )
    write(project / ".claude/skills/bad/SKILL.md", "---\ndescription: [\n---\nStill here.\n")
    provider = ScriptedProvider("Fine.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await works(session)
        assert len(session.project.skills) == 5_001
        answer = await session.execute_command("skill-4999", "")
        assert answer is not None
        assert isinstance(answer.effect, SubmitPrompt)
        assert "Go 4999." in answer.effect.input
        system = str(provider.requests[0].messages[0].content)
        assert len(system) < 120_000  # the list keeps to its part of the window
        assert "skill-0000" in system


async def test_a_home_that_cannot_be_written(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in the place of a directory is what nobody can write below, root included."""
    blocked = write(home / "blocked", "a file")
    monkeypatch.setenv("ROBOTA_HOME", str(blocked / ".robota"))
    monkeypatch.setenv("HOME", str(blocked))
    write(
        project / ".claude/settings.json",
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}},
    )
    store = create_project_session_store(str(blocked / "sessions"))
    provider = ScriptedProvider([call("Write", file_path="new.txt", content="x")], "Fine.")
    session = InteractiveSession(
        cwd=project, provider=provider, session_store=store, permission_mode="bypassPermissions"
    )
    async with session:
        heard = Heard(session)
        await session.submit("Go")
        assert heard.closings() == ["complete"]
        assert (project / "new.txt").exists()
        assert str(blocked) in session.trouble
        assert any(str(blocked) in each.source for each in session.problems)
        with pytest.raises(StorageError, match="cannot be written"):
            await session.trust_project()


async def test_settings_files_that_contradict_each_other(project: Path, home: Path) -> None:
    rules = {"permissions": {"allow": ["Bash(touch *)"], "deny": []}, "language": "ko"}
    against = {"permissions": {"deny": ["Bash(touch *)"]}, "language": "de"}
    write(project / ".robota/settings.json", rules)
    write(home / ".robota/settings.json", against)
    provider = ScriptedProvider([call("Bash", command="touch made")], "No.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["denied"]
        settings = session.project.settings
        assert settings.language == "ko"
        assert settings.origins["language"][0] == str(project / ".robota/settings.json")
        shown = await session.execute_command("config", "")
        assert shown is not None
        assert "ko" in shown.message
    assert not (project / "made").exists()


async def test_problems_are_told_once_as_notices_and_by_the_doctor(project: Path, home: Path) -> None:
    path = write(home / ".robota/settings.json", {"langauge": "ko"})
    async with trusted(project, "One.", "Two.") as session:
        notices: list[str] = []
        session.on("notice", lambda event: notices.append(event.message))
        await session.submit("Go")
        await session.submit("Again")
        assert len([notice for notice in notices if "langauge" in notice]) == 1
        doctor = await session.execute_command("doctor", "")
        assert doctor is not None
        assert str(path) in doctor.message
        assert "langauge" in doctor.message


async def test_what_a_program_gives_is_named_in_its_own_words(project: Path) -> None:
    agents = {
        "a": {"description": "Helps.", "promt": "You help."},
        "b": {"descripton": "Helps.", "prompt": "You help."},
        "c": {"description": "Helps."},
    }
    async with trusted(
        project, settings={"permisions": {}}, mcp_servers={"files": {}}, agents=agents
    ) as session:
        await session.ready()
        told = [str(problem) for problem in session.problems]

    assert told == [
        "the settings of this session: permisions: there is no such setting; did you mean 'permissions'?",
        "the agents of this session: a: There is no `prompt`, which would be its instructions; "
        "did you mean it by `promt`? The agent is not offered.",
        "the agents of this session: b: There is no `description`, by which a model could choose it; "
        "did you mean it by `descripton`? The agent is not offered.",
        "the agents of this session: c: There is no `prompt`, which would be its instructions. "
        "The agent is not offered.",
        "the MCP servers of this session: MCP server files: It has neither `command` nor `url`. "
        "It is left out.",
    ]
