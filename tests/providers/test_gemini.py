from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply
from tests.providers.reading import ask, listen, text_of

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelNotAvailableError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.jsontext import encode
from robota.core.messages import TokenUsage, ToolCall
from robota.core.provider import Capabilities, NativeWebTools
from robota.providers.gemini import BASE_URL, GeminiProvider, GoogleProvider
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio
KEY = "AIza-very-secret"


def event(text: str = "", finish: str | None = None) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    return b"data: %b\r\n\r\n" % encode(
        {"candidates": [{**candidate, "finishReason": finish} if finish else candidate]}
    )


OK = Reply([event("ok", "STOP")])


@asynccontextmanager
async def serve(*replies: Reply, **options: Any) -> AsyncIterator[tuple[GeminiProvider, Loopback]]:
    async with (
        Loopback(*replies) as server,
        GeminiProvider(KEY, server.origin, "gemini-m", name="acme", **options) as provider,
    ):
        yield provider, server


# --- the request ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "model", "path"),
    [
        ("", "gemini-m", "/v1beta/models/gemini-m"),
        ("/", "gemini-m", "/v1beta/models/gemini-m"),
        ("/v1", "gemini-m", "/v1/models/gemini-m"),
        ("/v1beta/", "models/gemini-m", "/v1beta/models/gemini-m"),
        ("/v1/publishers/google", "gemini-m", "/v1/publishers/google/models/gemini-m"),
        ("/gateway", "tunedModels/mine", "/gateway/v1beta/tunedModels/mine"),
        ("", "what?#", "/v1beta/models/what%3F%23"),
    ],
)
async def test_model_and_version_are_part_of_the_address(base: str, model: str, path: str) -> None:
    async with (
        Loopback(OK) as server,
        GeminiProvider(KEY, f" {server.origin}{base}", model) as provider,
    ):
        assert await text_of(provider) == "ok"
        assert server.requests[0].path == f"{path}:streamGenerateContent?alt=sse"


async def test_version_and_query_may_be_given() -> None:
    async with (
        Loopback(OK) as server,
        GeminiProvider(None, f"{server.origin}?tenant=7", "m", api_version="v1") as provider,
    ):
        await listen(provider)
        assert server.requests[0].path == "/v1/models/m:streamGenerateContent?tenant=7&alt=sse"
        assert "x-goog-api-key" not in server.requests[0].headers


async def test_the_key_is_in_a_header_and_headers_given_win() -> None:
    async with serve(OK, headers={"X-Extra": "1"}) as (provider, server):
        await listen(provider)
        sent = server.requests[0]
        assert (sent.headers["x-goog-api-key"], sent.headers["x-extra"]) == (KEY, "1")
        assert KEY not in sent.path
    async with serve(OK, headers={"X-Goog-Api-Key": "other"}) as (provider, server):
        await listen(provider)
        assert server.requests[0].headers["x-goog-api-key"] == "other"


def test_an_address_or_a_key_that_cannot_work_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError, match="not a web address"):
        GeminiProvider(KEY, "localhost")
    with pytest.raises(ConfigurationError, match="x-goog-api-key"):
        GeminiProvider("kluczę")


def test_google_is_another_name_for_it() -> None:
    assert GoogleProvider is GeminiProvider
    assert BASE_URL == "https://generativelanguage.googleapis.com"


async def test_hosted_web_tools_can_be_ruled_out() -> None:
    async with serve(capabilities=Capabilities()) as (provider, server):
        with pytest.raises(ConfigurationError, match="native web search"):
            await listen(provider, ask(native_web_tools=NativeWebTools(web_search=True)))
        assert server.connections == 0


# --- the reply --------------------------------------------------------------------------------------------


async def test_calls_and_usage_of_the_model_server_come_through() -> None:
    made = ToolCall("c1", "add", '{"a":1}', "signature")
    async with (
        ModelServer(["Hm", made, TokenUsage(20, 9, 5, 0, 4)]) as server,
        GeminiProvider(KEY, server.url, "m") as provider,
    ):
        chunks = await listen(provider)
    assert made in chunks
    assert TokenUsage(20, 9, 5, 0, 4) in chunks


# --- refusals ---------------------------------------------------------------------------------------------


def refusal(
    code: int, message: str, *details: dict[str, Any], status: str = "X", array: bool = False
) -> Reply:
    error = {"error": {"code": code, "message": message, "status": status, "details": list(details)}}
    return Reply([encode([error] if array else error)], code, {"content-type": "application/json"})


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


async def failure_of(reply: Reply, **options: Any) -> RobotaError:
    async with serve(reply, **options) as (provider, _):
        with pytest.raises(RobotaError) as caught:
            await listen(provider)
        return caught.value


async def test_a_wrong_key_is_told_although_the_status_is_400() -> None:
    info = detail("ErrorInfo", reason="API_KEY_INVALID", domain="googleapis.com")
    for array in (False, True):
        said = refusal(400, f"API key not valid: {KEY}. Please pass another.", info, array=array)
        error = await failure_of(said)
        assert isinstance(error, AuthenticationError)
        assert error.status == 400
        assert str(error).startswith("acme refused the API key (400: API key not valid")
        assert KEY not in str(error)


async def test_a_missing_key_is_told() -> None:
    async with (
        Loopback(refusal(403, "Method doesn't allow unregistered callers.")) as server,
        GeminiProvider(None, server.origin, "m") as provider,
    ):
        with pytest.raises(AuthenticationError, match=r"got none .* pass api_key or set GEMINI_API_KEY"):
            await listen(provider)


async def test_the_delay_is_found_in_the_details() -> None:
    quota = detail("QuotaFailure", violations=[])
    error = await failure_of(
        refusal(429, "You exceeded your quota.", quota, detail("RetryInfo", retryDelay="34.5s"), array=True)
    )
    assert isinstance(error, RateLimitError)
    assert (error.retry_after, error.status) == (34.5, 429)
    odd = await failure_of(refusal(429, "Slow down.", detail("RetryInfo", retryDelay="soon")))
    assert isinstance(odd, RateLimitError)
    assert odd.retry_after is None


async def test_an_unknown_model_is_told() -> None:
    error = await failure_of(
        refusal(404, "models/gemini-m is not found for API version v1beta, or is not supported.")
    )
    assert isinstance(error, ModelNotAvailableError)
    assert error.model == "gemini-m"


async def test_what_is_said_of_a_retired_model_is_told() -> None:
    said = "This model models/gemini-m is no longer open to new users"
    error = await failure_of(refusal(404, f"{said}.", status="NOT_FOUND"))
    assert f"(404: {said}); check the model name" in str(error)


async def test_a_wrong_address_is_told() -> None:
    error = await failure_of(Reply([b"<html>Not here</html>"], 404))
    assert isinstance(error, ProviderError)
    assert "/v1beta/models/gemini-m:streamGenerateContent (404); check the model name, base_url" in str(error)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            "conversation this long",
        ),
        ("Function call is missing a thought_signature in functionCall parts.", "signatures in this history"),
        ("Unable to process input image.", "cannot read an image"),
    ],
)
async def test_a_bad_request_is_explained(message: str, expected: str) -> None:
    error = await failure_of(refusal(400, message, status="INVALID_ARGUMENT"))
    assert isinstance(error, ProviderError)
    assert expected in str(error)
    assert message.rstrip(".") in str(error)


async def test_an_unreadable_refusal_is_one_all_the_same() -> None:
    for body in (b"", b"[]", b"[1]", b'{"error": "no"}', b'{"error": {"details": 1}}'):
        error = await failure_of(Reply([body], 503))
        assert isinstance(error, ProviderError)
        assert error.status == 503
    error = await failure_of(Reply([b'{"error": {"mess'], 503, cut=True))
    assert "acme failed (503)" in str(error)
