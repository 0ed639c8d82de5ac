from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

import anyio
import pytest

from robota.core.errors import AgentBusyError
from robota.core.events import (
    AssistantMessageCommitted,
    Event,
    RunCompleted,
    RunInterrupted,
    TextDelta,
    TurnEvent,
)
from robota.core.messages import AssistantMessage
from robota.core.provider import ChatRequest
from robota.core.robota import Robota
from robota.testing import Fail, ScriptedProvider, Stall, call
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


async def test_an_abort_keeps_the_text_that_arrived() -> None:  # §20.105
    agent, provider = agent_for(["Hel", "lo", Stall()])
    abort_at(agent, "lo")
    result = await agent.run("hi")
    assert (result.text, result.interrupted, result.error, result.success) == ("Hello", True, None, False)
    assert result.stop_reason == "aborted"
    answer = last_answer(agent)
    assert (answer.content, answer.state) == ("Hello", "interrupted")
    assert answer.metadata["stopReason"] == "aborted"
    assert provider.open_streams == 0


async def test_run_never_raises_on_abort_and_the_session_stays_usable() -> None:  # §20.59
    agent, provider = agent_for(["Hel", Stall()], "Welcome back.")
    abort_at(agent, "Hel")
    assert (await agent.run("hi")).interrupted
    assert not agent.is_running
    assert (await agent.run("again")).text == "Welcome back."
    sent = provider.requests[1].messages
    assert [m.role for m in sent] == ["user", "assistant", "user"]
    assert sent[1].content == "Hel\n\n[This response was interrupted by the user]"


async def test_a_stream_that_waits_for_its_next_chunk_is_ended_and_closed() -> None:  # §20.74
    agent, provider = agent_for(["Hel", Stall()])
    async with asyncio.TaskGroup() as tasks, agent.events.open(TextDelta) as deltas:
        running = tasks.create_task(agent.run("hi"))
        await anext(deltas)
        assert provider.open_streams == 1
        agent.abort()
    assert running.result().interrupted
    assert provider.open_streams == 0


async def test_an_abort_is_noticed_between_chunks_that_come_without_a_wait() -> None:  # §20.74
    agent, _ = agent_for([*"abcdefgh"])
    abort_at(agent, "c")
    assert (await agent.run("hi")).text == "abc"


async def test_an_abort_before_the_first_word_commits_an_empty_answer() -> None:  # §20.61
    class Silent:
        name = "silent"

        async def stream(self, request: ChatRequest) -> Any:
            agent.abort()
            await anyio.sleep_forever()
            yield

    agent = Robota(Silent())
    assert (await agent.run("hi")).interrupted
    answer = last_answer(agent)
    assert (answer.content, answer.state) == ("", "interrupted")


# --- when and from where -------------------------------------------------------------------------------


async def test_an_abort_from_another_thread() -> None:
    agent, _ = agent_for(["Hel", Stall()])
    threads: list[threading.Thread] = []

    def stop_from_elsewhere(event: TextDelta) -> None:
        threads.append(threading.Thread(target=agent.abort))
        threads[0].start()

    agent.events.on(TextDelta, stop_from_elsewhere)
    result = await agent.run("hi")
    threads[0].join()
    assert (result.text, result.interrupted) == ("Hel", True)


@pytest.fixture
def on_signal() -> Any:
    """Give a handler to SIGUSR1 for one test."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handler: signal.signal(signal.SIGUSR1, lambda *_: handler())
    signal.signal(signal.SIGUSR1, before)


async def test_an_abort_from_a_signal_handler_in_the_middle_of_the_loop(on_signal: Any) -> None:
    agent, _ = agent_for(["Hel", "lo", Stall()])
    on_signal(agent.abort)
    agent.events.on(TextDelta, lambda _: signal.raise_signal(signal.SIGUSR1))
    result = await agent.run("hi")
    assert (result.text, result.interrupted) == ("Hel", True)


async def test_an_abort_from_a_signal_handler_while_the_loop_sleeps(on_signal: Any) -> None:
    agent, _ = agent_for(["Hel", Stall()])
    on_signal(agent.abort)
    senders: list[threading.Thread] = []

    def send_later(event: TextDelta) -> None:
        senders.append(threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1)))
        asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(senders[0].start))

    agent.events.on(TextDelta, send_later)
    assert (await agent.run("hi")).interrupted
    senders[0].join()


async def test_aborting_twice_is_harmless() -> None:
    agent, _ = agent_for(["Hel", Stall()], "Fine.")

    def twice(event: TextDelta) -> None:
        agent.abort()
        agent.abort()

    stop = agent.events.on(TextDelta, twice)
    endings: list[Event] = []
    agent.events.on(RunInterrupted, endings.append)
    await agent.run("hi")
    stop()
    assert len(endings) == 1
    assert (await agent.run("again")).text == "Fine."


async def test_an_abort_when_nothing_runs_is_harmless() -> None:
    agent, _ = agent_for("One.", "Two.")
    agent.abort()
    assert (await agent.run("hi")).text == "One."
    agent.abort()
    assert (await agent.run("again")).text == "Two."


@pytest.mark.parametrize("kind", [AssistantMessageCommitted, RunCompleted])
async def test_an_abort_after_the_last_wait_changes_nothing(kind: type[Event]) -> None:
    agent, _ = agent_for("Done.", "Again.")
    stop = agent.events.on(kind, lambda _: agent.abort())
    result = await agent.run("hi")
    stop()
    assert (result.text, result.interrupted, last_answer(agent).state) == ("Done.", False, "complete")
    assert (await agent.run("again")).text == "Again."


async def test_an_abort_at_the_start_keeps_the_prompt_and_asks_no_model() -> None:
    agent, provider = agent_for("never", system_message="Be brief.")
    agent.events.subscribe(lambda event: agent.abort() if event.name == "run_start" else None)
    assert (await agent.run("hi")).interrupted
    assert [m.content for m in agent.messages] == ["Be brief.", "hi"]
    assert provider.requests == []


async def test_an_abort_after_a_failure_still_reports_the_failure() -> None:
    error = OSError("cut")
    agent, _ = agent_for(["Hel", Fail(error)])
    agent.events.on(AssistantMessageCommitted, lambda _: agent.abort())
    result = await agent.run("hi")
    assert (result.interrupted, result.error is not None) == (False, True)


async def test_an_abort_during_the_forced_summary_keeps_what_arrived() -> None:
    agent, _ = agent_for([call("add", a=1, b=2)], ["So f", "ar", Stall()], max_rounds=1)
    abort_at(agent, "ar")
    result = await agent.run("hi")
    assert (result.text, result.interrupted) == ("So far", True)
    assert last_answer(agent).state == "interrupted"


# --- one run at a time ------------------------------------------------------------------------------------


async def test_a_second_run_at_the_same_time_is_refused_at_once() -> None:
    agent, provider = agent_for(["Hel", Stall()], "Next.")
    events: list[TurnEvent] = []
    agent.events.subscribe(events.append)
    async with asyncio.TaskGroup() as tasks, agent.events.open(TextDelta) as deltas:
        first = tasks.create_task(agent.run("one"))
        await anext(deltas)
        with pytest.raises(AgentBusyError, match=r"running already: wait for that run, abort\(\) it"):
            await agent.run("two")
        with pytest.raises(AgentBusyError):
            agent.clear()
        with pytest.raises(AgentBusyError):
            async for _ in agent.stream("three"):
                pass
        agent.abort()
    assert first.result().text == "Hel"
    assert [m.content for m in agent.messages] == ["one", "Hel"]
    assert sum(event.name == "run_start" for event in events) == 1
    assert len(provider.requests) == 1
    assert (await agent.run("two")).text == "Next."


async def test_closing_an_agent_ends_its_run_first() -> None:
    agent, provider = agent_for(["Hel", Stall()])
    async with asyncio.TaskGroup() as tasks, agent.events.open(TextDelta) as deltas:
        running = tasks.create_task(agent.run("one"))
        await anext(deltas)
        await agent.aclose()
        assert (agent.is_running, provider.open_streams) == (False, 0)
    assert running.result().interrupted
