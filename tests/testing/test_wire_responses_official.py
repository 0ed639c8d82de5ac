from __future__ import annotations

import openai
import pytest

from robota.core.messages import ReasoningBlock, TokenUsage
from robota.core.provider import ReasoningChunk, ServerToolChunk, StopChunk
from robota.providers.scripted import call
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio

REPLY = [
    ReasoningChunk("Hm."),
    ReasoningBlock("So."),
    ServerToolChunk("web_search", {"query": "turtles"}),
    "Hel",
    "lo",
    call("add", id="c1", a=1, b="a longer text"),
    TokenUsage(7, 3, 2, 0, 1),
]


def describe(response) -> list[str]:
    return [item.type for item in response.output]


async def test_the_vendors_client_understands_the_stream_and_the_document() -> None:
    async with (
        ModelServer(REPLY, REPLY, ["No", StopChunk("refusal", "I won't.")]) as server,
        openai.AsyncOpenAI(api_key="test", base_url=f"{server.url}/v1") as client,
    ):
        async with client.responses.stream(model="m", input="Hi") as stream:
            events = [event async for event in stream]
            streamed = await stream.get_final_response()
        whole = await client.responses.create(model="m", input="Hi")
        refused = await client.responses.create(model="m", input="Hi")
    assert streamed.output_text == whole.output_text == "Hello"
    assert describe(streamed) == describe(whole)
    assert describe(whole) == ["reasoning", "reasoning", "web_search_call", "message", "function_call"]
    assert [event.delta for event in events if event.type == "response.output_text.delta"] == ["Hel", "lo"]
    assert whole.output[-1].arguments == '{"a":1,"b":"a longer text"}'
    assert (whole.usage.input_tokens, whole.usage.total_tokens) == (7, 10)
    assert refused.output[-1].content[0].refusal == "I won't."
