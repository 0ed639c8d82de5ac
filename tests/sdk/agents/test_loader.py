"""Where agents are found, which one of a name counts, and what is said about files that do not work."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sdk.agents.agent_files import load, make_places, write_agent

import robota
import robota.sdk
from robota.sdk.agents.definition import BUILT_IN_AGENTS, AgentDefinition
from robota.sdk.agents.loader import load_agents


def one(tmp_path: Path, *lines: str, body: str = "Look closely.") -> AgentDefinition | None:
    places = make_places(tmp_path)
    write_agent(places.project(".claude", "agents"), "made", *lines, body=body)
    return load(places).definitions.get("made")


def problems(tmp_path: Path) -> list[str]:
    return [f"{problem.subject}: {problem.message}" for problem in load(make_places(tmp_path)).problems]


def test_section_20_28_the_loader_is_not_public() -> None:
    for module in (robota, robota.sdk):
        assert not {"AgentDefinitionLoader", "load_agents", "SystemCommandExecutor"} & set(module.__all__)


def test_section_20_32_the_built_in_agents() -> None:
    explore, plan, general = (BUILT_IN_AGENTS[name] for name in ("Explore", "Plan", "general-purpose"))
    assert (explore.model, explore.disallowed_tools) == ("claude-haiku-4-5", ("Write", "Edit"))
    assert (plan.model, plan.disallowed_tools) == ("", ("Write", "Edit"))
    assert (general.model, general.tools, general.disallowed_tools) == ("", None, ())
    assert [each.is_read_only for each in (explore, plan, general)] == [True, True, False]


def test_section_20_33_custom_agents_override_built_ins_and_the_nearest_home_wins(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    homes = [
        places.claude("agents"), places.project(".agents", "agents"), places.user("agents"),
        places.project(".claude", "agents"), places.project(".robota", "agents"),
    ]  # fmt: skip
    for home in homes:  # each is stronger than the one before
        write_agent(home, "Plan")
        assert load(places).definitions["Plan"].source == f"{home}/Plan.md"
    assert load(places).problems == ()


def test_everything_a_head_may_say_is_read(tmp_path: Path) -> None:
    for skill in ("style", "security"):
        path = Path(make_places(tmp_path).project(".claude", "skills", skill, "SKILL.md"))
        path.parent.mkdir(parents=True)
        path.write_text("---\ndescription: x\n---\nLook.")
    agent = one(
        tmp_path,
        "name: made", "description: Reviews changes.", "model: opus", "max-turns: 7",
        "tools: Read, Bash(git log *)", "disallowedTools: [Write]", "permissionMode: plan",
        "skills: style security", "background: yes", "isolation: worktree", "effort: high", "color: red",
        "hooks:", "  Stop:", "    - hooks:", "        - type: command", "          command: 'true'",
    )  # fmt: skip
    assert agent is not None
    assert (agent.model, agent.max_turns, agent.tools) == ("opus", 7, ("Read", "Bash(git log:*)"))
    assert (agent.disallowed_tools, agent.permission_mode) == (("Write",), "plan")
    assert (agent.skills, agent.background, agent.isolation) == (("style", "security"), True, "worktree")
    assert (agent.effort, agent.system_prompt, agent.scope) == ("high", "Look closely.", "project")
    assert agent.hooks["Stop"][0].hooks[0].timeout == 600  # that of its format
    assert problems(tmp_path) == []


def test_without_a_name_it_has_that_of_its_file_and_directories_are_searched_through(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    write_agent(Path(places.project(".claude", "agents")) / "team" / "web", "made", "description: Does it.")
    assert load(places).definitions["made"].description == "Does it."


def test_inherit_is_the_model_of_the_session(tmp_path: Path) -> None:
    agent = one(tmp_path, "description: x", "model: inherit")
    assert agent is not None
    assert agent.model == ""


@pytest.mark.parametrize(
    ("lines", "body", "line", "words"),
    [
        (("name: made",), "x", 0, "There is no `description:`"),
        (("description: [",), "x", 2, "`description` is not YAML (expected the node content, but found"),
        (("description: x", "name: a:b"), "x", 3, "Its name has a colon"),
        (("description: x",), "  ", 0, "There are no instructions"),
        (("description: x", "hooks: {PreTolUse: []}"), "x", 3, "there is no event 'PreTolUse'"),
    ],
)
def test_what_cannot_be_offered_is_named(
    tmp_path: Path, lines: tuple[str, ...], body: str, line: int, words: str
) -> None:
    places = make_places(tmp_path)
    path = write_agent(places.project(".robota", "agents"), "made", *lines, body=body)
    write_agent(places.project(".robota", "agents"), "other")
    agents = load(places)
    [problem] = agents.problems
    assert (problem.source, problem.line) == (str(path), line)
    assert words in problem.message
    assert problem.message.endswith("The agent is not offered.")
    assert set(agents.definitions) == {*BUILT_IN_AGENTS, "other"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "tools: Read, Grpe",
            "It names the tool 'Grpe', which has no effect: there is no such tool, but 'Grep'.",
        ),
        (
            "tools: Read, SendMessage",
            "names the tool 'SendMessage', which has no effect: there is no such tool here.",
        ),
        ("disallowedTools: Bash(rm", "the closing parenthesis is missing"),
        ("permissionMode: dontAsk", "`permissionMode` is 'dontAsk', which is not one of plan, default"),
        ("isolation: container", "`isolation` is 'container', which is not one of worktree, none"),
        ("maxTurns: many", "`maxTurns` is 'many', not a number of at least 1"),
        ("memory: everywhere", "`memory` is 'everywhere', which is not one of user, project, local"),
        ("initialPrompt: go", "`initialPrompt` takes no effect: it is for an agent that leads a session"),
        ("mcpServers: [github, 3]", "`mcpServers` has 3, neither a name nor a definition"),
        ("permisionMode: plan", "`permisionMode` is not known; did you mean `permissionMode`?"),
        ("skills: [style]", "It names the skill 'style', which has no effect: there is no such skill here."),
        (
            "hooks: {Setup: [{hooks: [{type: command, command: 'true'}]}]}",
            "hooks.Setup: its hooks never run: there is no such event here.",
        ),
    ],
)
def test_what_takes_no_effect_is_named_and_the_rest_is_used(tmp_path: Path, line: str, words: str) -> None:
    assert one(tmp_path, "description: x", line) is not None
    [problem] = problems(tmp_path)
    assert problem.startswith("made: ")
    assert words in problem


@pytest.mark.parametrize(
    "line", ["tools: Read, MultiEdit, LS, mcp__github__search", "mcpServers: [github]", "tools: '*'"]
)
def test_names_that_other_programs_use_are_no_problem(tmp_path: Path, line: str) -> None:
    assert one(tmp_path, "description: x", line) is not None
    assert problems(tmp_path) == []


def test_two_files_of_one_home_with_the_same_name(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    for file in ("a", "b"):
        write_agent(places.user("agents"), file, "name: same", f"description: From {file}.")
    agents = load(places)
    assert agents.definitions["same"].description == "From a."
    assert [problem.source for problem in agents.problems] == [places.user("agents", "b.md")]


def test_a_project_that_nobody_trusts_has_no_agents(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    for home in (".robota", ".claude", ".agents"):
        write_agent(places.project(home, "agents"), "Explore", "description: A trap.")
    write_agent(places.user("agents"), "mine")
    agents = load(places, trusted=False)
    assert set(agents.definitions) == {*BUILT_IN_AGENTS, "mine"}
    assert agents.definitions["Explore"] is BUILT_IN_AGENTS["Explore"]
    assert agents.problems == ()


def test_a_server_may_leave_out_its_own_home(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    write_agent(places.user("agents"), "mine")
    write_agent(places.project(".claude", "agents"), "ours")
    assert set(load_agents(places, trusted=True, sources=("project",)).definitions) == {
        *BUILT_IN_AGENTS,
        "ours",
    }
    assert set(load_agents(places, trusted=True, sources=()).definitions) == set(BUILT_IN_AGENTS)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    home = Path(places.user("agents"))
    home.mkdir(parents=True)
    (home / "gone.md").symlink_to(home / "nowhere")
    [problem] = load(places).problems
    assert "cannot be read (No such file or directory)" in problem.message


def test_a_thousand_agents_are_read(tmp_path: Path) -> None:
    places = make_places(tmp_path)
    for number in range(1000):
        write_agent(places.project(".claude", "agents"), f"agent-{number}")
    assert len(load(places).definitions) == 1003


def test_patterns_of_claude_files_mean_what_they_mean_there(tmp_path: Path) -> None:
    agent = one(
        tmp_path, "description: x", "disallowedTools: Bash(rm:*), Edit(/docs/**)", "tools: Bash(git:*)"
    )
    assert agent is not None
    assert agent.tools == ("Bash(git:*)",)
    assert agent.disallowed_tools == ("Bash(rm:*)", f"Edit({tmp_path}/project/docs/**)")
