from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

import anyio
import msgspec
import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.conversation import ConversationStore
from robota.core.errors import ConfigurationError, ProviderError
from robota.core.event_names import event_to_wire
from robota.core.events import (
    Event,
    Noticed,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    TextDelta,
    TurnEvent,
)
from robota.core.messages import ImagePart, JsonObject, TextPart, UserMessage
from robota.core.ports import Ports
from robota.core.provider import ChatRequest, ModelSettings, NativeWebTools
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import ToolContext, ToolResult
from robota.testing import Fail, ScriptedProvider, Stall, call, fixed_ports
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def recording(agent: Robota) -> list[Event]:
    events: list[Event] = []
    agent.events.on(Event, events.append)
    return events


# --- what an agent is made of -----------------------------------------------------------------------------


async def test_an_agent_remembers_the_conversation() -> None:
    provider = ScriptedProvider("One.", "Two.")
    agent = Robota(provider, model="m-1", system_message="Be brief.")
    await agent.run("first")
    await agent.run("second")
    assert [m.content for m in provider.requests[1].messages] == ["Be brief.", "first", "One.", "second"]
    assert [entry.type for entry in agent.history] == ["system", "user", "assistant", "user", "assistant"]
    assert provider.requests[0].model == "m-1"


async def test_a_given_conversation_is_used_even_when_it_is_empty() -> None:
    store = ConversationStore()
    agent = Robota(ScriptedProvider("Hi"), conversation=store)
    await agent.run("go")
    assert agent.conversation is store
    assert [m.content for m in store.messages] == ["go", "Hi"]


async def test_settings_of_a_run_beat_those_of_the_agent() -> None:
    provider = ScriptedProvider("One.", "Two.")
    agent = Robota(provider, settings=ModelSettings(temperature=0.1))
    await agent.run("a")
    await agent.run("b", settings=ModelSettings(temperature=0.9))
    assert [request.settings.temperature for request in provider.requests] == [0.1, 0.9]


async def test_a_new_model_tool_set_or_system_message_counts_from_the_next_run() -> None:
    provider = ScriptedProvider("One.", "Two.")
    agent = Robota(provider, model="m-1", tools=[add], system_message="Be brief.")
    await agent.run("a")
    agent.model, agent.tools, agent.system_message = "m-2", [], "Be long."
    await agent.run("b")
    first, second = provider.requests
    assert ([t.name for t in first.tools], [t.name for t in second.tools]) == (["add"], [])
    assert (first.model, second.model) == ("m-1", "m-2")
    assert [m.content for m in second.messages] == ["Be long.", "a", "One.", "b"]


async def test_clearing_begins_a_new_conversation_with_the_same_system_message() -> None:
    provider = ScriptedProvider("One.", "Two.")
    agent = Robota(provider, system_message="Be brief.")
    await agent.run("a")
    before = agent.conversation_id
    agent.clear()
    await agent.run("b")
    assert agent.conversation_id != before
    assert [m.content for m in provider.requests[1].messages] == ["Be brief.", "b"]
    assert [m.content for m in agent.messages] == ["Be brief.", "b", "Two."]


async def test_a_message_can_be_put_into_the_conversation() -> None:
    provider = ScriptedProvider("I see.")
    agent = Robota(provider)
    agent.inject(UserMessage("by the way"))
    await agent.run("go")
    assert [m.content for m in provider.requests[0].messages] == ["by the way", "go"]


async def test_a_prompt_may_have_images() -> None:
    provider = ScriptedProvider("A cat.")
    agent = Robota(provider)
    events = recording(agent)
    parts = [TextPart("What is this?"), ImagePart("aGk=")]
    await agent.run(parts)
    [message] = provider.requests[0].messages
    assert isinstance(message, UserMessage)
    assert (message.content, message.parts) == ("What is this?", tuple(parts))
    assert isinstance(events[0], RunStarted)
    assert events[0].prompt == "What is this?"


async def test_an_unknown_models_window_is_noticed_once() -> None:
    agent = Robota(ScriptedProvider("a", "b"), model="nobody-knows-1")
    events = recording(agent)
    await agent.run("one")
    await agent.run("two")
    notices = [event for event in events if isinstance(event, Noticed)]
    assert len(notices) == 1
    assert "'nobody-knows-1'" in notices[0].message
    assert "200,000" in notices[0].message


async def test_the_same_world_gives_the_same_events() -> None:
    async def play() -> list[Any]:
        ports = fixed_ports()
        provider = ScriptedProvider(
            ["Hm", call("add", "", a=1, b=2)], [call("Nope")], [call("Nope")], "So far.", [Fail(OSError("x"))]
        )
        agent = Robota(provider, tools=[add], config=AgentConfig(ports=ports), system_message="Be brief.")
        events = recording(agent)
        await agent.run("go")
        await agent.run("more")
        return [msgspec.json.decode(msgspec.json.encode(event_to_wire(event))) for event in events]

    first, second = await play(), await play()
    assert first == second


# --- bad input ----------------------------------------------------------------------------------------------


class Schemaless:
    name = "odd"
    description = "Has no schema."

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult()


class ListSchema(Schemaless):
    parameters: ClassVar[Any] = {"type": "array"}


@pytest.mark.parametrize("odd", [Schemaless(), ListSchema()])
async def test_a_tool_without_a_usable_schema_is_refused_by_name(odd: Any) -> None:
    agent = Robota(ScriptedProvider("Hi"), tools=[add, odd])
    with pytest.raises(ConfigurationError, match=r"Tool 'odd' has no usable schema: .*@tool"):
        await agent.run("go")
    assert (agent.messages, agent.is_running) == ([], False)
    agent.tools = [add]
    assert (await agent.run("go")).text == "Hi"


def test_two_tools_with_one_name_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"Two tools have the name 'add'; rename"):
        Robota(ScriptedProvider(), tools=[add, add])


@pytest.mark.parametrize("wrong", [lambda a: a, "add", None, {"name": "add"}, Schemaless])
def test_something_that_is_no_tool_is_refused_with_the_fix(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a tool: .*@tool"):
        Robota(ScriptedProvider(), tools=[add, wrong])


@pytest.mark.parametrize("wrong", [add, None, 5])
def test_tools_that_are_no_list_are_refused_with_the_fix(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"tools.*list"):
        Robota(ScriptedProvider(), tools=wrong)


def test_a_bad_tool_leaves_the_agents_tools_as_they_were() -> None:
    agent = Robota(ScriptedProvider(), tools=[add])
    with pytest.raises(ConfigurationError):
        agent.tools = [add, add]
    assert list(agent.tools) == [add]


class Nameless:
    async def stream(self, request: ChatRequest) -> Any:
        yield


@pytest.mark.parametrize("wrong", ["claude", None, ScriptedProvider, Nameless(), object()])
async def test_something_that_is_no_provider_is_refused_with_the_fix(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a provider: .*stream"):
        await Robota(wrong).run("go")


@pytest.mark.parametrize("wrong", [5, None, ["text"], [TextPart("a"), {"type": "text"}], b"bytes"])
async def test_a_prompt_that_is_neither_text_nor_parts_is_refused_and_not_recorded(wrong: Any) -> None:
    agent = Robota(ScriptedProvider("Hi"))
    events = recording(agent)
    with pytest.raises(ConfigurationError, match=r"prompt must be text or a sequence of parts"):
        await agent.run(wrong)
    assert (agent.messages, events, agent.is_running) == ([], [], False)
    assert (await agent.run("go")).text == "Hi"


async def test_a_prompt_with_undecodable_characters_is_sent() -> None:
    agent = Robota(ScriptedProvider("Hi"))
    assert (await agent.run("read caf\udce9.txt")).text == "Hi"


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("model", None),
        ("model", 5),
        ("system_message", 5),
        ("system_message", ["Be brief."]),
        ("settings", {"temperature": 1}),
        ("config", {"name": "x"}),
        ("conversation", []),
        ("plugins", 5),
    ],
)
async def test_an_option_of_the_wrong_type_is_refused_by_name(option: str, wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"\b{option}\b"):
        await Robota(ScriptedProvider("Hi"), **{option: wrong}).run("go")


async def test_a_failure_of_the_engine_itself_is_a_result_and_loses_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> float:
        raise RuntimeError("the clock stopped")

    provider = ScriptedProvider(["Adding.", call("add", a=1, b=2)], "Hello again.")
    agent = Robota(provider, tools=[add], config=AgentConfig(ports=Ports(monotonic=broken)))
    events = recording(agent)
    result = await agent.run("go")
    assert result.error is not None
    assert "the clock stopped" in str(result.error) + str(result.error.__cause__) + caplog.text
    assert isinstance(events[-1], RunFailed)
    assert [m.role for m in agent.messages] == ["user", "assistant", "tool"]
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    assert (await agent.run("and now?")).text == "Hello again."


async def test_web_tools_the_provider_lacks_are_refused_before_anything_is_recorded() -> None:
    agent = Robota(ScriptedProvider("Hi"), native_web_tools=NativeWebTools(web_search=True))
    with pytest.raises(ConfigurationError, match="scripted does not support native web search"):
        await agent.run("go")
    assert (agent.messages, agent.is_running) == ([], False)


# --- stream() -----------------------------------------------------------------------------------------------


async def test_a_stream_has_the_runs_events_and_ends_with_its_ending() -> None:
    agent = Robota(ScriptedProvider([call("add", a=1, b=2)], "Three."), tools=[add])
    events = recording(agent)
    streamed = [event async for event in agent.stream("go")]
    assert streamed == [event for event in events if isinstance(event, TurnEvent)]
    assert isinstance(streamed[-1], RunCompleted)
    assert not agent.is_running


async def test_leaving_a_stream_early_stops_the_run_and_leaves_a_valid_history() -> None:
    provider = ScriptedProvider([call("add", a=1, b=2), "Hel", "lo", Stall()], "Again.")
    agent = Robota(provider, tools=[add])
    events = recording(agent)
    async with agent.events.open(RunInterrupted) as endings:
        async for event in agent.stream("go"):
            if isinstance(event, TextDelta):
                break
        await anext(endings)  # Python closes the generator that nobody holds any more
    assert provider.open_streams == 0
    assert [m.content for m in agent.messages if m.role == "tool"] == ["Error: Execution interrupted by user"]
    check_interrupted(agent, events)
    assert (await agent.run("and now?")).text == "Again."


async def test_closing_a_stream_waits_until_the_run_is_over() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()]), tools=[add])
    events = recording(agent)
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    assert not agent.is_running
    check_interrupted(agent, events)


async def test_a_cancelled_reader_of_a_stream_leaves_no_run_behind() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()]), tools=[add])
    events = recording(agent)
    with anyio.CancelScope() as scope:
        async for event in agent.stream("go"):
            if isinstance(event, TextDelta):
                scope.cancel()
    assert not agent.is_running
    check_interrupted(agent, events)


async def test_a_stream_raises_what_run_would_raise() -> None:
    agent = Robota(ScriptedProvider("hi"))
    with pytest.raises(Exception, match="max_rounds must be a non-negative integer"):
        async for _event in agent.stream("go", max_rounds=-1):
            pass


async def test_a_failed_run_ends_its_stream_with_the_failure() -> None:
    agent = Robota(ScriptedProvider([Fail(ProviderError("no"))]))
    last = [event async for event in agent.stream("go")][-1]
    assert isinstance(last, RunFailed)
    assert (last.message, last.code, last.recoverable) == ("no", "PROVIDER_ERROR", True)


async def test_an_aborted_run_ends_its_stream_with_the_interruption() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()]))
    last: Event | None = None
    with suppress(StopAsyncIteration):
        async for last in agent.stream("go"):
            if isinstance(last, TextDelta):
                agent.abort()
    assert last == RunInterrupted(text="Hel", execution_id=last.execution_id, seq=last.seq)


async def test_a_reader_that_times_out_waits_for_a_tools_cleanup() -> None:
    cleaned: list[str] = []

    @tool
    async def careful() -> None:
        """Take a while to clean up."""
        try:
            await anyio.sleep_forever()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            cleaned.append("done")

    agent = Robota(ScriptedProvider([call("careful")]), tools=[careful])
    events = recording(agent)
    with anyio.CancelScope() as scope:
        async for event in agent.stream("go"):
            if event.name == "tool_start":
                scope.cancel()
    assert (agent.is_running, cleaned) == (False, ["done"])
    check_interrupted(agent, events)


def check_interrupted(agent: Robota, events: list[Event]) -> None:
    assert isinstance(events[-1], RunInterrupted)
    assert sum(isinstance(event, RunInterrupted | RunCompleted | RunFailed) for event in events) == 1
    assert_valid_for_a_request(agent.conversation.messages_for_api())


async def test_a_stream_that_was_left_by_break_makes_way_for_the_next_run() -> None:
    agent = Robota(ScriptedProvider(["Hel", Stall()], "Second."))
    async for event in agent.stream("first"):
        if isinstance(event, TextDelta):
            break

    result = await agent.run("second")

    assert result.text == "Second."
    assert [m.content for m in agent.messages] == ["first", "Hel", "second", "Second."]
