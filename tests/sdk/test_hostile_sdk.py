"""Attempts to get more rights than a definition or the session gives."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.agents.agent_files import write_agent
from tests.sdk.agents.workshop import start

from robota.core.errors import ConfigurationError
from robota.core.events import SubagentEvent, ToolEnded
from robota.core.tool import Tool
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.agents.subagent import restrict
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call
from robota.tools import tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    path = tmp_path / "project"
    (path / "secret").mkdir(parents=True)
    (path / "secret" / "key.txt").write_text("needle\n")
    return path


def write_skill(project: Path, body: str, *lines: str) -> None:
    path = project / ".claude" / "skills" / "audit" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(("---", "description: Looks.", *lines, "---", body)))


async def work(project: Path, *replies: Any, mode: str = "bypassPermissions", **options: Any) -> list[str]:
    """What the calls of the subagent came to."""
    provider = ScriptedProvider(*replies, "Reported.", "Done.")
    session = InteractiveSession(
        cwd=project, provider=provider, model="m", trust_project=True,
        environment={"HOME": str(project.parent / "home")}, permission_mode=mode, **options,
    )  # fmt: skip
    found: list[str] = []

    def hear(event: SubagentEvent) -> None:
        if isinstance(event.inner, ToolEnded):
            found.append(event.inner.error or event.inner.content)

    session.events.on(SubagentEvent, hear)
    async with session:
        await session.submit("go")
    return found


def named(name: str) -> Tool:
    @tool(name=name)
    def nothing() -> str:
        """Do nothing."""
        return ""

    return nothing


def define(project: Path, *lines: str, home: str = ".robota") -> None:
    write_agent(project / home / "agents", "narrow", "name: narrow", "description: Looks.", *lines)


async def test_a_subagent_without_bash_runs_no_command_of_a_skill(project: Path) -> None:
    write_skill(project, "!`touch made`", "allowed-tools: Bash(touch *)")
    define(project, "tools: Read, Skill")
    [said] = await work(project, [start(subagent_type="narrow")], [call("Skill", skill="audit")])
    assert "there is no Bash tool" in said
    assert not (project / "made").exists()


async def test_a_skill_does_not_widen_what_a_subagent_may_run(project: Path) -> None:
    write_skill(project, "!`touch made`", "allowed-tools: Bash(touch *)")
    define(project, "tools: Bash(git *), Skill")
    [said] = await work(project, [start(subagent_type="narrow")], [call("Skill", skill="audit")])
    assert "was stopped at its command" in said
    assert not (project / "made").exists()


async def test_what_a_skill_of_a_subagent_allows_is_not_allowed_to_its_parent(project: Path) -> None:
    write_skill(project, "Look.", "allowed-tools: Bash(touch *)")
    define(project, "tools: Skill")
    await work(
        project, [start(subagent_type="narrow")], [call("Skill", skill="audit")], "Reported.",
        [call("Bash", command="touch made")], mode="default",
        settings={"permissions": {"allow": ["Agent", "Skill"]}},
    )  # fmt: skip
    assert not (project / "made").exists()


async def test_a_subagent_starts_no_other_through_a_skill(project: Path) -> None:
    write_skill(project, "Work.", "context: fork")
    define(project, "tools: Read, Skill")
    [said] = await work(project, [start(subagent_type="narrow")], [call("Skill", skill="audit")])
    assert "subagents start none" in said


async def test_a_file_denied_by_a_definition_is_not_searched(project: Path) -> None:
    define(project, "tools: Grep", "disallowedTools: Read(secret/**)")
    search = call("Grep", pattern="needle", output_mode="content")
    [said] = await work(project, [start(subagent_type="narrow")], [search])
    assert "key.txt" not in said


@pytest.mark.parametrize(
    ("lines", "path", "is_done"),
    [
        (("tools: Read", "disallowedTools: NotebookRead(secret/**)"), "secret/key.txt", False),
        (("tools: MultiEdit(src/**)",), "src/a.txt", True),
        (("tools: MultiEdit(src/**)",), "secret/key.txt", False),
    ],
)
async def test_a_rule_with_another_name_of_a_tool_is_about_that_tool(
    project: Path, lines: tuple[str, ...], path: str, is_done: bool
) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.txt").write_text("needle\n")
    define(project, *lines)
    tool, more = ("Read", {}) if "Read" in lines[0] else ("Edit", {"old_string": "needle", "new_string": "x"})
    [said] = await work(
        project, [start(subagent_type="narrow")], [call(tool, file_path=str(project / path), **more)]
    )
    assert ("Permission denied" not in said) is is_done, said
    assert (project / "secret" / "key.txt").read_text() == "needle\n"


@pytest.mark.parametrize(
    ("line", "home", "command"),
    [
        ("disallowedTools: Bash(touch *", ".robota", "touch made"),
        ("disallowedTools: Bash(*)", ".robota", "touch made"),
        ("disallowedTools: {Bash: true}", ".robota", "touch made"),
        ("disallowedTools: Edit(!made)", ".claude", "echo x > made"),
        ("permissionMode: paln", ".robota", "touch made"),
    ],
)
async def test_a_definition_that_cannot_be_read_gives_no_rights(
    project: Path, line: str, home: str, command: str
) -> None:
    define(project, line, home=home)
    [said] = await work(project, [start(subagent_type="narrow")], [call("Bash", command=command)])
    assert "denied" in said or "'Bash' is not registered" in said, said
    assert not (project / "made").exists()


async def test_what_a_definition_denies_illegibly_is_not_searched(project: Path) -> None:
    define(project, "disallowedTools: Read(!secret/**)", home=".claude")
    search = call("Grep", pattern="needle", output_mode="content")
    [said] = await work(project, [start(subagent_type="narrow")], [search])
    assert "Permission denied" in said


def test_a_definition_in_code_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the closing parenthesis is missing"):
        AgentDefinition(name="a", description="d", system_prompt="s", disallowed_tools=("Bash(rm *",))


async def test_a_limit_on_the_tools_of_a_server_binds_each_of_them(project: Path) -> None:
    agent = AgentDefinition(name="a", description="d", system_prompt="s", tools=("mcp__git__*(main)", "Read"))
    rules = restrict(agent, [named("mcp__git__push"), named("Read")], [])
    assert rules is not None
    assert rules.mode == "default"
    assert "mcp__git__push" not in rules.allow


async def test_what_a_skill_denies_illegibly_is_asked_about(project: Path) -> None:
    write_skill(project, "Look.", "disallowed-tools: Bash(touch *")
    await work(project, [call("Skill", skill="audit")], [call("Bash", command="touch made")])
    assert not (project / "made").exists()


@pytest.mark.parametrize("kind", ["deny", "ask"])
async def test_a_slip_in_the_name_of_a_tool_guards_the_tool_that_was_meant(project: Path, kind: str) -> None:
    session = InteractiveSession(
        cwd=project, provider=ScriptedProvider(), model="m", permission_mode="bypassPermissions",
        environment={"HOME": str(project.parent / "home")},
        settings={"permissions": {kind: ["Reed(secret/**)"]}},
    )  # fmt: skip
    async with session:
        assert (await session.ready()).rules.rules.ask == ("Read",)
        assert any("every call of Read is asked about" in str(problem) for problem in session.problems)


async def test_an_agent_that_judges_for_a_hook_reads_nothing_outside_the_workspace(project: Path) -> None:
    outside = project.parent / "diary.txt"
    outside.write_text("dear diary\n")
    (project / "a.txt").write_text("a\n")
    provider = ScriptedProvider(
        [call("Read", file_path="a.txt")], [call("Read", file_path=str(outside))], '{"ok": true}', "Done."
    )
    hook = {"type": "agent", "prompt": "Is it safe? Look around."}
    session = InteractiveSession(
        cwd=project, provider=provider, model="m", environment={"HOME": str(project.parent / "home")},
        settings={"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}},
    )  # fmt: skip
    async with session:
        await session.submit("go")
    answer = provider.requests[2].messages[-1]
    assert "This hook may only look at what" in str(answer.content)


@pytest.fixture
def repository(project: Path) -> Path:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    (project / "a.txt").write_text("a\n")
    for words in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    return project


@pytest.mark.parametrize("tool", ["Read", "Grep"])
async def test_a_working_tree_does_not_escape_deny_rules(repository: Path, tool: str) -> None:
    reading = call("Read", file_path=str(repository / "secret" / "key.txt"))
    search = call("Grep", pattern="needle", path=str(repository), output_mode="content")
    [said] = await work(
        repository, [start(isolation="worktree")], [reading if tool == "Read" else search],
        settings={"permissions": {"deny": ["Read(secret/**)"]}},
    )  # fmt: skip
    assert said
    assert "needle" not in said
