"""The `Agent` tool in a session: results, errors, questions, limits, hooks and events."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.agents.workshop import Workshop, define, start
from tests.sessions.enforced_agent import Person
from tests.sessions.live_session import heard, listen_to, run

from robota.core.errors import ModelNotAvailableError
from robota.core.event_names import OwnerPathSegment, owner_path
from robota.core.events import RunCompleted, SubagentEvent, ToolEnded
from robota.core.hooks import parse_hooks
from robota.core.messages import TokenUsage, ToolMessage
from robota.core.provider import TextChunk
from robota.sdk.agents.runner import MAX_PARALLEL, SubagentOptions
from robota.sdk.agents.tool import LISTING, list_agents
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.usage.budget import Budget
from robota.testing import Fail, Stall, call

pytestmark = pytest.mark.anyio
FREE = PermissionRules(mode="bypassPermissions")


async def test_a_subagent_works_and_its_report_is_the_result(tmp_path: Path) -> None:
    shop = Workshop(
        tmp_path, [start("look", subagent_type="worker")], "I saw it.", "Done.", agents=[define()], rules=FREE
    )
    result = await shop.session.submit("hi")
    assert result.text == "Done."
    ended = shop.result
    assert (ended.content, ended.outcome) == ("I saw it.", "success")
    agent_id = ended.metadata["agentId"]
    assert agent_id.startswith("worker-")
    assert (ended.metadata["success"], ended.metadata["output"]) == (True, "I saw it.")
    path = shop.kept / "s-1" / "subagents" / f"{agent_id}.jsonl"
    assert ended.metadata["transcriptPath"] == str(path)
    assert b"I saw it." in path.read_bytes()
    asked = shop.provider.requests[1]
    assert [message.content for message in asked.messages][1] == "look"
    assert "Agent" not in [tool.name for tool in asked.tools]


async def test_without_a_type_the_general_agent_works(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "ok", "done", rules=FREE)
    await shop.session.submit("hi")
    assert shop.result.metadata["agentId"].startswith("general-purpose-")


async def test_an_unknown_type_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start(subagent_type="Explorer")], "done")
    await shop.session.submit("hi")
    assert shop.result.error == "Unknown agent type: Explorer. There are general-purpose, Explore, Plan."
    assert shop.result.metadata == {"success": False}


async def test_a_failing_subagent_is_an_error_of_the_call_and_the_parent_goes_on(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], ["Half", Fail(ValueError("broken"))], "done", rules=FREE)
    assert (await shop.session.submit("hi")).text == "done"
    assert shop.result.error is not None
    assert shop.result.error.startswith("Sub-agent error: ")
    assert "broken" in shop.result.error
    assert shop.result.metadata["success"] is False


async def test_a_model_that_turns_out_to_be_missing_is_replaced_by_the_parents(tmp_path: Path) -> None:
    missing: Any = [Fail(ModelNotAvailableError("special", "scripted"))]
    shop = Workshop(
        tmp_path, [start(subagent_type="worker")], missing, "one", [start(subagent_type="worker")], "two",
        "done", agents=[define(model="special")], rules=FREE,
    )  # fmt: skip
    await shop.session.submit("hi")
    assert [request.model for request in shop.provider.requests] == [
        "scripted", "special", "scripted", "scripted", "scripted", "scripted",
    ]  # fmt: skip
    assert [ended.content for ended in shop.told(ToolEnded)] == ["one", "two"]
    [notice] = shop.notices
    assert "does not have the model 'special': scripted is used instead" in notice


async def test_that_a_model_is_replaced_is_told_once(tmp_path: Path) -> None:
    explore = [start(subagent_type="Explore")]
    shop = Workshop(tmp_path, explore, "one", explore, "two", "done", rules=FREE)
    await shop.session.submit("hi")
    assert [request.model for request in shop.provider.requests] == ["scripted"] * 5
    assert shop.notices == [
        "Subagent Explore: The provider scripted does not have the model 'claude-haiku-4-5': "
        "scripted is used instead."
    ]


# --- permission -------------------------------------------------------------------------------------------


async def test_by_default_a_subagent_is_asked_about_and_its_cost_is_shown(tmp_path: Path) -> None:
    person = Person(True)
    shop = Workshop(
        tmp_path, [start(subagent_type="Explore")], ["1", TokenUsage(100_000, 2_000)],
        [start(subagent_type="Explore")], "2", "done", handler=person, model="claude-sonnet-4-6",
    )  # fmt: skip
    await shop.session.submit("hi")
    first, second = person.asked
    assert first.reason == (
        "Subagent Explore would work with claude-haiku-4-5 ($1 and $5 per million tokens in and out). "
        "No subagent has worked in this session yet."
    )
    assert second.reason.endswith("Subagents used so far in this session: 1, with 102,000 tokens, $0.11.")
    assert first.rule == "Agent(Explore)"


async def test_an_answer_for_the_session_covers_that_agent(tmp_path: Path) -> None:
    person = Person("allow-session")
    explore, plan = start(subagent_type="Explore"), start(subagent_type="Plan")
    shop = Workshop(tmp_path, [explore], "1", [explore], "2", [plan], "3", "done", handler=person)
    await shop.session.submit("hi")
    assert [asked.tool_input["subagent_type"] for asked in person.asked] == ["Explore", "Plan"]


@pytest.mark.parametrize("given", [{}, {"subagent_type": ""}])
async def test_rules_about_the_general_agent_cover_a_call_that_names_none(
    tmp_path: Path, given: dict[str, str]
) -> None:
    person = Person("allow-session")
    shop = Workshop(tmp_path, [start(**given)], "1", [start(**given)], "2", "done", handler=person)
    await shop.session.submit("hi")
    assert [asked.rule for asked in person.asked] == ["Agent(general-purpose)"]

    rules = PermissionRules(mode="bypassPermissions", deny=("Agent(general-purpose)",))
    shop = Workshop(tmp_path, [start(**given)], "done", rules=rules, session_id="s-2")
    await shop.session.submit("hi")
    assert shop.result.outcome == "denied"


async def test_with_nobody_to_ask_no_subagent_starts(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "done")
    await shop.session.submit("hi")
    assert shop.result.outcome == "denied"
    assert len(shop.provider.requests) == 2


async def test_the_policy_auto_asks_nobody(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "ok", "done", subagents={"options": SubagentOptions(policy="auto")})
    await shop.session.submit("hi")
    assert shop.result.content == "ok"


@pytest.mark.parametrize("rule", ["Agent(Explore)", "Task(Explore)", "Agent", "Task"])
async def test_a_deny_rule_wins_over_the_policy(tmp_path: Path, rule: str) -> None:
    rules = PermissionRules(mode="bypassPermissions", deny=(rule,))
    shop = Workshop(
        tmp_path,
        [start(subagent_type="Explore")],
        "done",
        rules=rules,
        subagents={"options": SubagentOptions(policy="auto")},
    )
    await shop.session.submit("hi")
    assert shop.result.outcome == "denied"


@pytest.mark.parametrize("rule", ["Agent(Explore)", "Task(Explore)"])
async def test_an_allow_rule_asks_nobody(tmp_path: Path, rule: str) -> None:
    shop = Workshop(
        tmp_path, [start(subagent_type="Explore")], "ok", "done", rules=PermissionRules(allow=(rule,))
    )
    await shop.session.submit("hi")
    assert shop.result.content == "ok"


async def test_in_plan_mode_only_an_agent_that_changes_nothing_may_work(tmp_path: Path) -> None:
    rules = PermissionRules(mode="plan")
    write = [call("Write", file_path="made.txt", content="x")]
    shop = Workshop(
        tmp_path, [start(subagent_type="Plan"), start(subagent_type="worker")], write, "A plan.", "done",
        agents=[define()], rules=rules, subagents={"options": SubagentOptions(policy="auto")},
    )  # fmt: skip
    await shop.session.submit("hi")
    outcomes = {ended.arguments["subagent_type"]: ended.outcome for ended in shop.told(ToolEnded)}
    assert outcomes == {"Plan": "success", "worker": "denied"}
    assert not (shop.project / "made.txt").exists()


# --- many -------------------------------------------------------------------------------------------------


class Counting:
    """Answers the parent's first request with many calls, and counts the subagents that are asked at once."""

    name = "counting"

    def __init__(self, calls: int) -> None:
        self._calls, self._at_once, self.most = calls, 0, 0
        self._full = asyncio.Event()

    async def stream(self, request: Any) -> Any:
        if request.messages[-1].content == "hi":
            for number in range(self._calls):
                yield call("Agent", f"c-{number}", prompt=f"task {number}")
            return
        if isinstance(request.messages[-1], ToolMessage):
            yield "done"
            return
        self._at_once += 1
        self.most = max(self.most, self._at_once)
        if self._at_once == MAX_PARALLEL:
            self._full.set()
        await self._full.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        self._at_once -= 1
        yield TextChunk(f"did {request.messages[-1].content}")


async def test_subagents_work_at_the_same_time_up_to_a_limit(tmp_path: Path) -> None:
    provider = Counting(7)
    shop = Workshop(tmp_path, provider=provider, rules=FREE)
    await shop.session.submit("hi")
    assert provider.most == MAX_PARALLEL
    results = [message.content for message in shop.session.messages if isinstance(message, ToolMessage)]
    assert results == [f"did task {number}" for number in range(7)]


async def test_an_abort_ends_a_subagent_with_its_parent(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], ["Hel", Stall()], rules=FREE)
    shop.session.events.on(SubagentEvent, lambda event: shop.session.abort())
    result = await shop.session.submit("hi")
    assert result.interrupted
    assert shop.provider.open_streams == 0
    assert not shop.session.resources.children


async def test_subagents_spend_the_budget_of_the_session(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "one", rules=FREE, budget=Budget(max_requests=2))
    result = await shop.session.submit("hi")
    assert shop.result.content == "one"
    assert result.error is not None
    assert result.error.code == "BUDGET_EXCEEDED"


# --- what others hear -------------------------------------------------------------------------------------


async def test_events_of_a_subagent_come_with_the_path_to_their_owner(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [start()], "report", "done", rules=FREE)
    await shop.session.submit("hi")
    [inner] = shop.inner(RunCompleted)
    assert inner.text == "report"
    agent_id = shop.result.metadata["agentId"]
    told = next(event for event in shop.told(SubagentEvent) if event.inner is inner)
    segments = [OwnerPathSegment("agent", "root"), OwnerPathSegment("agent", agent_id)]
    assert owner_path(told, "root") == (*segments, OwnerPathSegment("execution", inner.execution_id))


async def test_hooks_hear_when_a_subagent_starts_and_stops(tmp_path: Path) -> None:
    hooks = listen_to(tmp_path, "SubagentStart", "SubagentStop", "SessionStart", "Stop", "PreToolUse")
    hooks["SubagentStop"][0]["matcher"] = "worker"
    shop = Workshop(
        tmp_path, [start(subagent_type="worker")], [call("Read", file_path="x")], "report", "done",
        agents=[define()], rules=FREE, hooks=hooks,
    )  # fmt: skip
    await shop.session.submit("hi")
    told = {each["hook_event_name"]: each for each in shop.fired if each.get("agent_id")}
    who = {"agent_id": shop.result.metadata["agentId"], "agent_type": "worker"}
    assert list(told) == ["SubagentStart", "PreToolUse", "SubagentStop"]
    for each in told.values():
        assert who.items() <= each.items()
    stop = told["SubagentStop"]
    assert stop["agent_transcript_path"] == shop.result.metadata["transcriptPath"]
    assert (stop["last_assistant_message"], stop["stop_hook_active"]) == ("report", False)
    assert stop["transcript_path"] == str(shop.path)


async def test_a_start_hook_may_tell_the_subagent_something(tmp_path: Path) -> None:
    answer = (
        '{"hookSpecificOutput": {"hookEventName": "SubagentStart", "additionalContext": "Mind the gap."}}'
    )
    hooks = {"SubagentStart": [run(f"echo '{answer}'")]}
    shop = Workshop(tmp_path, [start("go")], "ok", "done", rules=FREE, hooks=hooks)
    await shop.session.submit("hi")
    prompt = shop.provider.requests[1].messages[-1].content
    assert "Mind the gap." in prompt
    assert prompt.endswith("go")


async def test_hooks_of_an_agent_live_with_it_and_stop_means_its_own_end(tmp_path: Path) -> None:
    own = parse_hooks({"PreToolUse": [run("echo no >&2; exit 2")], "Stop": [heard(tmp_path)]})
    read = [call("Read", file_path="x.txt")]
    shop = Workshop(
        tmp_path, [start(subagent_type="worker")], read, "report", read, "done",
        agents=[define(hooks=own)], rules=FREE, hooks=listen_to(tmp_path, "SubagentStop"),
    )  # fmt: skip
    (tmp_path / "project" / "x.txt").write_text("content")
    await shop.session.submit("hi")
    child_read, agent_call, own_read = shop.inner(ToolEnded)[0], *shop.told(ToolEnded)
    assert (child_read.outcome, child_read.error) == ("denied", "Blocked by hook: no")
    assert agent_call.content == "report"
    assert "content" in own_read.content
    assert [each["hook_event_name"] for each in shop.fired] == ["SubagentStop"]  # the same one runs once


async def test_skills_of_an_agent_are_read_into_its_instructions(tmp_path: Path) -> None:
    shop = Workshop(
        tmp_path, [start(subagent_type="worker")], "ok", "done", agents=[define(skills=("style",))],
        rules=FREE, subagents={"read_skills": lambda agent: f"Skills: {agent.skills[0]}."},
    )  # fmt: skip
    await shop.session.submit("hi")
    assert "Skills: style." in shop.provider.requests[1].messages[0].content


# --- what the model is shown ------------------------------------------------------------------------------


def test_the_model_is_shown_every_agent(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, agents=[define(tools=("Read", "Grep"))])
    [tool] = [tool for tool in shop.session.agent.tools if tool.name == "Agent"]
    assert "- worker: Does worker. (Tools: Read, Grep)" in tool.description
    assert "(Tools: all but Write, Edit)" in tool.description


def test_a_thousand_agents_do_not_fill_the_window() -> None:
    text = list_agents(define(f"agent-{number}", description="x" * 2_000) for number in range(1000))
    assert len(text) < LISTING + 12_000
    assert "agent-999" in text
