from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from robota.core.bus import EventBus, EventStream
from robota.core.errors import ConfigurationError
from robota.core.events import Event, Noticed, PreRun, ReplayEvent, TextDelta, TurnEvent
from robota.core.robota import Robota
from robota.core.tool import ToolContext
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@pytest.fixture
def bus() -> EventBus:
    return Robota(ScriptedProvider()).events


def texts(events: list[Event]) -> list[str]:
    return [event.text if isinstance(event, TextDelta) else event.name for event in events]


async def test_a_table_of_handlers_hears_exactly_the_types_it_names(bus: EventBus) -> None:
    heard: list[str] = []
    handlers = {
        TextDelta: lambda owner, event: owner.append(f"text {event.text}"),
        PreRun: lambda owner, event: owner.append("pre_run"),
    }
    stop = bus.on_each(handlers, heard)
    for event in (TextDelta("a"), Noticed("n"), PreRun(data={})):
        bus.emit(event)
    assert heard == ["text a", "pre_run"]
    assert (bus.wants(PreRun), bus.wants(Noticed)) == (True, False)
    stop()
    bus.emit(TextDelta("b"))
    assert heard == ["text a", "pre_run"]
    assert not bus.wants(TextDelta)


async def test_a_listener_gets_the_type_it_asked_for_and_types_derived_from_it(bus: EventBus) -> None:
    deltas: list[Event] = []
    turns: list[Event] = []
    everything: list[Event] = []
    replays: list[Event] = []
    bus.on(TextDelta, deltas.append)
    bus.subscribe(turns.append)
    bus.on(Event, everything.append)
    bus.on(ReplayEvent, replays.append)
    for event in (TextDelta("a"), Noticed("n"), PreRun(data={})):
        bus.emit(event)
    assert [texts(heard) for heard in (deltas, turns, everything, replays)] == [
        ["a"],
        ["a", "notice"],
        ["a", "notice", "pre_run"],
        ["pre_run"],
    ]


async def test_an_event_is_wanted_only_while_somebody_listens(bus: EventBus) -> None:
    assert not bus.wants(PreRun)
    bus.subscribe(print)
    assert not bus.wants(PreRun)
    stop = bus.on(PreRun, print)
    assert bus.wants(PreRun)
    stop()
    assert not bus.wants(PreRun)


async def test_a_listener_that_raises_is_logged_and_the_others_are_served(
    bus: EventBus, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Event] = []

    def broken(event: TurnEvent) -> None:
        raise ValueError("I am broken")

    bus.subscribe(broken)
    bus.subscribe(heard.append)
    with caplog.at_level(logging.ERROR, "robota.events"):
        bus.emit(TextDelta("a"))
        bus.emit(TextDelta("b"))
    assert texts(heard) == ["a", "b"]
    assert [record.name for record in caplog.records] == ["robota.events"] * 2
    assert "broken" in caplog.text
    assert "text_delta" in caplog.text
    assert "I am broken" in caplog.text


async def test_every_listener_sees_events_in_the_order_they_were_emitted(bus: EventBus) -> None:
    first: list[Event] = []
    second: list[Event] = []

    def answer(event: TextDelta) -> None:
        first.append(event)
        if event.text in "ab":
            bus.emit(TextDelta(event.text.upper()))

    bus.on(TextDelta, answer)
    bus.on(TextDelta, second.append)
    bus.emit(TextDelta("a"))
    bus.emit(TextDelta("b"))
    assert texts(first) == texts(second) == ["a", "A", "b", "B"]


async def test_a_listener_may_unsubscribe_itself_while_it_is_called(bus: EventBus) -> None:
    once: list[Event] = []
    others: list[Event] = []

    def listen(event: TurnEvent) -> None:
        once.append(event)
        stop()

    stop = bus.subscribe(listen)
    bus.subscribe(others.append)
    bus.emit(TextDelta("a"))
    bus.emit(TextDelta("b"))
    assert (texts(once), texts(others)) == (["a"], ["a", "b"])


async def test_a_listener_that_joins_inside_a_callback_hears_the_next_event(bus: EventBus) -> None:
    late: list[Event] = []

    def invite(event: TextDelta) -> None:
        if event.text == "a":
            bus.subscribe(late.append)

    bus.on(TextDelta, invite)
    bus.emit(TextDelta("a"))
    bus.emit(TextDelta("b"))
    assert texts(late) == ["b"]


async def test_an_event_emitted_right_after_joining_reaches_the_newcomer(bus: EventBus) -> None:
    late: list[Event] = []

    def invite(event: TextDelta) -> None:
        if event.text == "a":
            bus.subscribe(late.append)
            bus.emit(TextDelta("b"))

    bus.on(TextDelta, invite)
    bus.emit(TextDelta("a"))
    assert texts(late) == ["b"]


async def test_unsubscribing_twice_leaves_another_subscription_of_the_same_function(bus: EventBus) -> None:
    heard: list[Event] = []
    listen = heard.append
    stop = bus.subscribe(listen)
    bus.subscribe(listen)
    stop()
    stop()
    bus.emit(TextDelta("a"))
    assert texts(heard) == ["a"]


async def test_a_listener_for_no_event_type_is_refused_and_the_bus_works_on(bus: EventBus) -> None:
    heard: list[Event] = []
    with pytest.raises(ConfigurationError, match=r"text_delta.*event type"):
        bus.on("text_delta", heard.append)
    with pytest.raises(ConfigurationError, match=r"int.*event type"):
        bus.on(int, heard.append)
    bus.on(TextDelta, heard.append)
    bus.emit(TextDelta("a"))
    assert texts(heard) == ["a"]


async def test_a_listener_that_would_have_to_be_awaited_is_refused(bus: EventBus) -> None:
    async def listen(event: TurnEvent) -> None:
        raise AssertionError("never called")

    with pytest.raises(ConfigurationError, match=r"listen.*asynchronous.*open\(\)"):
        bus.subscribe(listen)
    assert not bus.wants(TextDelta)


# --- the open stream of events ---------------------------------------------------------------------------


async def test_events_can_be_iterated_from_the_moment_the_stream_is_open(bus: EventBus) -> None:
    bus.emit(TextDelta("before"))
    heard: list[Event] = []
    async with bus.open() as events:
        bus.emit(TextDelta("a"))
        bus.emit(PreRun(data={}))
        bus.emit(TextDelta("b"))
        async for event in events:
            heard.append(event)
            if len(heard) == 2:
                break
    bus.emit(TextDelta("after"))
    assert texts(heard) == ["a", "b"]
    assert not bus.wants(TextDelta)


async def test_a_stream_of_one_type_has_nothing_else(bus: EventBus) -> None:
    async with bus.open(TextDelta) as events:
        bus.emit(Noticed("n"))
        bus.emit(TextDelta("a"))
        assert texts([await anext(events)]) == ["a"]


async def test_a_waiting_reader_is_woken_by_the_next_event_and_by_closing(bus: EventBus) -> None:
    async with bus.open(TextDelta) as events, asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(_all(events))
        await asyncio.sleep(0)
        bus.emit(TextDelta("a"))
        await asyncio.sleep(0)
        bus.emit(TextDelta("b"))
        events.close()
    assert texts(reader.result()) == ["a", "b"]


async def test_two_readers_each_get_every_event(bus: EventBus) -> None:
    async with bus.open(TextDelta) as one, bus.open(TextDelta) as two:
        bus.emit(TextDelta("a"))
        assert texts([await anext(one), await anext(two)]) == ["a", "a"]


async def test_a_reader_that_gave_up_waiting_can_come_back(bus: EventBus) -> None:
    async with bus.open(TextDelta) as events:
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        bus.emit(TextDelta("a"))
        assert texts([await anext(events)]) == ["a"]


async def _all(events: EventStream[TextDelta]) -> list[Event]:
    return [event async for event in events]


# --- threads -----------------------------------------------------------------------------------------------


async def test_progress_told_from_a_tools_thread_reaches_listeners_on_the_runs_thread() -> None:
    @tool
    def slow(ctx: ToolContext) -> str:
        """Work in a thread."""
        for step in range(3):
            ctx.progress(f"step {step}")
        return "done"

    agent = Robota(ScriptedProvider([call("slow")], "Fine."), tools=[slow])
    heard: list[Event] = []
    threads: set[int] = set()
    agent.events.subscribe(heard.append)
    agent.events.subscribe(lambda _: threads.add(threading.get_ident()))
    await agent.run("go")
    names = [event.name for event in heard]
    assert threads == {threading.get_ident()}
    assert names.count("tool_progress") == 3
    assert names.index("tool_start") < names.index("tool_progress") < names.index("tool_end")
    assert [event.seq for event in heard] == list(range(1, len(heard) + 1))
