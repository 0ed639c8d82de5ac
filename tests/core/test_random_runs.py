"""Whatever a model, its tools and the user do: the promises of events and history hold, in random runs."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import ProviderError
from robota.core.events import (
    Event,
    HistoryMutation,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.plugin import Plugin
from robota.core.provider import ReasoningChunk, StopChunk, ToolInputChunk
from robota.core.robota import AgentConfig, Robota, RunLimits
from robota.testing import Delay, Fail, ScriptedProvider, Stall, call, fixed_ports
from robota.tools.function_tool import tool


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def pause(times: int) -> str:
    """Give way a few times."""
    for _ in range(times):
        await asyncio.sleep(0)
    return "x" * 200


@tool
async def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


@tool
async def wait() -> None:
    """Wait for ever."""
    await anyio.sleep_forever()


IDS = st.sampled_from(["call_0", "call_1", "call_0_2", ""])
STEPS = st.one_of(
    st.sampled_from(["Hel", "lo", "", "\n", "\ud83d", "漢"]),
    st.builds(lambda id: call("add", id, a=1, b=2), IDS),
    st.builds(lambda id, times: call("pause", id, times=times), IDS, st.integers(0, 3)),
    st.builds(lambda id: call("fail", id), IDS),
    st.builds(lambda id: ToolCall(id, "nobody", "{}"), IDS),
    st.builds(lambda id: ToolCall(id, "add", '{"a": 1, "b'), IDS),
    st.just(TokenUsage(10, 5)),
    st.just(TokenUsage(1_900, 5)),
    st.just(ReasoningChunk("hm")),
    st.just(ReasoningBlock("hm", "sig")),
    st.just(ToolInputChunk(0, "{", "call_0", "add")),
    st.just(Delay(0)),
    st.sampled_from([StopChunk(reason) for reason in ("end_turn", "max_tokens", "pause", "refusal")]),
    st.just(Fail(ProviderError("no"))),
    st.just("nonsense").map(lambda _: object()),
)
WAITING = st.sampled_from([Stall(), call("wait", "call_9"), ToolCall("call_8", "wait", "{}")])
HOW = st.sampled_from(["abort", "cancel"])
REPLIES = st.lists(st.lists(STEPS, max_size=6), min_size=1, max_size=5)


class Slow(Plugin):
    """Waits in every hook, so that a cancellation can arrive there."""

    async def before_provider_call(self, request: Any) -> None:
        await asyncio.sleep(0)

    async def after_provider_call(self, message: Any) -> None:
        await asyncio.sleep(0)

    async def after_tool_execution(self, call: Any, result: Any) -> None:
        await asyncio.sleep(0)

    async def on_message_added(self, message: Any) -> None:
        await asyncio.sleep(0)


def check(agent: Robota, events: list[Event], provider: ScriptedProvider) -> type[Event]:
    """One run's events and what it left behind; returns how it ended."""
    turn = [event for event in events if isinstance(event, TurnEvent)]
    assert isinstance(turn[0], RunStarted)
    assert isinstance(events[-1], RunCompleted | RunInterrupted | RunFailed)
    assert sum(isinstance(event, RunCompleted | RunInterrupted | RunFailed) for event in events) == 1
    started = sorted(event.call_id for event in turn if isinstance(event, ToolStarted))
    assert started == sorted(event.call_id for event in turn if isinstance(event, ToolEnded))
    assert [event.seq for event in turn] == list(range(turn[0].seq, turn[0].seq + len(turn)))
    told = [event.message for event in events if isinstance(event, HistoryMutation)]
    assert told == agent.messages[len(agent.messages) - len(told) :]
    assert (agent.is_running, provider.open_streams) == (False, 0)
    assert not agent.conversation.has_pending_assistant
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    return type(events[-1])


async def run_and_stop(agent: Robota, provider: ScriptedProvider, stop_at: int, how: str) -> None:
    """One run, stopped when it has told that many events."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if len(events) == stop_at:
            agent.abort() if how == "abort" else task.cancel()

    unsubscribe = agent.events.on(Event, listen)
    task = asyncio.ensure_future(agent.run("go"))
    await asyncio.wait([task])
    unsubscribe()
    ending = check(agent, events, provider)
    if task.cancelled():  # also a run that had nothing to wait for any more ends a cancelled task
        assert how == "cancel"
        return
    result = task.result()
    assert (result.interrupted, result.error is not None) == (ending is RunInterrupted, ending is RunFailed)


async def play(
    replies: list[list[Any]], stop_at: int, how: str, plugins: list[Plugin], limit: int | None
) -> None:
    provider = ScriptedProvider(*replies, repeat=True)
    agent = Robota(
        provider,
        tools=[add, pause, fail, wait],
        plugins=plugins,
        max_rounds=4,
        context_window=2_000,
        limits=RunLimits(max_parallel_tools=limit),
        config=AgentConfig(ports=fixed_ports()),
    )
    for _ in range(2):
        await run_and_stop(agent, provider, stop_at, how)


@settings(deadline=None, max_examples=100)
@given(REPLIES, st.integers(1, 60), HOW, st.booleans(), st.sampled_from([None, 1]))
def test_every_run_keeps_the_promises_however_it_is_stopped(
    replies: list[list[Any]], stop_at: int, how: str, watched: bool, limit: int | None
) -> None:
    asyncio.run(play(replies, stop_at, how, [Slow()] if watched else [], limit))


@settings(deadline=None, max_examples=40)
@given(REPLIES, WAITING, HOW, st.booleans())
def test_a_run_that_waits_for_ever_can_be_stopped(
    replies: list[list[Any]], waiting: Any, how: str, watched: bool
) -> None:
    async def stall() -> None:
        provider = ScriptedProvider(["Hm", waiting], *replies)
        agent = Robota(
            provider,
            tools=[wait],
            plugins=[Slow()] if watched else [],
            context_window=9_999,
        )
        events: list[Event] = []
        agent.events.on(Event, events.append)
        kind = "tool_start" if isinstance(waiting, ToolCall) else "text_delta"
        agent.events.subscribe(lambda event: stop() if event.name == kind else None)
        stop = agent.abort if how == "abort" else lambda: task.cancel()
        task = asyncio.ensure_future(agent.run("go"))
        await asyncio.wait([task])
        assert check(agent, events, provider) is RunInterrupted
        assert task.cancelled() == (how == "cancel")

    asyncio.run(stall())
