from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.providers.loopback import DONE, Loopback, Reply, event, text_reply, tool_delta
from tests.providers.reading import ask, listen, text_of

from robota.core.encoded import EncodedHistory
from robota.core.errors import ConfigurationError, NetworkError, ProviderError
from robota.core.messages import AssistantMessage, Message, TokenUsage, ToolCall, ToolMessage, UserMessage
from robota.core.provider import (
    Capabilities,
    MetadataChunk,
    NativeWebTools,
    StopChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.providers.openai_compatible import OpenAICompatibleProvider

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


@asynccontextmanager
async def serve(*replies: Reply, **options: Any) -> AsyncIterator[tuple[OpenAICompatibleProvider, Loopback]]:
    async with (
        Loopback(*replies) as server,
        OpenAICompatibleProvider(KEY, server.url, "m", name="acme", **options) as provider,
    ):
        yield provider, server


# --- a conversation ----------------------------------------------------------------------------------


async def test_a_tool_round_goes_over_the_wire_and_back() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    asking = Reply(
        [
            event({"role": "assistant", "content": None}),
            event(tool_delta(index=0, id="c1", function={"name": "add", "arguments": '{"a"'})),
            event(tool_delta(index=0, function={"arguments": ":1}"})),
            event({}, "tool_calls"),
            event(None, usage=usage),
            DONE,
        ]
    )
    add = ToolSchema("add", "Adds.", {"type": "object"})
    call = ToolCall("c1", "add", '{"a":1}')
    async with serve(asking, text_reply("One", " more.")) as (provider, server):
        messages: list[Message] = [UserMessage("1+?")]
        history = EncodedHistory(messages, starts := [0])
        first = await listen(provider, ask(messages=messages, history=history, tools=(add,)))
        messages += [AssistantMessage("", (call,)), ToolMessage("2", "c1", "add")]
        starts += [1, 2]
        second = await listen(provider, ask(messages=messages, history=history, tools=(add,)))
        sent = [request.json["messages"] for request in server.requests]
    metadata = MetadataChunk({"model": "served-model", "responseId": "chatcmpl-1"})
    assert first == [
        metadata,
        ToolInputChunk(0, '{"a"', "c1", "add"),
        ToolInputChunk(0, ":1}", "c1", "add"),
        call,
        TokenUsage(10, 5),
        StopChunk("tool_use", "tool_calls"),
    ]
    assert second == [metadata, TextChunk("One"), TextChunk(" more."), StopChunk("end_turn", "stop")]
    assert sent[1][:1] == sent[0]
    assert [message["role"] for message in sent[1]] == ["user", "assistant", "tool"]
    assert history.encodings == 3


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/?api-version=2", "/v1/chat/completions?api-version=2"),
    ],
)
async def test_the_base_url_is_taken_as_given(base: str, path: str) -> None:
    async with (
        Loopback(text_reply("ok")) as server,
        OpenAICompatibleProvider(None, f" {server.origin}{base}", "m") as provider,
    ):
        await listen(provider)
        assert server.requests[0].path == path
        assert "authorization" not in server.requests[0].headers


async def test_headers_given_win_over_ours() -> None:
    async with serve(text_reply("ok"), headers={"Authorization": "Token t", "X-Title": "x"}) as (
        provider,
        server,
    ):
        await listen(provider)
        headers = server.requests[0].headers
        assert (headers["authorization"], headers["x-title"]) == ("Token t", "x")


def test_a_provider_needs_a_base_url() -> None:
    with pytest.raises(ConfigurationError, match="needs a base_url"):
        OpenAICompatibleProvider(KEY)


async def test_hosted_web_tools_are_refused_before_anything_is_sent() -> None:
    async with serve() as (provider, server):
        with pytest.raises(ConfigurationError, match="web search"):
            await listen(provider, ask(native_web_tools=NativeWebTools(web_search=True)))
        assert server.connections == 0


async def test_capabilities_decide_what_is_sent() -> None:
    schema = {"type": "object", "additionalProperties": False}
    async with serve(text_reply("{}"), capabilities=Capabilities(output_schema=True)) as (provider, server):
        await listen(provider, ask(output_schema=schema))
        assert server.requests[0].json["response_format"]["json_schema"]["schema"] == schema


# --- connections -----------------------------------------------------------------------------------------


async def test_half_a_json_body_is_a_network_error() -> None:
    async with serve(Reply([b'{"choices": [{"message'], cut=True)) as (provider, _):
        with pytest.raises(NetworkError):
            await listen(provider)


async def test_an_error_in_the_stream_closes_the_connection() -> None:
    broken = Reply([event({"content": "a"}), b'data: {"error":{"message":"no"}}\n\n'], hang=True)
    async with serve(broken) as (provider, server):
        with pytest.raises(ProviderError, match=r"acme broke off its reply \(no\)"):
            await listen(provider)
        await server.hung_up.wait()


async def test_more_than_a_hundred_replies_may_be_under_way_at_once() -> None:
    everybody = asyncio.Barrier(120)
    reply = Reply([event({"content": "a"}), everybody, event({"content": "b"}, "stop"), DONE])
    async with serve(*[reply] * 120) as (provider, _):
        assert await asyncio.gather(*(text_of(provider) for _ in range(120))) == ["ab"] * 120


# --- leaving early ---------------------------------------------------------------------------------------

ENDLESS = Reply([event({"content": "Hel"}), event({"content": "lo"})], hang=True)


async def test_an_abort_between_two_chunks_closes_the_connection() -> None:
    async with serve(ENDLESS, text_reply("again")) as (provider, server):
        with anyio.CancelScope() as scope:
            async with aclosing(provider.stream(ask())) as chunks:
                async for chunk in chunks:
                    if chunk == TextChunk("Hel"):
                        scope.cancel()
                        break
        await server.hung_up.wait()
        assert await text_of(provider) == "again"


async def test_a_cancelled_task_closes_the_connection_and_stays_cancelled() -> None:
    async with serve(ENDLESS) as (provider, server):
        came = asyncio.Event()

        async def read() -> None:
            async for chunk in provider.stream(ask()):
                if chunk == TextChunk("lo"):
                    came.set()

        task = asyncio.ensure_future(read())
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.hung_up.wait()


async def test_a_stream_that_is_forgotten_closes_its_connection() -> None:
    async with serve(ENDLESS) as (provider, server):
        stream = provider.stream(ask())
        await anext(stream)
        del stream
        gc.collect()
        await server.hung_up.wait()
