"""Everything that goes wrong between a user and a model service, on every wire: one sentence with the fix."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from tests.providers.wires import KEY, MODEL, WIRES, Wire, on_every_wire

from robota.core.errors import (
    AuthenticationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.messages import AssistantMessage, ImagePart, TextPart, UserMessage
from robota.core.provider import Capabilities, NativePayload
from robota.core.robota import Robota
from robota.testing import ModelServer
from robota.testing.model_script import Cut, ErrorEvent, HttpError, ModelReply, RawBytes, UnknownEvent
from robota.testing.reply_conformance import ADD, Heard, ask, listen

pytestmark = pytest.mark.anyio


def assert_one_sentence(error: BaseException, fix: str) -> None:
    text = str(error)
    assert isinstance(error, RobotaError)
    assert "\n" not in text
    assert text.endswith(".")
    assert fix in text.partition(";")[2], text
    assert KEY not in text
    assert "<" not in text
    assert len(text) < 700


async def failure(wire: Wire, *replies: ModelReply, request: Any = None, **options: Any) -> RobotaError:
    async with ModelServer(*replies) as server, wire.connect(server.url, **options) as provider:
        with pytest.raises(RobotaError) as caught:
            await listen(provider, request)
    return caught.value


# --- as the vendors say it -------------------------------------------------------------------------------


def openai_says(status: int, message: str, code: str) -> HttpError:
    return HttpError(
        status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    )


def anthropic_says(status: int, message: str, kind: str) -> HttpError:
    return HttpError(status, {"type": "error", "error": {"type": kind, "message": message}})


def google_says(status: int, message: str, word: str, reason: str = "") -> HttpError:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}
    error = {"code": status, "message": message, "status": word, "details": [info] if reason else []}
    return HttpError(status, [{"error": error}])


WRONG_KEY = openai_says(401, f"Incorrect API key provided: {KEY}.\nSee the account page.", "invalid_api_key")
WRONG_KEYS = {
    "chat": WRONG_KEY,
    "responses": WRONG_KEY,
    "anthropic": anthropic_says(401, f"invalid bearer token {KEY}", "authentication_error"),
    "gemini": google_says(400, f"API key not valid: {KEY}.", "INVALID_ARGUMENT", "API_KEY_INVALID"),
}
WRONG_MODELS = {
    "chat": openai_says(404, f"The model `{MODEL}` does not exist.", "model_not_found"),
    "responses": openai_says(400, f"The requested model '{MODEL}' does not exist.", "model_not_found"),
    "anthropic": anthropic_says(404, f"model: {MODEL}", "not_found_error"),
    "gemini": google_says(404, f"models/{MODEL} is not found for API version v1beta.", "NOT_FOUND"),
}
QUOTA = "You exceeded your current quota, please check your plan and billing details."
NO_QUOTA: dict[str, tuple[HttpError, type[RobotaError], str]] = {
    "chat": (openai_says(429, QUOTA, "insufficient_quota"), ProviderError, "check the billing page"),
    "responses": (openai_says(429, QUOTA, "insufficient_quota"), ProviderError, "check the billing page"),
    "anthropic": (
        anthropic_says(400, "Your credit balance is too low to access the API.", "invalid_request_error"),
        ProviderError,
        "check the billing page",
    ),
    "gemini": (
        google_says(429, QUOTA, "RESOURCE_EXHAUSTED"),
        RateLimitError,
        "check the limits of your plan",
    ),
}
NO_TOOLS = {
    "chat": HttpError(400, {"error": "registry.ollama.ai/library/gemma:2b does not support tools"}),
    "responses": openai_says(400, "tools is not supported in this model.", "unsupported_parameter"),
    "anthropic": anthropic_says(400, "This model does not support tool use.", "invalid_request_error"),
    "gemini": google_says(400, "Function calling is not enabled for models/gemma-3", "INVALID_ARGUMENT"),
}
TOO_LARGE = {
    "chat": HttpError(413, "<html><body>413 Request Entity Too Large</body></html>"),
    "responses": openai_says(400, "Image size exceeds the limit of 20 MB.", "image_too_large"),
    "anthropic": anthropic_says(413, "Request exceeds the maximum size", "request_too_large"),
    "gemini": google_says(400, "Request payload size exceeds the limit: 20971520.", "INVALID_ARGUMENT"),
}


@on_every_wire
async def test_a_wrong_key_is_told_without_repeating_it(wire: Wire) -> None:
    error = await failure(wire, WRONG_KEYS[wire.name])
    assert isinstance(error, AuthenticationError)
    assert_one_sentence(error, "check")


@on_every_wire
async def test_a_missing_key_is_asked_for(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    error = await failure(wire, HttpError(401), api_key="")
    assert isinstance(error, AuthenticationError)
    assert_one_sentence(error, "pass api_key")


@on_every_wire
async def test_a_wrong_model_is_named(wire: Wire) -> None:
    error = await failure(wire, WRONG_MODELS[wire.name])
    assert isinstance(error, ModelNotAvailableError)
    assert MODEL in str(error)
    assert_one_sentence(error, "check its name")


@on_every_wire
async def test_an_empty_account_is_not_a_busy_service(wire: Wire) -> None:
    reply, kind, fix = NO_QUOTA[wire.name]
    error = await failure(wire, reply)
    assert type(error) is kind
    assert_one_sentence(error, fix)


@on_every_wire
@pytest.mark.parametrize(("status", "fix"), [(200, "check the base URL"), (502, "try again in a moment")])
async def test_a_web_page_is_no_reply(wire: Wire, status: int, fix: str) -> None:
    error = await failure(wire, HttpError(status, HttpError.html(502).body))
    assert isinstance(error, ProviderError)
    assert_one_sentence(error, fix)


@on_every_wire
async def test_an_error_as_the_whole_answer_is_told(wire: Wire) -> None:
    error = await failure(wire, HttpError(200, {"error": {"message": f"Unexpected endpoint, {KEY}."}}))
    assert "Unexpected endpoint" in str(error)
    assert_one_sentence(error, "check the base URL")


@on_every_wire
async def test_another_kind_of_document_is_refused(wire: Wire) -> None:
    error = await failure(wire, HttpError(200, {"hello": f"world {KEY}"}))
    assert isinstance(error, ProviderError)
    assert_one_sentence(error, "check the base URL")


# --- proxies ---------------------------------------------------------------------------------------------


@on_every_wire
async def test_a_proxy_that_strips_streaming_does_no_harm(wire: Wire) -> None:
    whole = json.dumps(wire.document)
    shapes: list[ModelReply] = [
        HttpError(200, wire.document),
        HttpError(200, json.dumps(wire.document, indent=2)),  # as text/plain, in many lines
        [RawBytes(f"data: {whole}\n\n".encode())],
        [RawBytes(f"data: {whole}\n\ndata: [DONE]\n\n".encode())],
        [RawBytes(wire.stream.replace(b"\r\n", b"\n"))],  # all events in one piece
    ]
    async with ModelServer(*shapes) as server, wire.connect(server.url) as provider:
        heard = [await listen(provider) for _ in shapes]
    for one in heard:
        assert (one.text, one.usage, one.stops) == (heard[-1].text, heard[-1].usage, ["tool_use"])
        assert [(call.id, call.name) for call in one.calls] == [
            (call.id, call.name) for call in heard[-1].calls
        ]
        assert [json.loads(call.arguments) for call in one.calls] == [
            json.loads(call.arguments) for call in heard[-1].calls
        ]


@on_every_wire
async def test_an_unknown_event_is_passed_over(wire: Wire) -> None:
    reply = [
        UnknownEvent(),
        "Hel",
        UnknownEvent(fields={"delta": {"text": 1}, "item": []}),
        "lo",
        UnknownEvent(),
    ]
    async with ModelServer(reply) as server, wire.connect(server.url) as provider:
        heard = await listen(provider)
    assert (heard.text, heard.stops) == ("Hello", ["end_turn"])


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_a_base_url_may_end_in_a_version_or_not(name: str, suffix: str) -> None:
    wire = WIRES[name]
    async with ModelServer("Hi") as server, wire.connect(server.url + suffix) as provider:
        assert (await listen(provider)).text == "Hi"


@pytest.mark.parametrize("name", ["chat", "responses"])
async def test_a_base_url_that_lacks_its_version_is_told_so(name: str) -> None:
    wire = WIRES[name]
    for slash in ("", "/"):
        async with (
            ModelServer("Hi", HttpError(404, "404 page not found")) as server,
            wire.connect("", base_url=f"{server.url}/v1{slash}") as provider,
            wire.connect("", base_url=f"{server.url}{slash}") as lost,
        ):
            assert (await listen(provider)).text == "Hi"
            with pytest.raises(ProviderError) as caught:
                await listen(lost)
        assert f"{server.url}/" in str(caught.value)
        assert_one_sentence(caught.value, "the base URL, which usually ends in /v1")


# --- models that cannot do everything ----------------------------------------------------------------------


@on_every_wire
async def test_a_model_without_tools_is_told_so(wire: Wire) -> None:
    error = await failure(wire, NO_TOOLS[wire.name], request=ask(tools=(ADD,)))
    assert_one_sentence(error, "run without tools")


@on_every_wire
async def test_tools_are_not_sent_to_a_model_that_is_known_to_have_none(wire: Wire) -> None:
    plain = Capabilities(function_calling=False)
    async with ModelServer("Hi") as server, wire.connect(server.url, capabilities=plain) as provider:
        assert (await listen(provider, ask(tools=(ADD,)))).text == "Hi"
    assert server.requests[0].conversation.tools == ()


@on_every_wire
async def test_an_image_for_a_model_without_eyes_becomes_a_note(wire: Wire) -> None:
    picture = UserMessage("Look.", (TextPart("Look."), ImagePart("aW1hZ2U=", "image/png")))
    blind = Capabilities(vision=False)
    async with ModelServer("Hi") as server, wire.connect(server.url, capabilities=blind) as provider:
        assert (await listen(provider, ask(picture))).text == "Hi"
    assert b"aW1hZ2U=" not in server.requests[0].raw
    assert "left out" in server.requests[0].conversation.texts("user")[0]


@on_every_wire
async def test_a_model_that_turns_out_to_be_blind_is_told_so(wire: Wire) -> None:
    refusal = HttpError(400, {"error": {"message": "Image input is not supported by this model."}})
    picture = UserMessage("", (ImagePart("aW1hZ2U=", "image/png"),))
    seeing = Capabilities(vision=True)
    error = await failure(wire, refusal, request=ask(picture), capabilities=seeing)
    assert_one_sentence(error, "leave the images out")


@on_every_wire
async def test_an_image_of_20_megabytes_is_refused_in_one_sentence(wire: Wire) -> None:
    data = base64.b64encode(bytes(20 * 1024 * 1024)).decode()
    picture = UserMessage("Look.", (TextPart("Look."), ImagePart(data, "image/png")))
    seeing = Capabilities(vision=True)
    error = await failure(wire, TOO_LARGE[wire.name], request=ask(picture), capabilities=seeing)
    assert isinstance(error, ProviderError)
    assert_one_sentence(error, "send smaller files")


# --- half a reply and none ---------------------------------------------------------------------------------


@on_every_wire
@pytest.mark.parametrize("reply", [[RawBytes(b"")], HttpError(200, ""), [RawBytes(b"\n\n: alive\n\n")]])
async def test_an_empty_reply_is_not_taken_for_an_answer(wire: Wire, reply: ModelReply) -> None:
    error = await failure(wire, reply)
    assert isinstance(error, NetworkError)
    assert_one_sentence(error, "try again")


@on_every_wire
async def test_the_event_that_breaks_a_reply_off_is_recorded(wire: Wire) -> None:
    heard = Heard()
    async with (
        ModelServer(["Hel", ErrorEvent("Overloaded.")]) as server,
        wire.connect(server.url) as provider,
    ):
        with pytest.raises(ProviderError):
            await listen(provider, ask(want_raw=True), heard)
    payloads = [chunk.payload for chunk in heard.chunks if isinstance(chunk, NativePayload)]
    assert b"Overloaded." in payloads[-1]


@on_every_wire
@pytest.mark.parametrize(
    "fault",
    [
        ErrorEvent(f"Overloaded, {KEY}.\nSorry.", "overloaded_error"),
        Cut(),
        Cut(clean=True),
        RawBytes(b"data: {half\n\n"),
    ],
)
async def test_the_text_so_far_is_kept(wire: Wire, fault: Any) -> None:
    reply = ["Hel", "lo ", fault]
    heard = Heard()
    async with ModelServer(reply, reply, "Yes.") as server, wire.connect(server.url) as provider:
        with pytest.raises(RobotaError) as caught:
            await listen(provider, heard=heard)
        agent = Robota(provider)
        result = await agent.run("Hi")
        answer = agent.conversation.messages[-1]
        assert (await agent.run("Go on.")).text == "Yes."
    assert_one_sentence(caught.value, "")
    assert heard.text == "Hello "
    assert type(result.error) is type(caught.value)
    assert isinstance(answer, AssistantMessage)
    assert answer.content.startswith("Hello ")
