from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.events import (
    Event,
    RunInterrupted,
    TextDelta,
    ToolEnded,
    ToolStarted,
)
from robota.core.messages import AssistantMessage, ToolMessage
from robota.core.robota import Robota, RunLimits
from robota.testing import ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def wait() -> None:
    """Wait for ever."""
    await anyio.sleep_forever()


def agent_for(*replies: Any, **options: Any) -> tuple[Robota, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    return Robota(provider, tools=[add, wait], **options), provider


def abort_at(agent: Robota, text: str) -> None:
    agent.events.on(TextDelta, lambda event: agent.abort() if event.text == text else None)


def last_answer(agent: Robota) -> AssistantMessage:
    return next(m for m in reversed(agent.messages) if isinstance(m, AssistantMessage))


async def test_a_call_streamed_just_before_the_abort_is_answered() -> None:
    agent, _ = agent_for([call("add", a=1, b=2), "Now", Stall()])
    started: list[Event] = []
    agent.events.on(ToolStarted, started.append)
    abort_at(agent, "Now")
    result = await agent.run("hi")
    assert [m.content for m in agent.messages[2:]] == ["Error: Execution interrupted by user"]
    assert (started, result.tools_executed) == ([], ())
    assert_valid_for_a_request(agent.conversation.messages_for_api())


@pytest.mark.parametrize("limit", [None, 1])
async def test_finished_tools_keep_their_results_and_the_others_are_marked(
    limit: int | None,
) -> None:  # §20.60
    agent, provider = agent_for(
        [call("add", "c0", a=1, b=2), call("wait", "c1"), call("wait", "c2")],
        "Fine.",
        limits=RunLimits(max_parallel_tools=limit),
    )
    ended: list[ToolEnded] = []

    def stop(event: ToolEnded) -> None:
        ended.append(event)
        if event.tool_name == "add":
            agent.abort()

    agent.events.on(ToolEnded, stop)
    result = await agent.run("hi")
    assert (result.interrupted, result.tools_executed, result.stop_reason) == (True, ("add",), "aborted")
    interrupted = "Error: Execution interrupted by user"
    assert [m.content for m in agent.messages if isinstance(m, ToolMessage)] == [
        "3",
        interrupted,
        interrupted,
    ]
    assert {event.error_code for event in ended[1:]} <= {"interrupted", "not_started"}
    assert (await agent.run("again")).text == "Fine."
    assert_valid_for_a_request(provider.requests[1].messages)


async def test_a_tools_cleanup_runs_before_the_run_ends() -> None:
    cleaned: list[str] = []

    @tool
    async def careful(last: bool) -> None:
        """Clean up."""
        try:
            if last:
                agent.abort()
            await anyio.sleep_forever()
        finally:
            cleaned.append("done")

    agent = Robota(
        ScriptedProvider([call("careful", "a", last=False), call("careful", "b", last=True)]), tools=[careful]
    )
    agent.events.on(RunInterrupted, lambda _: cleaned.append("told"))
    await agent.run("hi")
    assert cleaned == ["done", "done", "told"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("times", [1, 2])
async def test_a_tool_may_await_in_its_cleanup(count: int, times: int) -> None:
    cleaned: list[int] = []

    @tool
    async def careful() -> None:
        """Clean up over several turns of the loop."""
        try:
            await anyio.sleep_forever()
        finally:
            for step in range(3):
                await asyncio.sleep(0)
                if step < times - 1:
                    agent.abort()
            cleaned.append(count)

    agent = Robota(
        ScriptedProvider([call("careful", f"c{n}") for n in range(count)], "Fine."), tools=[careful]
    )
    started: list[Event] = []

    def stop_when_all_run(event: ToolStarted) -> None:
        started.append(event)
        if len(started) == count:
            agent.abort()

    agent.events.on(ToolStarted, stop_when_all_run)
    result = await agent.run("hi")
    assert (result.interrupted, cleaned) == (True, [count] * count)
    assert (await agent.run("again")).text == "Fine."


@pytest.mark.parametrize("count", [1, 2])
async def test_an_abort_and_a_cancellation_from_outside_while_tools_run(count: int) -> None:
    agent, _ = agent_for([call("wait", f"c{n}") for n in range(count)], "Fine.")

    def stop_both(event: ToolStarted) -> None:
        stop()
        agent.abort()
        task.cancel()

    stop = agent.events.on(ToolStarted, stop_both)
    task = asyncio.ensure_future(agent.run("hi"))
    await asyncio.wait([task])
    assert task.cancelled()
    assert task.cancelling() == 1
    assert not agent.is_running
    assert_valid_for_a_request(agent.conversation.messages_for_api())


@pytest.mark.parametrize("count", [1, 2])
async def test_a_tool_that_swallows_the_abort_does_not_keep_the_run_alive(count: int) -> None:
    @tool
    async def stubborn() -> str:
        """Carry on as if nothing had happened."""
        with suppress(asyncio.CancelledError):
            agent.abort()
            await anyio.sleep_forever()
        return "survived"

    provider = ScriptedProvider([call("stubborn", f"c{n}") for n in range(count)], "never asked")
    agent = Robota(provider, tools=[stubborn])
    result = await agent.run("hi")
    assert (result.interrupted, len(provider.requests)) == (True, 1)
    assert agent.messages[2].content == "survived"
    assert_valid_for_a_request(agent.conversation.messages_for_api())


async def test_nothing_of_an_abort_remains_in_the_task_that_ran_the_agent() -> None:
    agent, _ = agent_for([call("wait")], ["Hel", Stall()], "Fine.")
    agent.events.on(ToolStarted, lambda _: agent.abort())
    abort_at(agent, "Hel")
    task = asyncio.current_task()
    assert task is not None
    for _ in range(2):
        assert (await agent.run("hi")).interrupted
        assert task.cancelling() == 0
    await asyncio.sleep(0)
    assert (await agent.run("again")).text == "Fine."


async def test_a_tool_that_fails_while_it_is_stopped_does_not_hide_the_abort() -> None:
    @tool
    async def clumsy() -> None:
        """Fail when stopped."""
        try:
            agent.abort()
            await anyio.sleep_forever()
        finally:
            raise ValueError("cleanup failed")

    agent = Robota(ScriptedProvider([call("clumsy", "a"), call("clumsy", "b")]), tools=[clumsy])
    result = await agent.run("hi")
    assert (result.interrupted, result.error) == (True, None)
    assert_valid_for_a_request(agent.conversation.messages_for_api())


@pytest.mark.parametrize("limit", [None, 1])
async def test_no_tool_runs_after_a_cancellation_from_outside(limit: int | None) -> None:
    ran: list[str] = []

    @tool
    async def note() -> None:
        """Note that it ran."""
        ran.append("note")

    @tool
    async def stubborn() -> None:
        """Turn a cancellation into a failure."""
        try:
            task.cancel()
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            raise RuntimeError("stopped") from None

    agent = Robota(
        ScriptedProvider([call("stubborn", "a"), call("note", "b")]),
        tools=[stubborn, note],
        limits=RunLimits(max_parallel_tools=limit),
    )
    ended: list[tuple[str, str | None]] = []
    agent.events.on(ToolEnded, lambda event: ended.append((event.tool_name, event.error_code)))
    task = asyncio.ensure_future(agent.run("hi"))
    await asyncio.wait([task])
    assert task.cancelled()
    assert ran == (["note"] if limit is None else [])
    assert sorted(ended) == [("note", None if limit is None else "not_started"), ("stubborn", None)]
    assert_valid_for_a_request(agent.conversation.messages_for_api())


async def test_an_abort_stops_an_agent_that_runs_as_a_tool_and_only_the_outer_reports_it() -> None:
    inner, inner_provider = agent_for(["Thinking", Stall()])

    @tool
    async def ask_helper() -> str:
        """Ask another agent."""
        return (await inner.run("help")).text

    outer = Robota(ScriptedProvider([call("ask_helper")]), tools=[ask_helper])
    inner.events.on(TextDelta, lambda _: outer.abort())
    assert (await outer.run("hi")).interrupted
    assert (inner_provider.open_streams, inner.is_running) == (0, False)
    assert last_answer(inner).content == "Thinking"
    assert_valid_for_a_request(outer.conversation.messages_for_api())


async def fail_soon(kind: type[Exception] = ValueError) -> None:
    await asyncio.sleep(0)
    raise kind("no such city")


@tool
async def look_up_both() -> None:
    """Look two things up at the same time; one lookup fails."""
    async with asyncio.TaskGroup() as group:
        group.create_task(fail_soon())
        group.create_task(asyncio.sleep(0))


@tool
async def look_up_patiently() -> str:
    """The same, but the failure is dealt with."""
    try:
        await look_up_both.function()
    except ExceptionGroup as group:
        return f"{len(group.exceptions)} failed"
    return "both"


@tool
async def give_up() -> None:
    """Raise what only a cancelled task should raise."""
    raise asyncio.CancelledError


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("count", [1, 3])
async def test_a_task_group_inside_a_tool_that_fails_is_a_result_and_the_run_goes_on(
    limit: int | None, count: int
) -> None:
    agent = Robota(
        ScriptedProvider(
            [call("look_up_both", f"a{n}") for n in range(count)],
            [call("look_up_patiently", f"b{n}") for n in range(count)],
            [call("give_up", f"c{n}") for n in range(count)],
            "Fine.",
        ),
        tools=[look_up_both, look_up_patiently, give_up],
        limits=RunLimits(max_parallel_tools=limit),
    )
    result = await agent.run("hi")
    assert (result.text, result.interrupted, result.error) == ("Fine.", False, None)
    told = [m.content for m in agent.messages if isinstance(m, ToolMessage)]
    assert all("ValueError: no such city" in text for text in told[:count])
    assert told[count : 2 * count] == ["1 failed"] * count
    assert told[2 * count :] == ["Error: give_up was cancelled from within."] * count


async def test_a_task_group_that_fails_does_not_hide_a_cancellation_from_outside() -> None:
    @tool
    async def stubborn() -> str:
        """Deal with a failure, be cancelled, and carry on."""
        await look_up_patiently.function()
        with suppress(asyncio.CancelledError):
            task.cancel()
            await anyio.sleep_forever()
        return "survived"

    provider = ScriptedProvider([call("stubborn")], "never asked")
    agent = Robota(provider, tools=[stubborn])
    task = asyncio.ensure_future(agent.run("hi"))
    await asyncio.wait([task])
    assert (task.cancelled(), len(provider.requests)) == (True, 1)
    assert_valid_for_a_request(agent.conversation.messages_for_api())
