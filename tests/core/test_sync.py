from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import ConfigurationError
from robota.core.events import RunCompleted, TextDelta
from robota.core.robota import Robota
from robota.testing import Delay, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool


def test_an_agent_runs_without_a_loop_again_and_again() -> None:
    agent = Robota(ScriptedProvider("One.", [Delay(0), "Two."], "Three."))
    assert [agent.run_sync(f"{n}").text for n in range(3)] == ["One.", "Two.", "Three."]
    assert len(agent.messages) == 6


def test_all_sync_runs_share_one_loop_in_one_thread() -> None:
    seen: set[tuple[int, int]] = set()
    for _ in range(3):
        agent = Robota(ScriptedProvider("Hi"))
        agent.events.on(
            RunCompleted, lambda _: seen.add((threading.get_ident(), id(asyncio.get_running_loop())))
        )
        agent.run_sync("go")
    assert len(seen) == 1
    assert threading.get_ident() not in {thread for thread, _ in seen}


def test_options_are_those_of_run() -> None:
    agent = Robota(ScriptedProvider("[1, 2]"))
    assert agent.run_sync("go", output=list[int]).output == [1, 2]


@pytest.mark.anyio
async def test_a_notebook_whose_own_loop_is_busy_can_use_it() -> None:
    agent = Robota(ScriptedProvider("One.", "Two."))
    assert agent.run_sync("here").text == "One."
    assert (await agent.run("and here")).text == "Two."


@pytest.mark.anyio
async def test_a_thread_beside_a_running_loop_can_use_it() -> None:
    agent = Robota(ScriptedProvider("One."))
    result = await asyncio.to_thread(agent.run_sync, "there")
    assert result.text == "One."


def test_threads_can_run_their_own_agents_at_the_same_time() -> None:
    barrier = threading.Barrier(4)
    texts: list[str] = []

    def work(n: int) -> None:
        agent = Robota(ScriptedProvider([Delay(0), f"I am {n}."]))
        barrier.wait()
        texts.append(agent.run_sync("go").text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts) == [f"I am {n}." for n in range(4)]


def test_errors_of_run_are_raised_as_they_are() -> None:
    with pytest.raises(ConfigurationError, match="max_rounds"):
        Robota(ScriptedProvider("Hi")).run_sync("go", max_rounds=-1)


def test_calling_it_from_a_run_that_it_carries_is_refused_with_the_way_out() -> None:
    inner = Robota(ScriptedProvider("never"))

    @tool
    async def nested() -> str:
        """Ask another agent the wrong way."""
        return inner.run_sync("go").text

    outer = Robota(ScriptedProvider([call("nested")], "Fine."), tools=[nested])
    assert outer.run_sync("go").text == "Fine."
    assert "use `await agent.run(...)` there" in outer.messages[2].content


def test_a_sync_tool_may_run_another_agent() -> None:
    inner = Robota(ScriptedProvider("Inner."))

    @tool
    def nested() -> str:
        """Ask another agent from a worker thread."""
        return inner.run_sync("go").text

    outer = Robota(ScriptedProvider([call("nested")], "Fine."), tools=[nested])
    assert outer.run_sync("go").text == "Fine."
    assert outer.messages[2].content == "Inner."


def test_abort_from_the_callers_side_stops_a_sync_run() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()], "Fine."))
    arrived = threading.Event()
    agent.events.on(TextDelta, lambda event: arrived.set() if event.text == "Hel" else None)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(agent.run_sync("go")))
    thread.start()
    arrived.wait()
    agent.abort()
    thread.join()
    assert (results[0].text, results[0].interrupted) == ("Hel", True)
    assert agent.run_sync("again").text == "Fine."


def test_ctrl_c_stops_the_run_before_it_is_raised_and_the_agent_stays_usable() -> None:
    provider = ScriptedProvider(["Hel", Stall()], "Fine.")
    agent = Robota(provider)
    main = threading.main_thread().ident
    assert main is not None
    stop = agent.events.on(TextDelta, lambda _: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        agent.run_sync("go")
    stop()
    assert (agent.is_running, provider.open_streams) == (False, 0)
    assert agent.messages[-1].content == "Hel"
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    assert agent.run_sync("again").text == "Fine."


def test_one_agent_serves_one_loop_after_another() -> None:
    agent = Robota(ScriptedProvider("One.", "Two.", "Three."))
    assert asyncio.run(agent.run("a")).text == "One."
    assert asyncio.run(agent.run("b")).text == "Two."
    assert agent.run_sync("c").text == "Three."


def test_closing_an_agent_that_runs_in_another_loop_waits_for_it() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()]))
    arrived = threading.Event()
    agent.events.on(TextDelta, lambda _: arrived.set())
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(agent.run_sync("go")))
    closer = threading.Thread(target=lambda: asyncio.run(agent.aclose()), daemon=True)
    thread.start()
    arrived.wait()
    closer.start()
    thread.join()
    closer.join(10)  # as long as it takes to call it stuck
    assert not closer.is_alive()
    assert (agent.is_running, results[0].interrupted) == (False, True)
