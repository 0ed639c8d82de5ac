from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from robota.core.encoded import EncodedHistory
from robota.core.errors import ConfigurationError, ModelNotAvailableError, ProviderError, RateLimitError
from robota.core.messages import AssistantMessage, Message, ReasoningBlock, ToolMessage, UserMessage
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    ModelSettings,
    NativeWebTools,
    ServerToolChunk,
    ToolSchema,
)
from robota.providers.openai import OpenAIProvider
from robota.providers.scripted import call
from robota.testing.model_script import ContentType, HttpError, RawBytes
from robota.testing.model_server import ModelServer
from robota.testing.reply_conformance import ADD, ask, listen

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


@asynccontextmanager
async def serve(*replies: Any, **options: Any) -> AsyncIterator[tuple[OpenAIProvider, ModelServer]]:
    async with (
        ModelServer(*replies) as server,
        OpenAIProvider(KEY, f"{server.url}/v1", **{"api": "responses", **options}) as provider,
    ):
        yield provider, server


@asynccontextmanager
async def recording(**options: Any) -> AsyncIterator[tuple[OpenAIProvider, list[httpx2.Request]]]:
    """A provider whose requests go nowhere."""
    sent: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(200, json={"output": [], "choices": [{"message": {"content": ""}}]})

    async with OpenAIProvider(transport=httpx2.MockTransport(answer), **options) as provider:
        yield provider, sent


# --- which service, which protocol -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "url"),
    [
        ({}, "https://api.openai.com/v1/responses"),
        ({"base_url": "https://api.openai.com/v1/"}, "https://api.openai.com/v1/responses"),
        ({"api": "chat"}, "https://api.openai.com/v1/chat/completions"),
        ({"base_url": "http://host/v1"}, "http://host/v1/chat/completions"),
        ({"base_url": "http://host/v1/", "api": "responses"}, "http://host/v1/responses"),
        ({"base_url": "http://host/v1/responses?v=2", "api": "responses"}, "http://host/v1/responses?v=2"),
    ],
)
async def test_the_responses_api_is_used_unless_the_address_is_custom(options: Any, url: str) -> None:
    async with recording(api_key=KEY, **options) as (provider, sent):
        await listen(provider)
    assert str(sent[0].url) == url


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"api": "chat"}, "max_completion_tokens"),
        ({"base_url": "http://host/v1"}, "max_tokens"),
        ({}, "max_output_tokens"),
    ],
)
async def test_the_token_limit_has_the_name_that_the_service_knows(options: Any, field: str) -> None:
    async with recording(api_key=KEY, **options) as (provider, sent):
        await listen(provider, ask(settings=ModelSettings(max_tokens=9)))
    assert json.loads(sent[0].content)[field] == 9


async def test_the_key_of_the_environment_goes_to_its_own_service_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for options, key in (
        ({}, f"Bearer {KEY}"),
        ({"api_key": "sk-other"}, "Bearer sk-other"),
        ({"base_url": "http://host/v1"}, None),
        ({"base_url": "http://host/v1", "api": "responses"}, None),
    ):
        async with recording(**options) as (provider, sent):
            await listen(provider)
        assert sent[0].headers.get("authorization") == key


async def test_headers_given_win_over_ours() -> None:
    headers = {"Authorization": "Token t", "OpenAI-Organization": "org"}
    async with recording(api_key=KEY, headers=headers) as (provider, sent):
        await listen(provider)
    assert sent[0].headers["authorization"] == "Token t"
    assert sent[0].headers["openai-organization"] == "org"


async def test_the_request_names_the_model_or_the_provider_does() -> None:
    async with serve("a", "b") as (provider, server):
        with pytest.raises(ConfigurationError, match="needs a model"):
            await listen(provider, ChatRequest(model="", messages=[UserMessage("hi")]))
        provider.model = "mine"
        await listen(provider, ChatRequest(model="", messages=[UserMessage("hi")]))
        await listen(provider)
    assert [request.json["model"] for request in server.requests] == ["mine", "test-model"]
    assert provider.model == "mine"


def test_strict_tools_need_the_responses_api() -> None:
    with pytest.raises(ConfigurationError, match="strict_tools needs the Responses API"):
        OpenAIProvider(KEY, "http://host/v1", strict_tools=True)


def test_capabilities_are_those_of_the_protocol_or_given() -> None:
    assert OpenAIProvider(KEY).capabilities.web_search.enabled
    assert OpenAIProvider(KEY).capabilities.vision
    assert OpenAIProvider(KEY, "http://host/v1").capabilities == Capabilities()
    assert OpenAIProvider(KEY, capabilities=Capabilities.NONE).capabilities == Capabilities.NONE


# --- conversations ---------------------------------------------------------------------------------------


async def test_a_tool_round_keeps_reasoning_and_encodes_nothing_twice() -> None:
    made = call("add", "call_1", a=1, b=2)
    thinking = ReasoningBlock("Hm.", data={"id": "rs_1", "encrypted_content": "secret thoughts"})
    async with serve([thinking, made], "Three.") as (provider, server):
        messages: list[Message] = [UserMessage("1+2?")]
        history = EncodedHistory(messages, starts := [0])
        request = ChatRequest(model="m", messages=messages, history=history, tools=(ADD,))
        first = await listen(provider, request)
        reasoning = tuple(chunk for chunk in first.chunks if isinstance(chunk, ReasoningBlock))
        messages += [
            AssistantMessage("", tuple(first.calls), reasoning=reasoning),
            ToolMessage("3", "call_1", "add"),
        ]
        starts += [1, 2]
        second = await listen(provider, request)
    assert second.text == "Three."
    sent = server.requests[1].json["input"]
    assert [item.get("type", "message") for item in sent] == [
        "message", "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip
    assert (sent[1]["id"], sent[1]["encrypted_content"]) == ("rs_1", "secret thoughts")
    assert history.encodings == 3


async def test_strict_tools_are_closed_on_the_wire_and_open_for_the_tool() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    tool = ToolSchema("add", "", {**parameters, "required": ["a"]})
    async with serve([call("add", "c1", a=1, b=None)], strict_tools=True) as (provider, server):
        heard = await listen(provider, ask(tools=(tool,)))
    assert heard.calls == [call("add", "c1", a=1)]
    assert server.requests[0].json["tools"][0]["parameters"]["required"] == ["a", "b"]


async def test_web_search_runs_at_the_service() -> None:
    searched = ServerToolChunk("web_search", {"query": "turtles"})
    async with serve([searched, "Slow."]) as (provider, server):
        heard = await listen(provider, ask(native_web_tools=NativeWebTools(web_search=True)))
        with pytest.raises(ConfigurationError, match="opens the pages it needs by itself"):
            await listen(provider, ask(native_web_tools=NativeWebTools(web_fetch=True)))
    assert searched in heard.chunks
    assert server.requests[0].json["tools"] == [{"type": "web_search"}]
    assert len(server.requests) == 1


async def test_a_proxy_that_strips_streaming_changes_nothing() -> None:
    whole = (
        b'{"object":"response","status":"completed","output":[{"type":"message","content":[{"text":"Hi"}]}]}'
    )
    async with serve([ContentType("application/json"), RawBytes(whole)]) as (provider, _):
        heard = await listen(provider)
    assert (heard.text, heard.stops) == ("Hi", ["end_turn"])


async def test_a_setting_that_the_api_lacks_costs_no_request() -> None:
    async with serve() as (provider, server):
        with pytest.raises(ConfigurationError, match="no stop sequences"):
            await listen(provider, ask(settings=ModelSettings(stop=("X",))))
    assert server.requests == []


# --- refusals --------------------------------------------------------------------------------------------


async def test_a_rate_limit_says_how_long_to_wait_and_which_request_it_was() -> None:
    refusal = HttpError(429, headers={"retry-after": "7", "x-request-id": "req_1"})
    async with serve(refusal) as (provider, _):
        with pytest.raises(RateLimitError) as caught:
            await listen(provider)
    assert (caught.value.retry_after, caught.value.request_id) == (7, "req_1")


async def test_a_conversation_too_long_and_a_model_unknown_are_told_apart() -> None:
    too_long = {"error": {"message": "Your input exceeds the window.", "code": "context_length_exceeded"}}
    unknown = {"error": {"message": "The model 'x' does not exist.", "code": "model_not_found"}}
    async with serve(HttpError(400, too_long), HttpError(404, unknown)) as (provider, _):
        with pytest.raises(ProviderError, match="cannot take a conversation this long"):
            await listen(provider)
        with pytest.raises(ModelNotAvailableError):
            await listen(provider)
