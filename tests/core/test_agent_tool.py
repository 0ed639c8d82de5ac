"""An agent as a tool of another one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.sessions.live_session import Studio

from robota import Robota, tool
from robota.core.errors import ConfigurationError
from robota.core.events import SubagentEvent, TextDelta, ToolEnded
from robota.core.messages import ToolMessage, UserMessage
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.usage.budget import Budget, BudgetExceededError
from robota.testing import Fail, ScriptedProvider, call
from robota.tools.builtins.files import write_tool

pytestmark = pytest.mark.anyio

ASK = call("research", task="How many files?")


def researcher(*script: object, **options: object) -> Robota:
    return Robota(ScriptedProvider(*script), model="small", **options)  # type: ignore[arg-type]


async def test_the_answer_of_the_inner_agent_is_the_result() -> None:
    inner = researcher("Three files.", system_message="You count.")
    outer = Robota(
        ScriptedProvider([ASK], "There are three."), tools=[inner.as_tool("research", "Counts files.")]
    )

    result = await outer.run("count")

    assert result.text == "There are three."
    [answer] = [message for message in outer.messages if isinstance(message, ToolMessage)]
    assert answer.content == "Three files."
    assert answer.metadata["rounds"] == 1
    assert inner.messages == []  # each call has a conversation of its own
    [request] = inner.provider.requests  # type: ignore[attr-defined]
    assert [message.content for message in request.messages][-1] == "How many files?"


async def test_two_calls_at_once_do_not_share_a_conversation() -> None:
    inner = researcher("one", "two")
    outer = Robota(
        ScriptedProvider([call("research", task="a"), call("research", task="b")], "done"),
        tools=[inner.as_tool("research", "Looks things up.")],
    )

    await outer.run("both")

    requests = inner.provider.requests  # type: ignore[attr-defined]
    assert sorted(len(request.messages) for request in requests) == [1, 1]


async def test_a_failing_inner_agent_is_a_failed_call() -> None:
    inner = researcher([Fail(ConfigurationError("The model is asleep."))])
    outer = Robota(ScriptedProvider([ASK], "sorry"), tools=[inner.as_tool("research", "Looks things up.")])

    result = await outer.run("go")

    assert result.text == "sorry"
    [answer] = [message for message in outer.messages if isinstance(message, ToolMessage)]
    assert answer.content == "Error: research failed: The model is asleep."


async def test_an_abort_reaches_the_inner_agent() -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "never"

    inner = researcher([call("wait")], "late", tools=[wait])
    outer = Robota(ScriptedProvider([ASK], "late"), tools=[inner.as_tool("research", "Looks things up.")])
    run = asyncio.create_task(outer.run("go"))
    await begun.wait()
    outer.abort()

    assert (await run).interrupted


async def test_in_a_session_rights_usage_and_journal_are_the_sessions(tmp_path: Path) -> None:
    inner = researcher([call("Write", file_path="made.txt", content="x")], "wrote", tools=[write_tool()])
    studio = Studio(
        tmp_path,
        [ASK],
        "done",
        tools=[inner.as_tool("research", "Writes.")],
        rules=PermissionRules(allow=("research",), deny=("Write",)),
    )

    await studio.session.run("go")

    ended = [event.inner for event in studio.told(SubagentEvent) if isinstance(event.inner, ToolEnded)]
    assert [(event.tool_name, event.outcome) for event in ended] == [("Write", "denied")]
    assert any(isinstance(event.inner, TextDelta) for event in studio.told(SubagentEvent))
    report = studio.session.usage.book.report()
    assert report.total.requests == 4
    [agent] = report.agents
    assert (agent.agent_id.startswith("research-"), agent.requests) == (True, 2)


async def test_in_a_session_the_inner_agent_spends_its_budget(tmp_path: Path) -> None:
    inner = researcher("one", "two")
    studio = Studio(
        tmp_path,
        [ASK],
        "done",
        tools=[inner.as_tool("research", "Looks things up.")],
        rules=PermissionRules(allow=("research",)),
        budget=Budget(max_requests=2),
    )

    result = await studio.session.submit("go")

    assert isinstance(result.error, BudgetExceededError)
    with pytest.raises(BudgetExceededError):
        result.raise_for_error()


def test_a_tool_without_a_description_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a description"):
        researcher().as_tool("research", "")


async def test_an_agent_can_begin_with_messages() -> None:
    agent = researcher("Ada.", messages=[UserMessage(content="I am Ada.")])

    assert (await agent.run("Who am I?")).text == "Ada."
    [request] = agent.provider.requests  # type: ignore[attr-defined]
    assert [message.content for message in request.messages] == ["I am Ada.", "Who am I?"]
