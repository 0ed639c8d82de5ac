from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.providers.anthropic_events import END, event, start, stop, text
from tests.providers.loopback import Loopback, Reply
from tests.providers.reading import ask, listen, text_of

from robota.core.encoded import EncodedHistory
from robota.core.errors import (
    AuthenticationError,
    ModelNotAvailableError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.messages import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import (
    ModelSettings,
    NativeWebTools,
    ServerToolChunk,
    StopChunk,
    ToolSchema,
)
from robota.core.reply import chat
from robota.providers.anthropic import AnthropicProvider
from robota.providers.scripted import call
from robota.testing.model_script import HttpError
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio
KEY = "sk-ant-very-secret"
ADD = ToolSchema("add", "Adds.", {"type": "object"})


def saying(*words: str) -> Reply:
    return Reply([start(), *text(0, *words), stop(), END])


@asynccontextmanager
async def serve(*replies: Reply, **options: Any) -> AsyncIterator[tuple[AnthropicProvider, Loopback]]:
    async with (
        Loopback(*replies) as server,
        AnthropicProvider(KEY, server.origin, "m", name="acme", **options) as provider,
    ):
        yield provider, server


# --- requests ----------------------------------------------------------------------------------------


async def test_the_key_goes_as_a_bearer_token_with_the_current_version() -> None:
    async with serve(saying("ok")) as (provider, server):
        await listen(provider)
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["anthropic-version"] == "2026-10-21"
    assert "x-api-key" not in headers


async def test_headers_given_win_and_an_older_version_brings_sampling_back() -> None:
    headers = {"Anthropic-Version": "2023-06-01", "X-API-Key": KEY, "Authorization": "Bearer other"}
    async with serve(saying("ok"), headers=headers) as (provider, server):
        await listen(provider, ask(settings=ModelSettings(temperature=0.5)))
    sent = server.requests[0].headers
    assert (sent["anthropic-version"], sent["x-api-key"]) == ("2023-06-01", KEY)
    assert sent["authorization"] == "Bearer other"
    assert server.requests[0].json["temperature"] == 0.5


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/v1/messages"),
        ("/", "/v1/messages"),
        ("/v1", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/v1/messages", "/v1/messages"),
        ("/anthropic", "/anthropic/v1/messages"),
        ("/v1?beta=true", "/v1/messages?beta=true"),
    ],
)
async def test_the_base_url_may_have_its_version_or_not(base: str, path: str) -> None:
    async with (
        Loopback(saying("ok")) as server,
        AnthropicProvider(KEY, f" {server.origin}{base}", "m") as provider,
    ):
        await listen(provider)
        assert server.requests[0].path == path


async def test_the_key_of_the_environment_goes_to_the_vendor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200, content=b"".join(saying("ok").parts))  # type: ignore[arg-type]  # only bytes

    for options in ({}, {"base_url": "https://gateway.example"}):
        async with AnthropicProvider(
            model="m", transport=httpx2.MockTransport(answer), **options
        ) as provider:
            assert await text_of(provider) == "ok"
    assert [(request.url.host, request.headers.get("authorization")) for request in seen] == [
        ("api.anthropic.com", f"Bearer {KEY}"),
        ("gateway.example", None),
    ]


# --- conversations with the model server -----------------------------------------------------------------


async def test_a_tool_round_with_thinking_goes_over_the_wire_and_back() -> None:
    asking = [ReasoningBlock("Hm.", "sig"), "Let me add.", call("add", "toolu_1", a=1)]
    messages: list[Message] = [UserMessage("1+?")]
    history = EncodedHistory(messages, starts := [0])
    async with (
        ModelServer(asking, "One more.") as server,
        AnthropicProvider(KEY, server.url, "m") as provider,
    ):
        first = await chat(provider, ask(messages=messages, history=history, tools=(ADD,)))
        messages += [first, ToolMessage("2", "toolu_1", "add")]
        starts += [1, 2]
        second = await chat(provider, ask(messages=messages, history=history, tools=(ADD,)))
    assert (first.content, first.tool_calls) == ("Let me add.", (ToolCall("toolu_1", "add", '{"a":1}'),))
    assert second.content == "One more."
    assert server.requests[1].json["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                {"type": "text", "text": "Let me add."},
                {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": "2",
                    "cache_control": {"type": "ephemeral"},
                }
            ],
        },
    ]
    assert history.encodings == 3


async def test_a_hosted_search_that_pauses_goes_on_from_its_own_blocks() -> None:
    search = ServerToolChunk("web_search", {"query": "x"})
    wanted = NativeWebTools(web_search=True)
    async with (
        ModelServer(["Let me see. ", search, StopChunk("pause")], "Found.") as server,
        AnthropicProvider(KEY, server.url, "m") as provider,
    ):
        question = UserMessage("x?")
        paused = await chat(provider, ask(question, native_web_tools=wanted))
        await chat(provider, ask(question, paused, native_web_tools=wanted))
    last = server.requests[1].json["messages"][-1]
    assert (last["role"], [block["type"] for block in last["content"]]) == (
        "assistant",
        ["text", "server_tool_use", "web_search_tool_result"],
    )


async def test_stored_history_is_never_changed() -> None:
    history = (
        AssistantMessage("Summary."),
        ToolMessage("2", "gone", "add"),
        UserMessage(""),
        AssistantMessage(""),
        AssistantMessage("", (ToolCall("a:b", "add", "no json"),)),
    )
    before = repr(history)
    async with ModelServer("ok") as server, AnthropicProvider(KEY, server.url, "m") as provider:
        await listen(provider, ask(*history, tools=(ADD,)))
    assert repr(history) == before


# --- refusals --------------------------------------------------------------------------------------------


def refusal(status: int, kind: str, message: str, **headers: str) -> HttpError:
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return HttpError(status, body, {"request-id": "req_7", **headers})


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refusal(401, "authentication_error", "invalid bearer token"), AuthenticationError, "check the key"),
        (refusal(404, "not_found_error", "model: m"), ModelNotAvailableError, 'Model "m" is not available'),
        (
            refusal(429, "rate_limit_error", "Slow down", **{"retry-after": "7"}),
            RateLimitError,
            "wait a moment",
        ),
        (refusal(529, "overloaded_error", "Overloaded"), ProviderError, "try again in a moment"),
        (refusal(413, "request_too_large", "Too big"), ProviderError, "send smaller files"),
        (
            refusal(400, "invalid_request_error", "prompt is too long: 9 > 8 maximum"),
            ProviderError,
            "acme cannot take a conversation this long (400: prompt is too long: 9 > 8 maximum); compact it",
        ),
        (
            refusal(400, "invalid_request_error", "Your credit balance is too low (0)"),
            ProviderError,
            "has no credit left (400: Your credit balance is too low (0)); check the billing page",
        ),
        (refusal(400, "invalid_request_error", "messages: no"), ProviderError, "rejected the request"),
    ],
)
async def test_a_refusal_names_the_next_step(answer: HttpError, kind: type[RobotaError], words: str) -> None:
    async with (
        ModelServer(answer) as server,
        AnthropicProvider(KEY, server.url, "m", name="acme") as provider,
    ):
        with pytest.raises(kind) as caught:
            await listen(provider)
    assert words in str(caught.value)
    if not isinstance(caught.value, ModelNotAvailableError):
        assert getattr(caught.value, "request_id", None) == "req_7"
    if isinstance(caught.value, RateLimitError):
        assert caught.value.retry_after == 7


async def test_an_error_in_the_stream_has_the_request_id_and_closes_the_connection() -> None:
    broken = Reply(
        [start(), *text(0, "a"), event("error", error={"type": "overloaded_error", "message": "Overloaded"})],
        headers={"content-type": "text/event-stream", "request-id": "req_7"},
        hang=True,
    )
    async with serve(broken) as (provider, server):
        with pytest.raises(ProviderError, match=r"acme broke off its reply \(Overloaded\)") as caught:
            await listen(provider)
        await server.hung_up.wait()
    assert (caught.value.status, caught.value.request_id) == (529, "req_7")


# --- connections -----------------------------------------------------------------------------------------
