"""What servers of this family send that the format does not foresee, as people have reported it."""

from __future__ import annotations

import json

import pytest
from tests.providers.loopback import DONE, Loopback, Reply, event, text_reply, tool_delta

from robota.core.messages import AssistantMessage, ReasoningBlock, TokenUsage
from robota.core.provider import ReasoningChunk
from robota.core.robota import Robota
from robota.providers.lmstudio import LmStudioProvider
from robota.providers.ollama import OllamaProvider
from robota.providers.vllm import VllmProvider
from robota.testing.reply_conformance import ADD, Heard, ask, listen
from robota.tools import tool

pytestmark = pytest.mark.anyio

ARGUMENTS = '{"a": 1, "b": 2}'
FUNCTION = {"name": "add", "arguments": ARGUMENTS}


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def hear(*parts: bytes, make=OllamaProvider) -> Heard:
    async with Loopback(Reply([*parts, DONE])) as server, make(base_url=server.url) as provider:
        return await listen(provider, ask(tools=(ADD,)))


def made(heard: Heard) -> list[tuple[str, str, dict]]:
    return [(call.id, call.name, json.loads(call.arguments)) for call in heard.calls]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param([tool_delta(index=0, id="c1", function=FUNCTION)], id="all in one delta"),
        pytest.param([tool_delta(id="c1", function=FUNCTION)], id="no index"),
        pytest.param([tool_delta(index=None, id="c1", function=FUNCTION)], id="index null"),
        pytest.param(
            [tool_delta(index=0, id="c1", function={"name": "add", "arguments": {"a": 1, "b": 2}})],
            id="arguments as an object",
        ),
        pytest.param(
            [
                tool_delta(id="c1", function={"name": "add", "arguments": ""}),
                tool_delta(function={"arguments": '{"a": 1,'}),
                tool_delta(function={"name": None, "arguments": ' "b": 2}'}),
            ],
            id="pieces without index and id",
        ),
        pytest.param(
            [
                tool_delta(index=0, id="c1", function={"name": "add", "arguments": None}),
                tool_delta(index=0, id="", function={"name": "", "arguments": ARGUMENTS}),
            ],
            id="arguments null, then an empty id and name",
        ),
        pytest.param(
            [
                tool_delta(index=0, id="c1", type="function", function={"name": "add"}),
                {"content": None, "tool_calls": [{"index": 0, "id": "c1", "function": FUNCTION}]},
            ],
            id="the id repeated",
        ),
    ],
)
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call", "eos"])
async def test_one_call_is_read_however_it_is_sent(deltas, finish) -> None:
    heard = await hear(*map(event, deltas), event({}, finish))
    assert made(heard) == [("c1", "add", {"a": 1, "b": 2})]
    assert heard.stops == ["tool_use"]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param(
            [tool_delta(index=0, id=id, function=FUNCTION) for id in ("c1", "c2")], id="always index 0"
        ),
        pytest.param([tool_delta(id=id, function=FUNCTION) for id in ("c1", "c2")], id="no index"),
        pytest.param(
            [{"tool_calls": [{"id": id, "function": FUNCTION} for id in ("c1", "c2")]}],
            id="no index, in one delta",
        ),
        pytest.param(
            [tool_delta(index=at, id=f"c{at}", function=FUNCTION) for at in (1, 2)], id="counted from one"
        ),
    ],
)
async def test_two_calls_stay_two(deltas) -> None:
    heard = await hear(*map(event, deltas), event({}, "tool_calls"))
    assert made(heard) == [(id, "add", {"a": 1, "b": 2}) for id in ("c1", "c2")]


@pytest.mark.parametrize(
    "deltas",
    [
        pytest.param([tool_delta(function=FUNCTION), tool_delta(function=FUNCTION)], id="no index either"),
        pytest.param([tool_delta(index=at, function=FUNCTION) for at in (0, 1)], id="with an index"),
    ],
)
async def test_calls_without_ids_are_made_and_answered_under_ids_of_ours(deltas) -> None:
    asked = Reply([*map(event, deltas), event({}, "stop"), DONE])
    async with (
        Loopback(asked, text_reply("Three.")) as server,
        OllamaProvider(base_url=server.url) as provider,
    ):
        agent = Robota(provider, model="served-model", tools=[add])
        assert (await agent.run("What is 1 + 2?")).text == "Three."
    calls, *answers = agent.messages[1:4]
    assert isinstance(calls, AssistantMessage)
    ids = [call.id for call in calls.tool_calls]
    assert len(set(ids)) == 2
    assert [(answer.content, answer.tool_call_id) for answer in answers] == [("3", id) for id in ids]
    _, sent, *results = server.requests[1].json["messages"]
    assert [call["id"] for call in sent["tool_calls"]] == [result["tool_call_id"] for result in results]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
@pytest.mark.parametrize("make", [OllamaProvider, LmStudioProvider, VllmProvider])
async def test_thinking_is_read_from_both_fields(field, make) -> None:
    heard = await hear(
        event({"role": "assistant", "content": None, field: ""}),
        event({"content": "", field: "H"}),
        event({field: "m."}),
        event({"content": "Yes.", field: None}),
        event({}, "stop"),
        make=make,
    )
    assert heard.text == "Yes."
    assert [chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningChunk)] == ["H", "m."]
    blocks = [chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningBlock)]
    assert blocks == ["Hm."]


async def test_a_thought_sent_in_both_fields_is_told_once() -> None:
    heard = await hear(
        event({"reasoning": "Hm.", "reasoning_content": "Hm."}), event({"content": "Yes."}, "stop")
    )
    assert [chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningChunk)] == ["Hm."]


async def test_events_without_choices_or_content_say_nothing() -> None:
    heard = await hear(
        event(),
        event({"content": None}),
        event({}),
        event(choices=[]),
        event(choices=None),
        event(choices=[{"index": 0, "delta": None, "finish_reason": None}]),
        event({"content": "Hi"}),
        event({"content": None}, "stop"),
        event(usage={"prompt_tokens": 3, "completion_tokens": 1}),
    )
    assert (heard.text, heard.stops, heard.usage) == ("Hi", ["end_turn"], TokenUsage(3, 1))


USAGE = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param([event({}, "stop", usage=USAGE)], id="with the last choice"),
        pytest.param([event({}, "stop"), event(usage=USAGE)], id="after it"),
        pytest.param([event({"content": ""}, usage=USAGE), event({}, "stop", usage=None)], id="before it"),
        pytest.param(
            [event(choices=[{"delta": {}, "finish_reason": "stop", "usage": USAGE}])], id="inside the choice"
        ),
        pytest.param([event({}, "stop", usage={"prompt_tokens": 1}), event(usage=USAGE)], id="twice"),
    ],
)
async def test_usage_is_found_where_servers_put_it(ending) -> None:
    heard = await hear(event({"content": "Hi"}), *ending)
    assert (heard.text, heard.usage) == ("Hi", TokenUsage(3, 1))


async def test_a_reply_that_is_not_streamed_is_read_like_one_that_is() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    message = {"role": "assistant", "content": "<think>Hm.</think>I add.", "tool_calls": [call]}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": USAGE}
    reply = Reply([json.dumps(body).encode()], headers={"content-type": "application/json"})
    async with Loopback(reply) as server, OllamaProvider(base_url=server.url) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))
    assert (heard.text, made(heard), heard.stops) == (
        "I add.",
        [("c1", "add", {"a": 1, "b": 2})],
        ["tool_use"],
    )
    assert ReasoningBlock("Hm.") in heard.chunks
