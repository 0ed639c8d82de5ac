"""The session of a subagent: its tools, its rules, its model, its instructions, its log."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.agents.workshop import Workshop, define
from tests.sessions.enforced_agent import Person

from robota.core.messages import ToolMessage
from robota.core.models import shipped_models
from robota.core.permissions.modes import PermissionMode
from robota.core.provider import ModelSettings
from robota.sdk.agents.definition import BUILT_IN_AGENTS, AgentDefinition
from robota.sdk.agents.model_choice import choose_model, expand_shortcut
from robota.sdk.agents.subagent import (
    FORK_WORKER_SUFFIX,
    SUFFIX,
    ProjectInstructions,
    assemble_subagent_prompt,
    create_subagent_logger,
    create_subagent_session,
    select_tools,
)
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.testing import call
from robota.tools.function_tool import FunctionTool

pytestmark = pytest.mark.anyio
NOTHING = {"type": "object", "properties": {}}


def make_tool(name: str) -> FunctionTool:
    async def work() -> str:
        return name

    return FunctionTool(name, name, NOTHING, work)


def names(agent: AgentDefinition, *tools: str) -> list[str]:
    return [tool.name for tool in select_tools(agent, map(make_tool, tools))]


def child_of(shop: Workshop, agent: AgentDefinition, **given: Any) -> Session:
    return create_subagent_session(shop.session, agent, agent_id="a-1", **given)


async def said(child: Session, prompt: str = "go") -> list[str]:
    await child.submit(prompt)
    return [message.content for message in child.messages if isinstance(message, ToolMessage)]


# --- tools ------------------------------------------------------------------------------------------------


def test_section_20_29_tools_are_denied_then_allowed_and_agent_always_goes() -> None:
    every = ("Read", "Write", "Bash", "Agent", "robota_command_agent", "mcp__git__log", "mcp__git__push")
    assert names(define(), *every) == ["Read", "Write", "Bash", "mcp__git__log", "mcp__git__push"]
    assert names(define(tools=("Read", "Bash", "Agent"), disallowed_tools=("Bash",)), *every) == ["Read"]
    assert names(define(tools=("mcp__git",), disallowed_tools=("mcp__git__push",)), *every) == [
        "mcp__git__log"
    ]
    assert names(define(tools=("*",), disallowed_tools=("mcp__*",)), *every) == ["Read", "Write", "Bash"]
    assert names(define(tools=("Agent",)), *every) == []


def test_tools_are_found_by_the_names_that_other_programs_have_for_them() -> None:
    assert names(define(tools=("MultiEdit", "LS", "KillShell")), "Edit", "Glob", "KillBash", "Read") == [
        "Edit", "Glob", "KillBash",
    ]  # fmt: skip


async def test_a_subagent_has_a_todo_list_of_its_own(tmp_path: Path) -> None:
    todos = [{"content": "x", "status": "pending", "activeForm": "x"}]
    shop = Workshop(tmp_path, [call("TodoWrite", todos=todos)], "done")
    child = child_of(shop, define())
    await said(child)
    [own] = [tool for tool in child.agent.tools if tool.name == "TodoWrite"]
    assert own not in shop.session.agent.tools


# --- rights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "own", "written"),
    [("plan", "bypassPermissions", False), ("bypassPermissions", "plan", False), ("acceptEdits", None, True)],
)
async def test_a_permission_mode_never_gives_more_than_the_parent_has(
    tmp_path: Path, parent: PermissionMode, own: PermissionMode | None, written: bool
) -> None:
    write = call("Write", file_path="made.txt", content="x")
    shop = Workshop(tmp_path, [write], "done", rules=PermissionRules(mode=parent))
    await said(child_of(shop, define(permission_mode=own)))
    assert (shop.project / "made.txt").exists() is written


async def test_a_denied_pattern_denies_calls_and_an_allowed_one_asks_about_the_others(tmp_path: Path) -> None:
    calls = [[call("Bash", command="echo 1")], [call("Bash", command="rm x")], [call("Bash", command="date")]]
    shop = Workshop(tmp_path, *calls, "done", rules=PermissionRules(mode="bypassPermissions"))
    agent = define(tools=("Read", "Bash(echo *)", "Bash(rm *)"), disallowed_tools=("Bash(rm *)",))
    results = await said(child_of(shop, agent))
    assert results[0].strip().endswith("1")
    assert "The rule Bash(rm *) denies rm x" in results[1]
    assert "Nobody can be asked here" in results[2]


async def test_what_a_subagent_may_not_do_itself_its_parents_user_is_asked(tmp_path: Path) -> None:
    person = Person(True)
    shop = Workshop(tmp_path, [call("Write", file_path="x", content="x")], "done", handler=person)
    await said(child_of(shop, define()))
    assert [(asked.tool_name, asked.agent_id) for asked in person.asked] == [("Write", "a-1")]


# --- model ------------------------------------------------------------------------------------------------


def test_section_20_31_shortcuts_are_expanded_to_the_newest_model_of_the_kind() -> None:
    table = list(shipped_models().family("claude"))
    for word in ("sonnet", "haiku", "opus"):
        kind = [id for id in table if id.startswith(f"claude-{word}-")]
        assert expand_shortcut(word) == expand_shortcut(word.title()) == kind[0]
    assert expand_shortcut("claude-haiku-4-5") == "claude-haiku-4-5"
    assert expand_shortcut("llama") == "llama"


@pytest.mark.parametrize(
    ("wanted", "parent", "used"),
    [
        ("", "claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("claude-haiku-4-5", "claude-sonnet-4-6", "claude-haiku-4-5"),
        ("haiku", "claude-sonnet-4-6-20260101", expand_shortcut("haiku")),
        ("gpt-5-mini", "gpt-5", "gpt-5-mini"),
        ("my-own-model", "scripted", "my-own-model"),
        ("haiku", "gpt-5", "gpt-5"),
        ("gpt-5", "claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("haiku", "scripted", "scripted"),
        ("haiku", "anthropic/claude-sonnet-4.6", "anthropic/claude-sonnet-4.6"),
    ],
)
async def test_a_model_that_the_provider_does_not_have_is_the_parents(
    tmp_path: Path, wanted: str, parent: str, used: str
) -> None:
    shop = Workshop(tmp_path, "done", model=parent)
    await shop.session.open()
    child = child_of(shop, define(model=wanted))
    await child.submit("go")
    assert shop.provider.requests[0].model == used
    fallback = f"The provider scripted does not have the model {wanted!r}: {parent} is used instead."
    assert choose_model(wanted, shop.session)[1] == ("" if used != parent or not wanted else fallback)
    assert shop.notices == ([] if used != parent or not wanted else [f"Subagent worker: {fallback}"])


async def test_the_task_may_want_another_model_than_the_agent(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, "done", model="claude-sonnet-4-6")
    await child_of(shop, BUILT_IN_AGENTS["Explore"], model="claude-opus-4-6").submit("go")
    assert shop.provider.requests[0].model == "claude-opus-4-6"


async def test_turns_and_effort_of_the_definition_count(tmp_path: Path) -> None:
    read = [call("Read", file_path="x")]
    shop = Workshop(tmp_path, read, read, "done", settings=ModelSettings(temperature=0.5, effort="low"))
    result = await child_of(shop, define(max_turns=2, effort="high")).submit("go")
    assert result.stop_reason == "max_rounds"
    assert shop.provider.requests[0].settings == ModelSettings(temperature=0.5, effort="high")


# --- instructions -----------------------------------------------------------------------------------------


def test_section_20_34_the_prompt_is_body_claude_md_agents_md_suffix() -> None:
    prompt = assemble_subagent_prompt("Body.\n", claude_md="Claude.", agents_md="Agents.")
    assert prompt == f"Body.\n\nClaude.\n\nAgents.\n\n{SUFFIX}"
    assert assemble_subagent_prompt("Body.", agents_md=" ") == f"Body.\n\n{SUFFIX}"


def test_section_20_35_a_fork_worker_answers_in_under_500_words() -> None:
    prompt = assemble_subagent_prompt("Body.", is_fork_worker=True)
    assert prompt == f"Body.\n\n{FORK_WORKER_SUFFIX}"
    assert "under 500 words" in prompt
    for part in ("Scope:", "Result:", "Key files:", "Files changed:", "Issues:"):
        assert part in prompt


async def test_a_subagent_gets_the_projects_instructions_and_its_skills(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, "done")
    given = ProjectInstructions(claude_md="Use tabs.", agents_md="Run make.")
    await child_of(shop, define(), instructions=given, skills="Be kind.").submit("go")
    system = shop.provider.requests[0].messages[0].content
    order = [
        "Work.",
        f"The working directory is {shop.project}.",
        "Be kind.",
        "Use tabs.",
        "Run make.",
        SUFFIX,
    ]
    places = [system.index(part) for part in order]
    assert places == sorted(places)


# --- disk -------------------------------------------------------------------------------------------------


async def test_section_20_30_creating_a_subagent_session_reads_nothing_from_disk(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, "done")
    (shop.project / "CLAUDE.md").write_text("Not for you.")
    child_of(shop, define("first"))  # what it needs of our own modules is loaded with the first
    opened: list[object] = []
    listening = True
    sys.addaudithook(lambda event, args: opened.append(args) if listening and event == "open" else None)
    create_subagent_session(shop.session, define(model="haiku"), agent_id="a-2")
    listening = False
    assert opened == []


async def test_section_20_36_the_log_of_a_subagent_has_its_place_below_its_parents(tmp_path: Path) -> None:
    logger = create_subagent_logger("parent-1", "agent-1", str(tmp_path))
    assert logger.journal.path == f"{tmp_path}/parent-1/subagents/agent-1.jsonl"
    assert os.listdir(tmp_path) == []

    shop = Workshop(tmp_path, "done")
    child = child_of(shop, define())
    await child.submit("go")
    await shop.session.shutdown()
    assert (shop.kept / "s-1" / "subagents" / "a-1.jsonl").exists()
