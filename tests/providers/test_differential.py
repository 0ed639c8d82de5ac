"""Our requests beside those of the vendors' own clients, and what both ways make of the same bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, NamedTuple

import httpx2
import pytest
from tests.providers.conversations import conversations
from tests.providers.official_requests import ANTHROPIC, OPENAI
from tests.providers.wires import KEY, WIRES
from tests.support.lazy import anthropic, genai, openai

from robota.core.provider import Capabilities, ChatRequest, Chunk
from robota.providers.anthropic import AnthropicProvider
from robota.providers.anthropic.provider import CAPABILITIES
from robota.providers.gemini import GeminiProvider
from robota.providers.openai import OpenAIProvider
from robota.providers.wire.provider import WireProvider

# google-genai uses names that its own dependencies have deprecated
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("default")]


class Recorder(httpx2.AsyncBaseTransport):
    """Answers everything with the recorded reply of a wire, and remembers what it was asked."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream
        self.requests: list[httpx2.Request] = []
        self.bodies: list[Any] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        self.bodies.append(json.loads(await request.aread()))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=self.stream)


class Vendor(NamedTuple):
    name: str
    model: str
    official: Callable[[], dict[str, dict[str, Any]]]
    connect: Callable[[httpx2.AsyncBaseTransport], Any]
    """The vendor's own client."""
    direct: Callable[[httpx2.AsyncBaseTransport], WireProvider | OpenAIProvider]
    through: Callable[[Any], WireProvider | OpenAIProvider]
    """Our provider with the vendor's client."""
    ask: Callable[[Any, dict[str, Any]], Awaitable[Any]]
    """A request by hand."""


ABLE: Capabilities = Capabilities(
    vision=True, files=True, output_schema=True, web_search=CAPABILITIES.web_search
)


async def ask_anthropic(client: Any, fields: dict[str, Any]) -> Any:
    return await client.messages.create(
        **{"model": "claude-sonnet-4-6", "max_tokens": 64_000, "stream": True, **fields}
    )


async def ask_openai(client: Any, fields: dict[str, Any]) -> Any:
    include = ["reasoning.encrypted_content"]
    return await client.responses.create(model="gpt-5.6", stream=True, store=False, include=include, **fields)


async def ask_google(client: Any, fields: dict[str, Any]) -> Any:
    async for _ in await client.aio.models.generate_content_stream(model="gemini-3-pro", **fields):
        pass


def connect_google(transport: httpx2.AsyncBaseTransport) -> genai.Client:
    http = httpx2.AsyncClient(transport=transport)
    return genai.Client(
        api_key=KEY, http_options=genai.types.HttpOptions(api_version="v1beta", httpx_async_client=http)
    )


VENDORS = [
    Vendor(
        "anthropic",
        "claude-sonnet-4-6",
        lambda: ANTHROPIC,
        lambda to: anthropic.AsyncAnthropic(api_key=KEY, http_client=httpx2.AsyncClient(transport=to)),
        lambda to: AnthropicProvider(KEY, transport=to, capabilities=ABLE),
        lambda client: AnthropicProvider(client=client, capabilities=ABLE),
        ask_anthropic,
    ),
    Vendor(
        "responses",
        "gpt-5.6",
        lambda: OPENAI,
        lambda to: openai.AsyncOpenAI(api_key=KEY, http_client=httpx2.AsyncClient(transport=to)),
        lambda to: OpenAIProvider(KEY, transport=to),
        lambda client: OpenAIProvider(client=client),
        ask_openai,
    ),
    Vendor(
        "gemini",
        "gemini-3-pro",
        lambda: import_module("tests.providers.official_google").GOOGLE,
        connect_google,
        lambda to: GeminiProvider(KEY, transport=to),
        lambda client: GeminiProvider(client=client),
        ask_google,
    ),
]
every_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=[vendor.name for vendor in VENDORS])
every_conversation = pytest.mark.parametrize("topic", list(ANTHROPIC))


@asynccontextmanager
async def record(vendor: Vendor) -> AsyncIterator[tuple[Recorder, Any]]:
    """A transport that plays the vendor's recorded reply, and the vendor's client in front of it."""
    recorder = Recorder(WIRES[vendor.name].stream)
    client = vendor.connect(recorder)
    yield recorder, client
    await (client.aio.aclose() if hasattr(client, "aio") else client.close())


async def listen(provider: Any, request: ChatRequest, model: str) -> list[Chunk]:
    provider.model = model
    async with provider:
        return [chunk async for chunk in provider.stream(request)]


def meaning(body: Any, vendor: Vendor) -> Any:
    """The body without what means nothing: Google's client sends settings although there are none."""
    if vendor.name != "gemini":
        return body
    return {name: value for name, value in spelled(body).items() if (name, value) != ("generationConfig", {})}


def spelled(value: Any, key: str = "") -> Any:
    """Google's client mixes two spellings of a field, which mean the same to the service."""
    if isinstance(value, list):
        return [spelled(item) for item in value]
    if not isinstance(value, dict) or key.lower().endswith("schema") or key == "args":
        return value
    named = {name.split("_")[0] + "".join(map(str.title, name.split("_")[1:])): name for name in value}
    return {new: spelled(value[old], new) for new, old in named.items()}


def test_every_vendor_has_every_conversation() -> None:
    for vendor in VENDORS:
        assert list(vendor.official()) == list(conversations(vendor.name))


@every_vendor
@every_conversation
async def test_our_body_is_what_the_official_client_sends_for_the_same(vendor: Vendor, topic: str) -> None:
    async with record(vendor) as (recorder, client):
        await listen(vendor.direct(recorder), conversations(vendor.name)[topic], vendor.model)
        stream = await vendor.ask(client, vendor.official()[topic])
        if stream is not None:
            await stream.close()
    ours, theirs = recorder.bodies
    assert ours == meaning(theirs, vendor)
    assert recorder.requests[0].url == recorder.requests[1].url


@every_vendor
@every_conversation
async def test_both_ways_send_the_same_body_and_give_the_same_chunks(vendor: Vendor, topic: str) -> None:
    request = conversations(vendor.name)[topic]
    async with record(vendor) as (recorder, client):
        directly = await listen(vendor.direct(recorder), request, vendor.model)
        through_client = await listen(vendor.through(client), request, vendor.model)
    ours, theirs = recorder.bodies
    assert ours == meaning(theirs, vendor)
    assert directly == through_client
    assert len(directly) > 10


@every_vendor
async def test_both_ways_carry_the_key_alike(vendor: Vendor) -> None:
    async with record(vendor) as (recorder, client):
        for provider in (vendor.direct(recorder), vendor.through(client)):
            await listen(provider, conversations(vendor.name)["text"], vendor.model)
    names = ("authorization", "x-goog-api-key", "anthropic-version", "content-type")
    ours, theirs = ({name: request.headers.get(name) for name in names} for request in recorder.requests)
    assert ours == theirs
    assert any(KEY in (value or "") for value in ours.values())
