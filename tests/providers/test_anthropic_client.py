from __future__ import annotations

import pytest
from tests.support.lazy import anthropic

from robota.core.errors import ConfigurationError, ModelNotAvailableError, ProviderError, RateLimitError
from robota.core.messages import (
    ReasoningBlock,
    UserMessage,
)
from robota.core.provider import (
    NativePayload,
    NativeWebTools,
    ServerToolChunk,
    StopChunk,
    TextChunk,
)
from robota.providers.anthropic import AnthropicProvider
from robota.providers.scripted import call
from robota.testing.conformance import HttpProviderConformance
from robota.testing.model_script import ErrorEvent, HttpError, RawBytes
from robota.testing.model_server import ModelServer
from robota.testing.reply_conformance import Heard, ask, listen

KEY = "sk-ant-test-key"


def official(url):
    return anthropic.AsyncAnthropic(api_key=KEY, base_url=url)


class OwningProvider(AnthropicProvider):
    """Closes the client with itself, which the ordinary one leaves to the caller."""

    def __init__(self, client):
        super().__init__(client=client, model="test-model")
        self._own = client

    async def aclose(self):
        await super().aclose()
        await self._own.close()


class TestAnthropicProviderWithTheOfficialClient(HttpProviderConformance):
    """Every byte of a stream is tried with our own client."""

    cut_every = 13

    def make_provider(self, server):
        return OwningProvider(official(server.url))

    # a client serves one event loop, and passes over pages and events without a name
    test_one_provider_serves_one_event_loop_after_another = None
    test_a_web_page_instead_of_a_reply_is_an_error_without_markup = None
    test_a_fault_inside_the_stream_is_an_error_after_the_text = None


REPLY = [
    ReasoningBlock("Hm.", "sig"),
    "Let me ",
    "see.",
    ServerToolChunk("web_search", {"query": "x"}),
    call("add", "toolu_1", a=1),
    StopChunk("tool_use"),
]


@pytest.mark.anyio
async def test_both_ways_hear_the_same_of_a_hosted_tool():
    request = ask(UserMessage("News?"), native_web_tools=NativeWebTools(web_search=True))
    async with (
        ModelServer(REPLY, repeat=True) as server,
        AnthropicProvider(KEY, server.url) as direct,
        official(server.url) as client,
        AnthropicProvider(client=client) as through_client,
    ):
        heard = [await listen(provider, request) for provider in (direct, through_client)]
    assert heard[0].chunks == heard[1].chunks
    assert ServerToolChunk("web_search", {"query": "x"}) in heard[0].chunks


@pytest.mark.anyio
async def test_native_payloads_come_through_the_client_too():
    async with (
        ModelServer("ok") as server,
        official(server.url) as client,
        AnthropicProvider(client=client, model="m") as provider,
    ):
        heard = await listen(provider, ask(want_raw=True))
    assert heard.text == "ok"
    assert all(chunk.raw for chunk in heard.chunks if isinstance(chunk, TextChunk))
    assert next(chunk.kind for chunk in heard.chunks if isinstance(chunk, NativePayload)) == "request"


@pytest.mark.anyio
async def test_text_that_is_no_unicode_goes_through_the_client_too():
    request = ask(UserMessage("caf\udce9.txt"))
    async with (
        ModelServer("ok", repeat=True) as server,
        AnthropicProvider(KEY, server.url) as direct,
        official(server.url) as client,
        AnthropicProvider(client=client) as through_client,
    ):
        for provider in (direct, through_client):
            assert (await listen(provider, request)).text == "ok"
    assert server.requests[0].json == server.requests[1].json


@pytest.mark.anyio
async def test_refusals_of_the_client_are_ours():
    missing = {"type": "error", "error": {"type": "not_found_error", "message": "model: test-model"}}
    slow = HttpError(429, headers={"retry-after": "7", "request-id": "req_7"})
    async with (
        ModelServer(HttpError(404, missing), slow) as server,
        official(server.url) as client,
        AnthropicProvider(client=client) as provider,
    ):
        with pytest.raises(ModelNotAvailableError):
            await listen(provider)
        with pytest.raises(RateLimitError) as caught:
            await listen(provider)
    assert (caught.value.retry_after, caught.value.request_id) == (7, "req_7")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "words", "status"),
    [
        (ErrorEvent("Overloaded", "overloaded_error"), "broke off its reply (Overloaded)", 529),
        (RawBytes(b"event: content_block_delta\ndata: {half\n\n"), "not a Messages reply", 200),
    ],
)
async def test_a_fault_inside_the_stream_is_an_error_after_the_text(fault, words, status):
    heard = Heard()
    async with (
        ModelServer(["Hel", fault]) as server,
        official(server.url) as client,
        AnthropicProvider(client=client) as provider,
    ):
        with pytest.raises(ProviderError) as caught:
            await listen(provider, heard=heard)
    assert words in str(caught.value)
    assert (heard.text, caught.value.status) == ("Hel", status)


@pytest.mark.anyio
async def test_a_client_that_cannot_sign_is_a_matter_of_configuration():
    class Unsigned(anthropic.AsyncAnthropic):
        async def _prepare_options(self, options):
            raise anthropic.AnthropicError("No credentials were found.")

    async with Unsigned(api_key=KEY) as client:
        with pytest.raises(ConfigurationError, match="No credentials were found"):
            await listen(AnthropicProvider(client=client))


def test_a_client_has_its_own_key():
    with pytest.raises(ConfigurationError, match="give these to the client"):
        AnthropicProvider(KEY, client=official("http://localhost"))
