"""Skills: where they are found, what their heads say, what becomes of their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, entry_types, write

from robota import InteractiveSession
from robota.sdk import CommandRegistry, SkillCommandSource, SubmitPrompt
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
FREE = "bypassPermissions"


def skill(where: Path, name: str, body: str = "Do it.", **head: str) -> Path:
    head = {"description": f"About {name}.", **head}
    lines = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in head.items() if value)
    return write(where / name / "SKILL.md", f"---\n{lines}---\n{body}\n")


def trusted(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), trust_project=True, **more)


async def prompt_of(session: InteractiveSession, name: str, args: str = "") -> str:
    answer = await session.execute_command(name, args)
    assert answer is not None
    assert isinstance(answer.effect, SubmitPrompt), answer.message
    return answer.effect.input


async def test_the_four_homes_of_the_contract_in_their_order(project: Path, home: Path) -> None:
    homes = [project / ".claude/skills", project / ".claude/commands", home / ".robota/skills"]
    homes.append(project / ".agents/skills")
    for number, where in enumerate(homes):
        for other in range(number, 4):
            if where.name == "commands":
                write(where / f"s{other}.md", f"---\ndescription: {where.parent.name}/commands\n---\nDo.")
            else:
                skill(
                    where,
                    f"s{other}",
                    description=f"{where.parent.name}/{where.name} of {where.parents[1].name}",
                )
    registry = CommandRegistry(SkillCommandSource(project))
    found = {command.name: command.description for command in registry.commands()}
    assert found == dict.fromkeys(("s0", "s1", "s2", "s3"), ".claude/skills of project")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("project/.robota/skills", "project/.claude/skills"),
        ("project/.claude/skills", "home/.robota/skills"),
        ("home/.robota/skills", "project/.agents/skills"),
        ("project/.agents/skills", "home/.claude/skills"),
    ],
)
async def test_the_first_of_a_name_counts_and_the_other_is_named(
    project: Path, first: str, second: str
) -> None:
    root = project.parent
    used, left_out = skill(root / first, "audit", "First."), skill(root / second, "audit", "Second.")
    async with trusted(project, "Done.") as session:
        assert "First." in await prompt_of(session, "audit")
        assert any(str(left_out) in str(each) and str(used) in str(each) for each in session.problems)


async def test_calling_a_skill_shows_what_was_typed_and_notes_it(project: Path) -> None:
    skill(project / ".claude/skills", "audit", "Look at $ARGUMENTS.")
    provider = ScriptedProvider("No mistakes.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        result = await session.submit("/audit a.py now")
        assert result.text == "No mistakes."
        assert session.messages[0].content == "/audit a.py now"
        sent = str(provider.requests[0].messages[-1].content)
        assert sent.startswith('<skill name="audit">\n')
        assert "Look at a.py now." in sent
        assert sent.endswith('Execute the "audit" skill: a.py now')
        (entry,) = [entry for entry in session.full_history if entry.type == "skill-invocation"]
        assert entry.category == "event"
        assert entry.data == {"skillName": "audit", "displayInput": "/audit a.py now"}
        assert entry_types(session)[0] in ("skill-invocation", "user")


@pytest.mark.parametrize(
    ("text", "args", "said"),
    [
        ("[$ARGUMENTS]", "a b", "[a b]"),
        ("[$ARGUMENTS[1]]", "a b", "[b]"),
        ("[$0|$1]", "a 'b c'", "[a|b c]"),
        ("[$2]", "a", "[$2]"),
        (r"[\$0]", "a", "[$0]"),
        ("[$file|$line]", "x.py", "[x.py|]"),
        ("Nothing.", "a b", "Nothing.\n\nARGUMENTS: a b"),
        ("[${CLAUDE_PROJECT_DIR}]", "", "[{project}]"),
        ("[${CLAUDE_SKILL_DIR}]", "", "[{project}/.claude/skills/audit]"),
        ("[${CLAUDE_SESSION_ID}]", "", "[{session}]"),
        ("[${UNKNOWN}]", "", "[${UNKNOWN}]"),
    ],
)
async def test_substitution_in_claude_files(project: Path, text: str, args: str, said: str) -> None:
    skill(project / ".claude/skills", "audit", text, arguments="[file, line]")
    async with trusted(project, "Done.") as session:
        expected = said.replace("{project}", str(project)).replace("{session}", session.session_id)
        assert expected in await prompt_of(session, "audit", args)


async def test_inline_commands_are_run_and_their_output_takes_their_place(project: Path) -> None:
    skill(project / ".claude/skills", "audit", "Files: !`ls`\n\n```!\necho one\necho two\n```\nGo.")
    async with trusted(project, "Done.", permission_mode=FREE) as session:
        prompt = await prompt_of(session, "audit")
        assert "Files: notes.txt" in prompt
        assert "one\ntwo" in prompt
        assert "!`" not in prompt


async def test_neither_arguments_nor_output_bring_commands_in(project: Path) -> None:
    write(project / "trap.txt", "!`touch made`\n")
    skill(project / ".claude/skills", "audit", "$ARGUMENTS\n!`cat trap.txt`")
    async with trusted(project, "Done.", permission_mode=FREE) as session:
        prompt = await prompt_of(session, "audit", "!`touch made`")
        assert prompt.count("!`touch made`") >= 2
    assert not (project / "made").exists()


@pytest.mark.parametrize(("command", "why"), [("exit 3", "exit code 3"), ("touch made", "Permission")])
async def test_a_command_that_fails_or_may_not_run_stops_the_skill(
    project: Path, command: str, why: str
) -> None:
    skill(project / ".claude/skills", "audit", f"Do it: !`{command}`")
    mode = FREE if why != "Permission" else "default"
    async with trusted(project, "never", permission_mode=mode) as session:
        heard = Heard(session)
        result = await session.submit("/audit")
        assert heard.closings() == ["error"]
        assert command in str(result.error)
        assert why in str(result.error)
        assert "user" not in {message.role for message in session.session.messages}
    assert not (project / "made").exists()


async def test_commands_of_skills_can_be_switched_off(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"disableSkillShellExecution": True})
    skill(project / ".claude/skills", "audit", "Go: !`touch made`")
    async with trusted(project, "Done.", permission_mode=FREE) as session:
        prompt = await prompt_of(session, "audit")
        assert "disableSkillShellExecution" in prompt
        write(home / ".robota/settings.json", {})
        await session.submit("Anything")
        assert "disableSkillShellExecution" not in await prompt_of(session, "audit")
    assert (project / "made").exists()


async def test_commands_for_another_shell_are_not_run(project: Path) -> None:
    path = skill(project / ".claude/skills", "audit", "Go: !`touch made`", shell="powershell")
    async with trusted(project, "never", permission_mode=FREE) as session:
        result = await session.submit("/audit")
        assert "powershell" in str(result.error)
        assert any(str(path) in str(each) and "powershell" in str(each) for each in session.problems)
    assert not (project / "made").exists()


async def test_a_field_without_effect_here_is_named(project: Path) -> None:
    path = skill(project / ".claude/skills", "audit", context="fork", background="true")
    async with trusted(project, "Done.") as session:
        await session.ready()
        assert any(str(path) in str(each) and "background" in str(each) for each in session.problems)


async def test_skills_can_be_stacked(project: Path) -> None:
    for name in ("a", "b"):
        skill(
            project / ".claude/skills",
            name,
            f"This is {name}: $ARGUMENTS.",
            allowed_tools=f"Bash(touch {name})",
        )
    provider = ScriptedProvider([call("Bash", command="touch a"), call("Bash", command="touch b")], "Done.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("/a /b the rest")
        sent = str(provider.requests[0].messages[-1].content)
        assert "This is a: the rest." in sent
        assert "This is b: the rest." in sent
        assert session.messages[0].content == "/a /b the rest"
        names = [e.data["skillName"] for e in session.full_history if e.type == "skill-invocation"]
        assert names == ["a", "b"]
    assert (project / "a").exists()
    assert (project / "b").exists()


async def test_a_path_behind_a_skill_is_its_argument(project: Path) -> None:
    skill(project / ".claude/skills", "a", "[$ARGUMENTS]")
    async with trusted(project, "Done.") as session:
        assert "[/etc/hosts x]" in await prompt_of(session, "a", "/etc/hosts x")


async def test_allowed_tools_count_for_the_turn_alone(project: Path) -> None:
    skill(project / ".claude/skills", "audit", allowed_tools="Bash(touch made)")
    replies = ([call("Bash", command="touch made")], "Done.", [call("Bash", command="touch made")], "No.")
    async with trusted(project, *replies) as session:
        heard = Heard(session)
        await session.submit("/audit")
        await session.submit("Again")
        assert [state.result for state in heard.of("tool_end")] == ["success", "denied"]


async def test_a_model_calls_a_skill_through_its_tool(project: Path) -> None:
    skill(project / ".claude/skills", "audit", "Look at $0.")
    provider = ScriptedProvider([call("Skill", skill="audit", args="a.py")], "Done.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("Audit it")
        system = str(provider.requests[0].messages[0].content)
        assert "audit" in system
        assert "About audit." in system
        assert "Look at $0" not in system
        assert "Look at a.py." in str(provider.requests[1].messages[-1].content)


async def test_who_may_call_is_in_the_head(project: Path) -> None:
    skill(project / ".claude/skills", "mine", disable_model_invocation="true")
    skill(project / ".claude/skills", "its", user_invocable="false")
    provider = ScriptedProvider([call("Skill", skill="mine")], "No.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        heard = Heard(session)
        await session.submit("Go")
        assert "About mine." not in str(provider.requests[0].messages[0].content)
        assert "About its." in str(provider.requests[0].messages[0].content)
        assert heard.of("tool_end")[0].result == "error"
        names = [command.name for command in session.commands.commands()]
        assert "mine" in names
        assert "its" not in names


async def test_a_skill_that_forks_is_carried_out_by_a_subagent(project: Path) -> None:
    skill(project / ".claude/skills", "audit", "Look at $ARGUMENTS.", context="fork")
    provider = ScriptedProvider("Nothing wrong.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        result = await session.submit("/audit a.py")
        assert result.text == "Nothing wrong."
        system = str(provider.requests[0].messages[0].content)
        assert "500 words" in system
        assert "Agent" not in [tool.name for tool in provider.requests[0].tools]


async def test_hooks_of_a_skill_count_from_its_first_use_and_once_means_once(project: Path) -> None:
    head = (
        "description: Watches.\nhooks:\n  PreToolUse:\n    - matcher: Read\n      hooks:\n"
        "        - {type: command, command: 'echo x >> often'}\n"
        "        - {type: command, command: 'echo x >> single', once: true}\n"
    )
    write(project / ".claude/skills/watch/SKILL.md", f"---\n{head}---\nGo.\n")
    read = [call("Read", file_path="notes.txt")]
    async with trusted(project, read, "One.", read, "Two.", read, "Three.") as session:
        await session.submit("Before")
        assert not (project / "often").exists()
        await session.submit("/watch")
        await session.submit("After")
    assert (project / "often").read_text() == "x\nx\n"
    assert (project / "single").read_text() == "x\n"


async def test_once_in_settings_takes_no_guard_away(project: Path) -> None:
    handler = {"type": "command", "command": "exit 2", "once": True}
    write(project / ".robota/settings.json", {"hooks": {"PreToolUse": [{"hooks": [handler]}]}})
    read = [call("Read", file_path="notes.txt")]
    async with trusted(project, read, read, "No.") as session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["denied", "denied"]


async def test_skills_of_a_project_that_nobody_trusts_run_nothing(project: Path) -> None:
    skill(project / ".claude/skills", "audit", "Go: !`touch made`")
    provider = ScriptedProvider("Fine.")
    async with InteractiveSession(cwd=project, provider=provider, permission_mode=FREE) as session:
        result = await session.submit("/audit")
        assert "not trusted" in str(result.error)
        await session.submit("Hello")
        assert "About audit." not in str(provider.requests[0].messages[0].content)
    assert not (project / "made").exists()


async def test_a_skill_that_changes_counts_as_it_is_now(project: Path) -> None:
    path = skill(project / ".claude/skills", "audit", "Old.")
    async with trusted(project, "Done.") as session:
        assert "Old." in await prompt_of(session, "audit")
        path.write_text(path.read_text().replace("Old.", "New text."))
        assert "New text." in await prompt_of(session, "audit")
        skill(project / ".claude/skills", "second", "Here.")
        await session.ready()
        assert "Here." in await prompt_of(session, "second")
