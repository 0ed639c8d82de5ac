from __future__ import annotations

import pytest
from tests.support.lazy import openai

from robota.core.errors import ConfigurationError, NetworkError, RateLimitError
from robota.core.messages import ToolMessage, UserMessage
from robota.core.provider import TextChunk
from robota.providers.openai import OpenAIProvider
from robota.providers.scripted import call
from robota.testing.model_script import Cut, HttpError
from robota.testing.model_server import ModelServer
from robota.testing.reply_conformance import ADD, Heard, ask, listen

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"


def connect(server: ModelServer):
    return openai.AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/v1")


async def test_the_client_sends_the_same_body_and_yields_the_same_chunks() -> None:
    reply = ["Let me add, ", "żółw.", call("add", "c1", a=1, b=2)]
    request = ask(UserMessage("1+2?"), ToolMessage("lost", "c0", "add"), tools=(ADD,), want_raw=True)
    async with ModelServer(reply, reply) as server, connect(server) as client:
        through_client = await listen(OpenAIProvider(client=client), request)
        async with OpenAIProvider(KEY, f"{server.url}/v1", api="responses") as direct:
            directly = await listen(direct, request)
    assert through_client.chunks == directly.chunks
    theirs, ours = server.requests
    assert theirs.json == ours.json
    assert (theirs.path, theirs.headers["authorization"]) == (ours.path, ours.headers["authorization"])


async def test_refusals_are_ours_and_not_tried_again() -> None:
    refusal = HttpError(429, {"error": {"message": f"Slow down, {KEY}."}}, {"retry-after": "7"})
    async with ModelServer(refusal) as server, connect(server) as client:
        with pytest.raises(RateLimitError, match=r"Slow down, \*\*\*") as caught:
            await listen(OpenAIProvider(client=client))
    assert caught.value.retry_after == 7
    assert len(server.requests) == 1


async def test_a_broken_connection_is_a_network_error() -> None:
    async with ModelServer(Cut(), ["Hel", Cut()]) as server, connect(server) as client:
        provider = OpenAIProvider(client=client)
        heard = Heard()
        for _ in range(2):
            with pytest.raises(NetworkError):
                await listen(provider, heard=heard)
    assert TextChunk("Hel") in heard.chunks


async def test_the_client_stays_the_callers_to_close() -> None:
    async with ModelServer("a", "b") as server, connect(server) as client:
        async with OpenAIProvider(client=client) as provider:
            assert (await listen(provider)).text == "a"
        assert (await listen(OpenAIProvider(client=client))).text == "b"


@pytest.mark.parametrize(
    "options", [{"api_key": KEY}, {"base_url": "http://host/v1"}, {"headers": {"a": "b"}}, {"api": "chat"}]
)
async def test_a_client_and_what_it_brings_are_not_given_both(options) -> None:
    async with openai.AsyncOpenAI(api_key=KEY) as client:
        with pytest.raises(ConfigurationError, match="brings its own key"):
            OpenAIProvider(client=client, **options)
