from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply
from tests.providers.reading import ask, listen
from tests.support.lazy import genai

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.jsontext import encode
from robota.core.provider import Chunk, ModelSettings, TextChunk, ToolSchema
from robota.providers.gemini import GeminiProvider

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]

ADD = ToolSchema("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def event(*parts: dict[str, Any], **fields: Any) -> bytes:
    return b"data: %b\r\n\r\n" % encode(
        {"candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **fields}]}
    )


@asynccontextmanager
async def serve(*replies: Reply) -> AsyncIterator[tuple[GeminiProvider, GeminiProvider, Loopback]]:
    """A provider with the official client, one without, and the server of both."""
    async with Loopback(*replies) as server:
        options = {"base_url": server.origin, "api_version": "v1beta"}
        client = genai.Client(api_key="k", http_options=options)
        async with GeminiProvider("k", server.origin, "gemini-3-pro") as direct:
            yield GeminiProvider(model="gemini-3-pro", client=client), direct, server
        await client.aio.aclose()


@pytest.mark.parametrize(
    ("status", "expected"),
    [(400, ProviderError), (403, AuthenticationError), (429, RateLimitError), (503, ProviderError)],
)
async def test_a_refusal_is_the_error_of_its_kind(status: int, expected: type[RobotaError]) -> None:
    body = encode({"error": {"code": status, "message": "Said no.", "status": "X"}})
    async with serve(Reply([body], status, {"content-type": "application/json"})) as (official, _, _server):
        with pytest.raises(expected, match=r"Said no") as caught:
            await listen(official)
        assert type(caught.value) is expected


@pytest.mark.parametrize(
    "broken",
    [
        Reply([event({"text": "Hel"})], cut=True),
        Reply([event({"text": "Hel"})]),
        Reply([event({"text": "Hel"}), event({"text": "lo"})[:-20]]),
    ],
)
async def test_a_cut_is_a_network_error_after_the_text(broken: Reply) -> None:
    async with serve(broken) as (official, _, _server):
        heard: list[Chunk] = []
        with pytest.raises(NetworkError):
            await listen(official, heard=heard)
        assert heard == [TextChunk("Hel")]


async def test_an_error_in_the_stream_is_told_after_the_text() -> None:
    overloaded = {"error": {"code": 503, "message": "Overloaded.", "status": "UNAVAILABLE"}}
    async with serve(Reply([event({"text": "Hel"}), b"data: %b\n\n" % encode(overloaded)])) as (
        official,
        _,
        _s,
    ):
        heard: list[Chunk] = []
        with pytest.raises(ProviderError, match="Overloaded") as caught:
            await listen(official, heard=heard)
        assert (heard, caught.value.status) == ([TextChunk("Hel")], 503)


async def test_cancelling_closes_the_connection() -> None:
    async with serve(Reply([event({"text": "Hel"})], hang=True)) as (official, _, server):
        came = asyncio.Event()

        async def read() -> None:
            async for _chunk in official.stream(ask()):
                came.set()

        task = asyncio.ensure_future(read())
        await asyncio.wait_for(came.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 5)


async def test_credentials_that_fail_are_told() -> None:
    from google.auth.exceptions import RefreshError

    class Refusing:
        async def generate_content_stream(self, **_: object) -> Any:
            raise RefreshError("expired")

        aio = property(lambda self: self)
        models = property(lambda self: self)

    with pytest.raises(AuthenticationError, match="no valid credentials"):
        await listen(GeminiProvider(model="m", client=Refusing()))


async def test_leaving_early_closes_the_connection() -> None:
    async with serve(Reply([event({"text": "Hel"})], hang=True)) as (official, _, server):
        stream = official.stream(ask())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.hung_up.wait(), 5)


async def test_a_field_the_client_does_not_know_is_named() -> None:
    async with serve() as (official, _, server):
        with pytest.raises(ConfigurationError, match="does not take newField"):
            await listen(official, ask(settings=ModelSettings(extra={"newField": 1})))
        assert server.connections == 0
