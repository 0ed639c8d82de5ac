from __future__ import annotations

import asyncio

import pytest

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.messages import ToolCall, UserMessage
from robota.core.provider import ChatRequest, NativePayload, StopChunk, TextChunk
from robota.testing import Delay, Fail, ModelServer, ScriptedProvider, Stall, call, fixed_ports

pytestmark = pytest.mark.anyio

HELLO = ChatRequest(model="m", messages=[UserMessage("Hello")])
RECORDED = ChatRequest(model="m", messages=[UserMessage("Hello")], want_raw=True)


async def play(provider, request=HELLO):
    return [chunk async for chunk in provider.stream(request)]


async def test_a_reply_is_played_step_by_step():
    provider = ScriptedProvider(["Hel", call("add", a=1), StopChunk("max_tokens")])
    assert await play(provider) == [
        TextChunk("Hel"),
        ToolCall("call_add", "add", '{"a":1}'),
        StopChunk("max_tokens"),
    ]
    assert provider.requests == [HELLO]


async def test_a_function_answers_from_the_request():
    provider = ScriptedProvider(lambda request: lambda again: [request.model, again.model])
    assert await play(provider) == [TextChunk("m"), TextChunk("m"), StopChunk("end_turn")]


async def test_a_script_plays_once_unless_it_repeats():
    once, again = ScriptedProvider("a"), ScriptedProvider("a", "b", repeat=True)
    await play(once)
    with pytest.raises(ProviderError, match="The script has no reply for request 2"):
        await play(once)
    assert [(await play(again))[0].text for _ in range(3)] == ["a", "b", "a"]


async def test_a_failure_comes_in_its_place():
    stream = ScriptedProvider(["Hel", Fail(LookupError())]).stream(HELLO)
    assert await anext(stream) == TextChunk("Hel")
    with pytest.raises(LookupError):
        await anext(stream)


async def test_delays_wait_through_the_ports():
    ports = fixed_ports()
    await play(ScriptedProvider([Delay(60), "Hi"], ports=ports))
    assert ports.sleeps == [60]


async def test_native_payloads_are_played_to_those_who_record():
    payload = NativePayload(kind="request", payload={"model": "m"})
    provider = ScriptedProvider([payload, "Hi"], repeat=True)
    assert payload not in await play(provider)
    assert payload in await play(provider, RECORDED)


async def test_no_stream_stays_open():
    provider = ScriptedProvider(["Hel", "lo"])
    stream = provider.stream(HELLO)
    await anext(stream)
    assert provider.open_streams == 1
    await stream.aclose()
    assert provider.open_streams == 0


async def test_the_native_form_of_a_reply_is_its_place_in_the_script():
    provider = ScriptedProvider("a", "b")
    assert await play(provider) == [TextChunk("a"), StopChunk("end_turn")]
    place = NativePayload(kind="response", payload={"reply": 2})
    assert await play(provider, RECORDED) == [TextChunk("b"), place, StopChunk("end_turn")]


def test_keywords_of_a_call_are_arguments_whatever_their_names() -> None:
    assert call("delete", id=7, name="x").arguments == '{"id":7,"name":"x"}'
    assert (call("delete", "c1", id=7).id, call("delete").id) == ("c1", "call_delete")


@pytest.mark.anyio
async def test_other_tasks_run_between_two_pieces() -> None:
    heard: list[str] = []

    async def watch() -> None:
        while len(heard) < 4:
            heard.append("other")
            await asyncio.sleep(0)

    async def listen() -> None:
        async for chunk in ScriptedProvider(["a", "b"]).stream(HELLO):
            heard.append(type(chunk).__name__)  # noqa: PERF401 - each when it comes

    await asyncio.gather(listen(), watch())

    assert heard.index("other") < heard.index("TextChunk") < len(heard) - 1 - heard[::-1].index("other")


async def test_one_step_is_a_reply():
    provider = ScriptedProvider(call("add", a=1), Fail(LookupError()), lambda request: call("look"))
    assert await play(provider) == [ToolCall("call_add", "add", '{"a":1}'), StopChunk("tool_use")]
    with pytest.raises(LookupError):
        await play(provider)
    assert (await play(provider))[0] == ToolCall("call_look", "look", "{}")
    server = ModelServer(call("add", a=1), StopChunk("refusal"))
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (3, "A reply is a text, a step such as .*; not a value of type int."),
        (None, "not None"),
        ({"text": "Hello"}, "not a dict"),
        (b"Hello", "not a value of type bytes"),
        (LookupError("no"), r"write Fail\(LookupError\('no'\)\)\."),
        (Stall, r"Stall is a class: write Stall\(\)."),
    ],
)
@pytest.mark.parametrize("player", [ScriptedProvider, ModelServer])
def test_what_cannot_be_played_is_refused_where_it_is_written(player, reply, told):
    with pytest.raises(ConfigurationError, match=told):
        player("Hello", reply)


async def test_a_function_that_returns_nothing_says_what_it_should():
    with pytest.raises(ConfigurationError, match="a function that returns one; not None"):
        await play(ScriptedProvider(lambda request: None))
