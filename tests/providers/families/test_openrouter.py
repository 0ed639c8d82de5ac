from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from tests.providers.loopback import DONE, Loopback, Reply, event

from robota.core.errors import AuthenticationError, ProviderError, RateLimitError
from robota.core.messages import AssistantMessage, ReasoningBlock, UserMessage
from robota.core.provider import ReasoningChunk
from robota.providers.openrouter import OpenRouterProvider
from robota.testing.reply_conformance import Heard, ask, listen

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(*replies, **options):
    async with (
        Loopback(*replies) as server,
        OpenRouterProvider("test-key", server.origin, "vendor/model", **options) as provider,
    ):
        yield provider, server


async def test_it_is_told_whose_requests_these_are_only_if_the_user_says_so() -> None:
    named = {"app_url": "https://example.org", "app_title": "Tests", "headers": {"X-Title": "Mine"}}
    sent = []
    for options in ({}, named):
        async with serving(Reply([event({"content": "Hi"}, "stop"), DONE]), **options) as (provider, server):
            await listen(provider)
            sent.append(server.requests[0].headers)
    silent, told = sent
    assert "http-referer" not in silent
    assert "x-title" not in silent
    assert (told["http-referer"], told["x-title"]) == ("https://example.org", "Mine")


async def test_details_of_thinking_are_kept_and_sent_back() -> None:
    def thought(said: str | None, **detail: object) -> bytes:
        return event({"content": "", "reasoning": said, "reasoning_details": [{"index": 0, **detail}]})

    reply = Reply(
        [
            thought("I ", type="reasoning.text", text="I ", format="anthropic-claude-v1"),
            thought("add.", type="reasoning.text", text="add."),
            thought(None, type="reasoning.text", signature="sig"),
            event({"reasoning_details": [{"index": 1, "type": "reasoning.encrypted", "data": "xyz"}]}),
            event({"content": "Three."}, "stop"),
            DONE,
        ]
    )
    async with serving(reply, Reply([event({"content": "Yes."}, "stop"), DONE])) as (provider, server):
        heard = await listen(provider)
        blocks = tuple(chunk for chunk in heard.chunks if isinstance(chunk, ReasoningBlock))
        history = (
            UserMessage("1 + 2?"),
            AssistantMessage("Three.", reasoning=blocks),
            UserMessage("Sure?"),
        )
        await listen(provider, ask(*history))
    assert [chunk.text for chunk in heard.chunks if isinstance(chunk, ReasoningChunk)] == ["I ", "add."]
    assert [block.text for block in blocks] == ["I add."]
    assert server.requests[1].json["messages"][1]["reasoning_details"] == [
        {
            "index": 0, "type": "reasoning.text", "text": "I add.", "signature": "sig",
            "format": "anthropic-claude-v1",
        },
        {"index": 1, "type": "reasoning.encrypted", "data": "xyz"},
    ]  # fmt: skip


BROKEN = {"code": 502, "message": "Upstream went away"}


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(event({"content": ""}, "error", error=BROKEN), id="beside the choices"),
        pytest.param(
            event(choices=[{"delta": {"content": ""}, "finish_reason": "error", "error": BROKEN}]),
            id="in a choice",
        ),
    ],
)
async def test_an_error_inside_a_reply_that_began_well_is_raised_after_the_text(ending) -> None:
    async with serving(Reply([b": OPENROUTER PROCESSING\n\n", event({"content": "Hel"}), ending])) as (
        provider,
        _,
    ):
        heard = Heard()
        with pytest.raises(ProviderError, match="Upstream went away") as caught:
            await listen(provider, heard=heard)
    assert (heard.text, heard.stops, caught.value.status) == ("Hel", [], 502)


@pytest.mark.parametrize(
    ("code", "expected"), [(401, AuthenticationError), (429, RateLimitError), (402, ProviderError)]
)
async def test_an_error_with_status_200_is_the_error_of_its_code(code, expected) -> None:
    body = b'{"error": {"code": %d, "message": "Not today"}}' % code
    async with serving(Reply([body], headers={"content-type": "application/json"})) as (provider, _):
        with pytest.raises(expected, match="Not today") as caught:
            await listen(provider)
    assert type(caught.value) is expected


async def test_what_the_service_behind_it_said_is_in_the_error() -> None:
    body = (
        b'{"error": {"code": 400, "message": "Provider returned error", "metadata": '
        b'{"provider_name": "DeepSeek", "raw": "{\\"error\\":{\\"message\\":\\"Too many images\\"}}"}}}'
    )
    async with serving(Reply([body], status=400, headers={"content-type": "application/json"})) as (
        provider,
        _,
    ):
        with pytest.raises(ProviderError, match="Too many images"):
            await listen(provider)
