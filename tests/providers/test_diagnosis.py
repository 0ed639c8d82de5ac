"""What went wrong is told as what it is: by the words of refusals, and by how there came no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.http.peer import Line, Peer
from tests.providers.loopback import Loopback, Reply

from robota.core import ChatRequest, ModelSettings, RetryNotice, TextChunk, ToolSchema, UserMessage
from robota.core.errors import NetworkError, ProviderError
from robota.core.provider import Capabilities, Chunk, Provider
from robota.core.retry import RetryingProvider, is_retryable
from robota.http.errors import FailureKind
from robota.providers.anthropic import AnthropicProvider
from robota.providers.gemini import GeminiProvider
from robota.providers.openai import OpenAIProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.wire.errors import FAILURES
from robota.providers.wire.provider import WireProvider

pytestmark = pytest.mark.anyio
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = ToolSchema("look", "Looks.", SCHEMA)
CHAT = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def refusing(status: int, message: object, **fields: object) -> Reply:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Reply([body], status, {"content-type": "application/json"})


def chat(url: str) -> OpenAICompatibleProvider:
    return OpenAICompatibleProvider(
        "key", url, "m", name="acme", capabilities=Capabilities(output_schema=True)
    )


def responses(url: str) -> OpenAIProvider:
    return OpenAIProvider("key", url, "gpt-5", api="responses", capabilities=Capabilities(output_schema=True))


def request(**options: Any) -> ChatRequest:
    return ChatRequest(model="m", messages=[UserMessage("hello")], **options)


async def failure(reply: Reply) -> ProviderError:
    async with Loopback(reply) as server, chat(server.url) as provider:
        with pytest.raises(ProviderError) as caught:
            [chunk async for chunk in provider.stream(request())]
    return caught.value


# --- words of refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("You uploaded an unsupported image. Please make sure your image is valid.", "invalid_image_format"),
        ("The image data you provided does not represent a valid image.", "image_parse_error"),
        ("messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg'", None),
        ("Could not process image", None),
        ("Provided image is not valid.", None),
        ("Unsupported MIME type: image/svg+xml", None),
    ],
)
async def test_an_image_that_cannot_be_read_is_not_a_model_that_cannot_see(
    message: str, code: str | None
) -> None:
    error = await failure(refusing(400, message, code=code))
    assert str(error).startswith("acme cannot read an image of this conversation (400: ")
    assert str(error).endswith("; send PNG, JPEG, GIF or WebP, or leave the image out.")


@pytest.mark.parametrize(
    "message",
    [
        "Invalid file data: got unsupported MIME type 'audio/mpeg'. See assistants/tools/file-search.",
        "The file type you uploaded is not supported. Please try again with a pdf.",
    ],
)
async def test_a_file_that_cannot_be_read_is_not_a_model_without_tools(message: str) -> None:
    error = await failure(refusing(400, message))
    assert str(error).startswith("acme cannot read a file of this conversation (400: ")


async def test_a_model_that_cannot_see_is_still_told() -> None:
    error = await failure(
        refusing(400, "image input is not supported - hint: you may need to provide the mmproj")
    )
    assert str(error).startswith("acme cannot look at images with this model (400: ")


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            "The prompt triggered Azure OpenAI's content management policy.",
            {"code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        ),
        ("Output blocked by content filtering policy", {}),
        ("Input data may contain inappropriate content.", {"code": "data_inspection_failed"}),
        ("Content Exists Risk", {}),
    ],
)
async def test_a_filter_is_told_as_a_filter(message: str, fields: dict[str, object]) -> None:
    error = await failure(refusing(400, message, **fields))
    assert str(error).startswith("acme refused this content by its filter (400: ")
    assert not is_retryable(error)


# --- a 200 that is not a stream -----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"OK", b"upstream: none\nplease wait\n", "Grüezi".encode()])
async def test_a_reply_that_is_no_stream_is_quoted_and_not_asked_for_again(body: bytes) -> None:
    error = await failure(Reply([body], headers={"content-type": "text/plain"}))
    said = " ".join(body.decode().split())
    text = f"acme sent something that is not a Chat Completions reply ({said}); check the base URL."
    assert (str(error), is_retryable(error)) == (text, False)


@pytest.mark.parametrize("body", [b": still working\n\n", b"data: {}\n\n", b"event: ping\n\n", b"da", b""])
async def test_a_stream_that_ends_too_early_is_a_broken_connection(body: bytes) -> None:
    async with Loopback(Reply([body] if body else [])) as server, chat(server.url) as provider:
        with pytest.raises(NetworkError, match="closed the connection before its reply was complete"):
            [chunk async for chunk in provider.stream(request())]


# --- no answer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://no-such-host.invalid/v1", "; check the host name and the network."),
        ("https://{peer}/v1", " does not speak TLS; use http:// in the base URL if that is meant."),
    ],
)
async def test_what_would_fail_again_at_once_is_not_tried_again(url: str, words: str) -> None:
    told: list[Chunk] = []

    async def ask(provider: Provider) -> None:
        async for chunk in provider.stream(request()):
            told.append(chunk)  # noqa: PERF401 - what came before the failure counts

    async def greet(line: Line) -> None:
        await line.send(b"220 mail.test ready\r\n")
        await line.until_left()

    async with Peer(greet) as peer:
        provider = chat(url.format(peer=f"127.0.0.1:{peer.port}"))
        async with RetryingProvider(provider) as patient:
            with pytest.raises(NetworkError) as caught:
                await ask(patient)
    assert (told, str(caught.value).endswith(words)) == ([], True)


def test_every_kind_of_failure_has_its_sentence() -> None:
    assert FAILURES.keys() == {*get_args(FailureKind), "no_tls"}


async def test_certificates_that_cannot_be_read_are_named_with_their_path(
    fresh_trust: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fresh_trust.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    async with chat("https://127.0.0.1:9/v1") as provider:
        with pytest.raises(NetworkError) as caught:
            [chunk async for chunk in provider.stream(request())]
    assert str(caught.value) == (
        f"acme at https://127.0.0.1:9 was not contacted: SSL_CERT_FILE names {tmp_path}/none.pem, "
        "which cannot be used: No such file or directory; correct or unset the variable."
    )


async def test_a_proxy_that_is_dead_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback() as gone:
        pass
    monkeypatch.setenv("http_proxy", gone.origin)
    async with chat("http://service.example/v1") as provider:
        with pytest.raises(NetworkError) as caught:
            [chunk async for chunk in provider.stream(request())]
    assert str(caught.value).startswith(
        f"The proxy on the way to http://service.example failed ({gone.origin}: "
    )


# --- fields that a service does not know -----------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Unknown parameter: 'stream_options'.",
        "Unrecognized request argument supplied: stream_options",
        "property 'stream_options' is unsupported",
        'json: unknown field "stream_options"',
        [
            {
                "type": "extra_forbidden",
                "loc": ["body", "stream_options"],
                "msg": "Extra inputs are not permitted",
            }
        ],
    ],
)
async def test_a_rejected_field_is_left_out_once_said_and_remembered(message: object) -> None:
    replies = refusing(400, message), Reply([CHAT]), Reply([CHAT])
    async with Loopback(*replies) as server, chat(server.url) as provider:
        first = [chunk async for chunk in provider.stream(request())]
        second = [chunk async for chunk in provider.stream(request())]
        asked = ["stream_options" in sent.json for sent in server.requests]

    notice = first[0]
    assert isinstance(notice, RetryNotice)
    assert notice.message.endswith(
        "it is asked again without 'stream_options', which is left out from now on."
    )
    assert asked == [True, False, False]
    assert not any(isinstance(chunk, RetryNotice) for chunk in second)
    assert first[1:] == second


@pytest.mark.parametrize(
    "message",
    [
        "Invalid file data: 'input[3].output[0].file_data'. Expected a MIME type (e.g. 'data:text/plain'), "
        "but got unsupported MIME type 'audio/wav'.",
        "input.1.content.0.reasoning.text: Extra inputs are not permitted",
        [
            {
                "type": "extra_forbidden",
                "loc": ["body", "input", 1, "reasoning", "strict"],
                "msg": "Extra inputs are not permitted",
            }
        ],
        "Unsupported image: use store or url.",
    ],
)
async def test_words_about_the_conversation_reject_no_field(message: object) -> None:
    settings = ModelSettings(effort="low", extra={"store": None})
    asked = request(settings=settings, output_schema=SCHEMA, tools=(TOOL,))
    async with Loopback(refusing(400, message)) as server, responses(server.url) as provider:
        with pytest.raises(ProviderError):
            [chunk async for chunk in provider.stream(asked)]
        assert len(server.requests) == 1


async def test_several_rejected_fields_are_left_out_one_after_the_other() -> None:
    replies = (
        refusing(
            400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        ),
        refusing(422, "Unsupported value: 'temperature' does not support 0.2 with this model."),
        refusing(400, "`strict` is not supported"),
        Reply([CHAT]),
    )
    settings = ModelSettings(temperature=0.2, max_tokens=9)
    async with Loopback(*replies) as server, chat(server.url) as provider:
        chunks = [c async for c in provider.stream(request(settings=settings, output_schema=SCHEMA))]
        sent = server.requests[-1].json
    assert sum(isinstance(chunk, RetryNotice) for chunk in chunks) == 3
    assert TextChunk("hi") in chunks
    assert (sent["max_completion_tokens"], "max_tokens" in sent, "temperature" in sent) == (9, False, False)
    assert sent["response_format"]["json_schema"] == {"name": "answer", "schema": SCHEMA}


@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'temperature': expected a value below 2.",
        "Unknown parameter: 'messages'.",
        "Unknown parameter: 'frequency_penalty'.",
    ],
)
async def test_what_requests_cannot_do_without_is_an_error(message: str) -> None:
    settings = ModelSettings(temperature=3, extra={"frequency_penalty": 1})
    async with Loopback(refusing(400, message)) as server, chat(server.url) as provider:
        with pytest.raises(ProviderError, match="rejected the request"):
            [chunk async for chunk in provider.stream(request(settings=settings))]
        assert len(server.requests) == 1


async def test_a_field_that_is_rejected_again_is_an_error() -> None:
    again = refusing(400, "Unknown parameter: 'stream_options'.")
    async with Loopback(again, again) as server, chat(server.url) as provider:
        with pytest.raises(ProviderError, match="Unknown parameter"):
            [chunk async for chunk in provider.stream(request())]


@pytest.mark.parametrize(
    ("make", "message", "gone"),
    [
        (OpenAIProvider, "Unknown parameter: 'tools[0].strict'.", "strict"),
        (OpenAIProvider, "Unsupported parameter: 'include' is not supported with this model.", "include"),
        (AnthropicProvider, "system.0.cache_control: Extra inputs are not permitted", "cache_control"),
        (AnthropicProvider, "output_config: Extra inputs are not permitted", "output_config"),
        (
            GeminiProvider,
            'Invalid JSON payload received. Unknown name "responseJsonSchema": Cannot find field.',
            "responseJsonSchema",
        ),
    ],
)
async def test_every_wire_can_do_without_some_fields(
    make: type[WireProvider], message: str, gone: str
) -> None:
    options: dict[str, Any] = {"api": "responses"} if make is OpenAIProvider else {}
    able = Capabilities(output_schema=True)
    again = refusing(400, "no")
    async with Loopback(refusing(400, message), again) as server:
        provider = make("key", server.url, "m", capabilities=able, **options)  # type: ignore[arg-type, misc]
        asked = request(tools=(TOOL,), output_schema=SCHEMA, settings=ModelSettings(effort="high"))
        with pytest.raises(ProviderError, match="rejected the request"):
            [chunk async for chunk in provider.stream(asked)]
        await provider.aclose()
        assert [f'"{gone}"'.encode() in sent.body for sent in server.requests] == [True, False]
