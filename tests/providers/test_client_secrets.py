"""A vendor's client brings its own key, which its service may repeat; we never do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.providers.raw_server import HEAD, RawServer, refusal
from tests.providers.test_hostile_servers import error_body, error_event
from tests.providers.wires import KEY
from tests.support.lazy import anthropic, genai, openai

from robota.core.robota import Robota
from robota.providers.anthropic import AnthropicProvider
from robota.providers.gemini import GeminiProvider
from robota.providers.openai import OpenAIProvider

pytestmark = pytest.mark.anyio


def _anthropic(url: str) -> AnthropicProvider:
    return AnthropicProvider(client=anthropic.AsyncAnthropic(api_key=KEY, base_url=url))


def _openai(url: str) -> OpenAIProvider:
    return OpenAIProvider(client=openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1"))


def _gemini(url: str) -> GeminiProvider:
    return GeminiProvider(client=genai.Client(api_key=KEY, http_options={"base_url": url}))


ANSWERS = {
    "refusal": refusal(401, error_body(message=f"not with {KEY}", type=KEY), x_request_id=KEY),
    "cut": refusal(400, error_body(message="x" * 390 + KEY)),
    "event": error_event(code=KEY, type=KEY),
    "status line": f"HTTP/9.9 {KEY}\r\n\r\n".encode(),
    "page": HEAD + b"<html>" + KEY.encode() + b"x" * 10_000,
}


@pytest.mark.parametrize("connect", [_anthropic, _openai, _gemini])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
async def test_the_key_of_a_client_is_not_repeated(connect: Callable[[str], Any], answer: bytes) -> None:
    async with RawServer(answer) as server:
        result = await Robota(connect(server.url), model="m").run("Hi.")
    assert result.error is not None
    text = f"{result.error}{getattr(result.error, 'request_id', '')}"
    assert KEY[:9] not in text
    assert text.isprintable()
    assert len(text) < 800
