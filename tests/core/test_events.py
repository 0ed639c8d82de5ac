from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import anyio
import msgspec
import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.background import GroupSnapshot, TaskFailure, TaskSnapshot
from robota.core.errors import ProviderError, ValidationError
from robota.core.event_names import event_from_wire, event_to_wire
from robota.core.events import (
    EVENT_TYPES,
    AssistantMessageCommitted,
    BackgroundGroupChanged,
    BackgroundTaskChanged,
    Compacted,
    CompactionMarked,
    ContextLoaded,
    ContextUpdated,
    Event,
    HistoryMutation,
    HookExecuted,
    ModelChanged,
    Noticed,
    OwnerPathSegment,
    PermissionDecided,
    PreRun,
    PromptQueued,
    PromptSteered,
    ProviderNativeRawPayload,
    ProviderRequest,
    ProviderResponseNormalized,
    ProviderResponseRaw,
    ProviderRetried,
    ProviderStreamRawDelta,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ServerToolUsed,
    SessionInit,
    SessionShutdown,
    SettingsChanged,
    SubagentEvent,
    SummaryCalled,
    TextDelta,
    ThinkingChanged,
    ToolBatchStarted,
    ToolEnded,
    ToolExecutionRequest,
    ToolExecutionResult,
    ToolInputDelta,
    ToolMessageCommitted,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import AssistantMessage, TokenUsage, ToolCall, ToolMessage, UserMessage
from robota.core.plugin import Plugin, Refusal
from robota.core.provider import ChatRequest
from robota.core.questions import PlanQuestion
from robota.core.robota import Robota
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

OF = {"execution_id": "e", "seq": 7}
IN = {**OF, "conversation_id": "c", "round": 2}
CALL: dict[str, Any] = {"call_id": "e-r1-0", "tool_call_id": "call_0", "tool_name": "add"}
BATCH = {**CALL, "batch_id": "e-r1", "index": 0}
ANSWER = AssistantMessage("Adding.", (ToolCall("call_0", "add", '{"a":1}'),), metadata={"inputTokens": 3})
RESULT = ToolMessage("3", "call_0", "add", metadata={"success": True})
ONE_OF_EACH: list[Event] = [
    RunStarted(conversation_id="c", agent_name="main", prompt="hi", **OF),
    TextDelta("Hé", 1, 4, b'{"\xc3"}', **OF),
    ReasoningDelta("hm", 1, **OF),
    ToolInputDelta(index=0, tool_call_id="call_0", tool_name="add", delta='{"a', round=1, **OF),
    ThinkingChanged(True, **OF),
    ServerToolUsed(tool_name="web_search", input={"query": "x"}, round=1, **OF),
    ProviderRetried(attempt=1, max_attempts=3, delay=0.5, message="busy", round=1, **OF),
    ToolStarted(**CALL, arguments={"a": 1, "b": [None, 2.5]}, round=1, **OF),
    ToolProgressed(call_id="e-r1-0", tool_name="add", text="half", round=1, **OF),
    ToolEnded(
        **CALL, outcome="denied", content="c", error="no", error_code="refused", metadata={"x": 1}, **OF
    ),
    ContextUpdated(max_tokens=10, used_tokens=5, used_percentage=50.0, remaining_percentage=50.0, **OF),
    Compacted(trigger="auto", before={"usedTokens": 9}, after={"usedTokens": 1}, **OF),
    ModelChanged(provider="p", model="m", context_window=10, notes=["One image is left out."], **OF),
    SettingsChanged(keys=["permissions"], **OF),
    QuestionAsked(question=PlanQuestion(id="x-r1-0", plan="1. Look"), **OF),
    QuestionClosed(id="x-r1-0", answer={"approve": True}, by="page", **OF),
    BackgroundTaskChanged(
        change="failed",
        task=TaskSnapshot(
            task_id="t",
            kind="agent",
            state="failed",
            created_at=datetime(2026, 1, 2, tzinfo=UTC),
            error=TaskFailure(category="timeout", message="Silent.", reason="idle"),
        ),
        **OF,
    ),
    BackgroundGroupChanged(change="updated", group=GroupSnapshot(group_id="g", task_ids=("t",)), **OF),
    PromptQueued("next", **OF),
    PromptSteered("this way", **OF),
    Noticed("look", **OF),
    RunFailed(message="broken", code="PROVIDER_ERROR", recoverable=True, **OF),
    RunInterrupted(text="Hel", **OF),
    RunCompleted(text="Hello", rounds=2, stop_reason="max_tokens", usage=TokenUsage(1, 2, 3, 4, 5), **OF),
    SubagentEvent(agent_id="a", inner=SubagentEvent(agent_id="b", inner=TextDelta("x", **OF), **OF), **OF),
    SessionInit(data={"cwd": "/x"}, **IN),
    PreRun(data={"prompt": "hi"}, **IN),
    ProviderRequest(provider="p", model="m", messages=[UserMessage("hi"), ANSWER, RESULT], tools=[{}], **IN),
    ProviderNativeRawPayload(
        provider="p", payload_kind="stream_event", sequence=3, payload={"x": [1]}, api_surface="chat", **IN
    ),
    ProviderStreamRawDelta(sequence=1, delta="x", **IN),
    ProviderResponseRaw(response=ANSWER, **IN),
    ProviderResponseNormalized(response=ANSWER, tool_calls_count=1, **IN),
    AssistantMessageCommitted(message=ANSWER, **IN),
    ToolBatchStarted(
        batch_id="e-r1", mode="parallel", max_concurrency=None, request_count=1, tools=["add"], **IN
    ),
    ToolExecutionRequest(**BATCH, parameters={"a": 1}, owner_path=[OwnerPathSegment("agent", "main")], **IN),
    ToolExecutionResult(**BATCH, success=False, error="no", metadata={"x": 1}, finished=2, **IN),
    ToolMessageCommitted(batch_id="e-r1", index=0, message=RESULT, **IN),
    HistoryMutation(message=UserMessage("hi"), index=0, **IN),
    SessionShutdown(reason="exit", **IN),
    HookExecuted(data={"event": "Stop"}, **IN),
    PermissionDecided(data={"decision": "auto"}, **IN),
    ContextLoaded(data={"files": []}, **IN),
    SummaryCalled(model="m", message_id="q", asked_at=datetime(2026, 1, 2, tzinfo=UTC), **IN),
    CompactionMarked(message=AssistantMessage("s"), epoch=1, **IN),
]


# --- on the wire -----------------------------------------------------------------------------------------


def test_there_is_an_example_of_every_event() -> None:
    assert {event.name for event in ONE_OF_EACH} == set(EVENT_TYPES)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: event.name)
def test_an_event_survives_the_wire(event: Event) -> None:
    wire = event_to_wire(event)
    assert wire["event"] == event.name
    assert (wire["executionId"], wire["seq"]) == ("e", 7)
    assert event_from_wire(msgspec.json.decode(msgspec.json.encode(wire))) == event


async def test_every_event_of_a_real_run_survives_the_wire() -> None:
    agent, events = recording(ScriptedProvider([call("add", a=1, b=2)], [TokenUsage(5, 2), "Three."]))
    await agent.run("What is 1 + 2?")
    for event in events:
        wire = msgspec.json.decode(msgspec.json.encode(event_to_wire(event)))
        assert msgspec.json.decode(msgspec.json.encode(event_to_wire(event_from_wire(wire)))) == wire


def test_an_unknown_or_malformed_event_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match=r"Unknown event 'text_dleta'; known: .*text_delta"):
        event_from_wire({"event": "text_dleta"})
    with pytest.raises(ValidationError, match="Unknown event None"):
        event_from_wire({})
    with pytest.raises(ValidationError, match=r"'text_delta' is malformed.*text"):
        event_from_wire({"event": "text_delta", "text": 5})


# --- what a run promises ------------------------------------------------------------------------------


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def wait() -> None:
    """Wait for ever."""
    await anyio.sleep_forever()


ENDINGS = (RunCompleted, RunInterrupted, RunFailed)


def recording(provider: ScriptedProvider, **options: Any) -> tuple[Robota, list[Event]]:
    """An agent and everything it tells."""
    agent = Robota(provider, tools=[add, wait], **options)
    events: list[Event] = []
    agent.events.on(Event, events.append)
    return agent, events


def check_promises(agent: Robota, events: list[Event], ending: type[Event]) -> None:
    """The guarantees of `robota.core.events`, for one run."""
    turn = [event for event in events if isinstance(event, TurnEvent)]
    assert type(turn[0]) is RunStarted
    assert type(events[-1]) is ending
    assert sum(isinstance(event, ENDINGS) for event in events) == 1
    assert len({event.execution_id for event in events}) == 1
    started = [event.call_id for event in turn if isinstance(event, ToolStarted)]
    ended = [event.call_id for event in turn if isinstance(event, ToolEnded)]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)
    for call_id in started:
        names = [event.name for event in turn if getattr(event, "call_id", "") == call_id]
        assert (names[0], names[-1]) == ("tool_start", "tool_end")
    requested = {event.round for event in events if isinstance(event, ProviderRequest)}
    for at, event in enumerate(events):
        if isinstance(event, AssistantMessageCommitted):
            before = [e.round for e in events[:at] if isinstance(e, ProviderRequest)]
            assert event.round in before, f"round {event.round} was committed without its request"
    assert requested or not any(isinstance(event, AssistantMessageCommitted) for event in events)
    assert [event.seq for event in turn] == list(range(turn[0].seq, turn[0].seq + len(turn)))
    assert [event.id for event in turn] == [f"{turn[0].execution_id}-{event.seq}" for event in turn]
    for before, event in pairwise(events):
        if not isinstance(event, TurnEvent):
            assert event.seq == before.seq
    committed = [event.message for event in events if isinstance(event, HistoryMutation)]
    assert committed == agent.messages[-len(committed) :]
    assert_valid_for_a_request(agent.conversation.messages_for_api())


TOOLS_THEN = [[call("add", "call_0", a=1, b=2), call("add", "call_1", a=3, b=4)], "Three and seven."]


async def test_a_run_that_completes_keeps_the_order() -> None:
    agent, events = recording(ScriptedProvider(*TOOLS_THEN))
    await agent.run("go")
    check_promises(agent, events, RunCompleted)


async def test_a_failing_provider_keeps_the_order() -> None:
    agent, events = recording(
        ScriptedProvider([call("add", a=1, b=2)], ["Hel", call("add", a=1, b=2), Fail(ProviderError("no"))])
    )
    await agent.run("go")
    check_promises(agent, events, RunFailed)


async def test_a_run_refused_before_it_began_keeps_the_order() -> None:
    class Refuse(Plugin):
        async def before_run(self, prompt: Any) -> Refusal:
            return Refusal("not today")

    agent, events = recording(ScriptedProvider("hi"), plugins=[Refuse()])
    await agent.run("go")
    assert [event.name for event in events] == ["run_start", "error"]


async def test_a_model_call_refused_by_a_plugin_keeps_the_order() -> None:
    class Refuse(Plugin):
        async def before_provider_call(self, request: ChatRequest) -> Refusal:
            return Refusal("not today")

    agent, events = recording(ScriptedProvider("hi"), plugins=[Refuse()])
    await agent.run("go")
    check_promises(agent, events, RunFailed)


async def test_an_abort_inside_a_plugins_hook_keeps_the_order() -> None:
    class Hang(Plugin):
        async def before_provider_call(self, request: ChatRequest) -> None:
            agent.abort()
            await anyio.sleep_forever()

    agent, events = recording(ScriptedProvider("hi"), plugins=[Hang()])
    await agent.run("go")
    check_promises(agent, events, RunInterrupted)


MOMENTS: list[tuple[str, ScriptedProvider, Callable[[Event], bool]]] = [
    ("first delta", ScriptedProvider(["Hel", "lo", Stall()]), lambda e: isinstance(e, TextDelta)),
    ("start", ScriptedProvider(["Hel", Stall()]), lambda e: isinstance(e, RunStarted)),
    ("request", ScriptedProvider(["Hel", Stall()]), lambda e: isinstance(e, ProviderRequest)),
    (
        "call streamed",
        ScriptedProvider([call("add", a=1, b=2), "go", Stall()]),
        lambda e: isinstance(e, TextDelta),
    ),
    (
        "tool running",
        ScriptedProvider([call("add", a=1, b=2), call("wait")]),
        lambda e: isinstance(e, ToolEnded),
    ),
    (
        "second round",
        ScriptedProvider([call("add", a=1, b=2)], ["Hel", Stall()]),
        lambda e: isinstance(e, TextDelta) and e.text == "Hel",
    ),
]


def fresh(provider: ScriptedProvider) -> ScriptedProvider:
    return ScriptedProvider(*provider._replies)


@pytest.mark.parametrize(("provider", "when"), [m[1:] for m in MOMENTS], ids=[m[0] for m in MOMENTS])
async def test_an_abort_at_any_moment_keeps_the_order(
    provider: ScriptedProvider, when: Callable[[Event], bool]
) -> None:
    provider = fresh(provider)
    agent, events = recording(provider)
    agent.events.on(Event, lambda event: agent.abort() if when(event) else None)
    result = await agent.run("go")
    assert result.interrupted
    assert provider.open_streams == 0
    check_promises(agent, events, RunInterrupted)


async def _task_cancel(run: Callable[[Callable[[], None]], Any]) -> None:
    task = asyncio.ensure_future(run(lambda: task.cancel() and None))
    await asyncio.wait([task])
    assert task.cancelled()


async def _asyncio_timeout(run: Callable[[Callable[[], None]], Any]) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as deadline:
            await run(lambda: deadline.reschedule(asyncio.get_running_loop().time()))


async def _anyio_fail_after(run: Callable[[Callable[[], None]], Any]) -> None:
    with pytest.raises(TimeoutError), anyio.fail_after(None) as scope:
        await run(lambda: setattr(scope, "deadline", anyio.current_time()))


async def _anyio_scope(run: Callable[[Callable[[], None]], Any]) -> None:
    with anyio.CancelScope() as scope:
        await run(scope.cancel)
    assert scope.cancelled_caught


@pytest.mark.parametrize("outside", [_task_cancel, _asyncio_timeout, _anyio_fail_after, _anyio_scope])
@pytest.mark.parametrize(("provider", "when"), [m[1:] for m in MOMENTS], ids=[m[0] for m in MOMENTS])
async def test_a_cancellation_from_outside_is_never_swallowed_and_keeps_the_order(
    provider: ScriptedProvider, when: Callable[[Event], bool], outside: Callable[[Any], Any]
) -> None:
    provider = fresh(provider)
    agent, events = recording(provider)

    async def run(cancel: Callable[[], None]) -> None:
        stop = agent.events.on(Event, lambda event: (cancel(), stop()) if when(event) else None)
        await agent.run("go")

    await outside(run)
    assert not agent.is_running
    assert provider.open_streams == 0
    check_promises(agent, events, RunInterrupted)


async def test_an_abort_does_not_swallow_a_cancellation_from_outside() -> None:
    agent, events = recording(ScriptedProvider(["Hel", Stall()]))

    def stop_both(event: TextDelta) -> None:
        agent.abort()
        task.cancel()

    agent.events.on(TextDelta, stop_both)
    task = asyncio.ensure_future(agent.run("go"))
    await asyncio.wait([task])
    assert task.cancelled()
    check_promises(agent, events, RunInterrupted)


async def test_a_listener_of_a_commit_can_read_the_conversation_it_tells_about() -> None:
    agent, _ = recording(ScriptedProvider(*TOOLS_THEN))
    seen = []

    def look(event: Any) -> None:
        seen.append((event.name, event.message == agent.messages[-1]))

    agent.events.on(AssistantMessageCommitted, look)
    agent.events.on(ToolMessageCommitted, look)
    agent.events.on(HistoryMutation, look)
    agent.events.on(HistoryMutation, lambda e: seen.append(("index", agent.messages[e.index] == e.message)))
    await agent.run("go")
    assert len(seen) == 5 * 2 + 2 + 2
    assert all(right for _, right in seen)


async def test_tools_are_reported_as_they_finish_and_recorded_in_request_order() -> None:
    released = anyio.Event()

    @tool
    async def slow() -> str:
        """Wait for the other tool."""
        await released.wait()
        return "slow"

    @tool
    async def quick() -> str:
        """Be quick."""
        released.set()
        return "quick"

    agent = Robota(ScriptedProvider([call("slow"), call("quick")], "Done."), tools=[slow, quick])
    told: list[str] = []
    agent.events.on(ToolEnded, lambda event: told.append(f"ended {event.tool_name}"))
    agent.events.on(ToolMessageCommitted, lambda event: told.append(f"recorded {event.message.name}"))
    finished: dict[str, int] = {}
    agent.events.on(ToolExecutionResult, lambda event: finished.update({event.tool_name: event.finished}))
    await agent.run("go")
    assert told == ["ended quick", "ended slow", "recorded slow", "recorded quick"]
    assert finished == {"quick": 1, "slow": 2}


async def test_numbers_go_on_from_run_to_run_whoever_listens() -> None:
    agent = Robota(ScriptedProvider("one", "two", "three"))
    await agent.run("unheard")
    unheard = agent.events.seq
    events: list[TurnEvent] = []
    agent.events.on(TextDelta, lambda _: None)
    await agent.run("half heard")
    agent.events.subscribe(events.append)
    await agent.run("heard")
    assert unheard == len(events)
    assert [event.seq for event in events] == [2 * unheard + n for n in range(1, unheard + 1)]


async def test_a_listener_that_always_fails_cannot_break_a_run() -> None:
    agent, events = recording(ScriptedProvider(*TOOLS_THEN))

    def broken(event: Event) -> None:
        raise RuntimeError("listener")

    agent.events.on(Event, broken)
    result = await agent.run("go")
    assert (result.text, result.error) == ("Three and seven.", None)
    check_promises(agent, events, RunCompleted)


async def test_an_event_emitted_from_a_listener_is_seen_by_all_in_one_order() -> None:
    agent = Robota(ScriptedProvider(["Hel", "lo"]))
    first: list[Event] = []
    second: list[Event] = []
    agent.events.subscribe(first.append)
    agent.events.on(TextDelta, lambda event: agent.events.emit(Noticed(f"heard {event.text}")))
    agent.events.subscribe(second.append)
    await agent.run("go")
    assert first == second
    names = [event.name for event in first]
    assert names == ["run_start", "text_delta", "notice", "text_delta", "notice", "complete"]
