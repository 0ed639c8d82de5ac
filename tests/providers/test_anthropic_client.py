from __future__ import annotations

import anthropic
import pytest

from robota.core.errors import ConfigurationError, ModelNotAvailableError, ProviderError, RateLimitError
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import (
    ModelSettings,
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
from robota.testing.reply_conformance import ADD, Heard, ask, listen

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
    def make_provider(self, server):
        return OwningProvider(official(server.url))

    # a client serves one event loop, and passes over pages and events without a name
    test_one_provider_serves_one_event_loop_after_another = None
    test_a_web_page_instead_of_a_reply_is_an_error_without_markup = None
    test_a_fault_inside_the_stream_is_an_error_after_the_text = None


CONVERSATIONS = {
    "text": ask(SystemMessage("Be brief."), UserMessage("Hi")),
    "tools": ask(
        UserMessage("1+1?"),
        AssistantMessage("Well.", (ToolCall("c1", "add", '{"a":1}'), ToolCall("c2", "add", '{"a":2}'))),
        ToolMessage("1", "c1", "add"),
        ToolMessage("2", "c2", "add", metadata={"success": False}),
        tools=(ADD,),
        settings=ModelSettings(tool_choice="required", max_tokens=99, stop=("X",)),
    ),
    "images": ask(
        UserMessage(
            "Look", (TextPart("Look"), ImagePart("aW1n"), FilePart("cGRm", "application/pdf", "a.pdf"))
        )
    ),
    "thinking": ask(
        UserMessage("Hm?"),
        AssistantMessage("Yes.", reasoning=(ReasoningBlock("Hm.", "sig"),)),
        UserMessage("Sure?"),
        settings=ModelSettings(effort="high"),
    ),
    "search": ask(UserMessage("News?"), native_web_tools=NativeWebTools(web_search=True)),
}
REPLY = [
    ReasoningBlock("Hm.", "sig"),
    "Let me ",
    "see.",
    ServerToolChunk("web_search", {"query": "x"}),
    call("add", id="toolu_1", a=1),
    StopChunk("tool_use"),
]


@pytest.mark.anyio
@pytest.mark.parametrize("request_", CONVERSATIONS.values(), ids=list(CONVERSATIONS))
async def test_both_ways_send_the_same_body_and_hear_the_same_reply(request_):
    async with (
        ModelServer(REPLY, repeat=True) as server,
        AnthropicProvider(KEY, server.url) as direct,
        official(server.url) as client,
        AnthropicProvider(client=client) as through_client,
    ):
        heard = [await listen(provider, request_) for provider in (direct, through_client)]
    ours, theirs = server.requests
    assert ours.json == theirs.json
    assert ours.path == theirs.path
    for name in ("authorization", "anthropic-version", "content-type"):
        assert ours.headers[name] == theirs.headers[name]
    assert heard[0].chunks == heard[1].chunks


@pytest.mark.anyio
async def test_the_official_client_makes_the_same_body_from_the_same_conversation():
    async with ModelServer("ok", "ok") as server, official(server.url) as client:
        async with AnthropicProvider(KEY, server.url, prompt_caching=False) as provider:
            await listen(provider, CONVERSATIONS["thinking"])
        stream = await client.messages.create(
            model="test-model",
            max_tokens=16_384,
            thinking={"type": "adaptive", "display": "summarized"},
            output_config={"effort": "high"},
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "Hm?"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                        {"type": "text", "text": "Yes."},
                    ],
                },
                {"role": "user", "content": [{"type": "text", "text": "Sure?"}]},
            ],
            stream=True,
        )
        await stream.close()
    assert server.requests[0].json == server.requests[1].json


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
        (RawBytes(b"event: content_block_delta\ndata: {half\n\n"), "no Messages reply", 200),
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
