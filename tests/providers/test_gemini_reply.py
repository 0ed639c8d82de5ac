from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.reading import calls_in, check_tears, read_broken, read_reply, text_in

from robota.core.errors import AuthenticationError, NetworkError, ProviderError, RobotaError
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.gemini.reply import GeminiContent
from robota.providers.gemini.request import MARK
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader


def event(*parts: dict[str, Any], **fields: Any) -> bytes:
    """One event: the parts and, in snake case, the candidate's other fields; `top` are the reply's own."""
    top = fields.pop("top", {})
    candidate = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **fields}
    return sse({"candidates": [candidate], **top})


def sse(reply: Any) -> bytes:
    return b"data: %b\r\n\r\n" % json.dumps(reply, ensure_ascii=False).encode()


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"text": said, **more}


def call(name: str, call_id: str | None = None, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "args": arguments}
    return {"functionCall": function if call_id is None else {"id": call_id, **function}}


def read(*parts: bytes, want_raw: bool = False) -> list[Chunk]:
    return read_reply(GeminiContent(), *parts, want_raw=want_raw)


def read_failure(*parts: bytes) -> tuple[str, RobotaError]:
    return read_broken(GeminiContent(), *parts)


LAST = event(text(""), finishReason="STOP")


# --- a whole reply ----------------------------------------------------------------------------------------


def test_calls_and_usage_survive_streaming() -> None:
    usage = {
        "promptTokenCount": 100,
        "toolUsePromptTokenCount": 10,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 3,
        "totalTokenCount": 120,
    }
    head = {"modelVersion": "gemini-3-flash", "responseId": "r1", "usageMetadata": {"promptTokenCount": 100}}
    chunks = read(
        event(text("Let me "), top=head),
        event(text("add."), call("add", "c1", a=1)),
        event(call("add", "c2", a=2)),
        event(text(""), finishReason="STOP", top={"usageMetadata": usage}),
    )
    assert chunks == [
        MetadataChunk({"model": "gemini-3-flash", "responseId": "r1"}),
        TextChunk("Let me "),
        TextChunk("add."),
        ToolInputChunk(0, '{"a":1}', "c1", "add"),
        ToolInputChunk(1, '{"a":2}', "c2", "add"),
        ToolCall("c1", "add", '{"a":1}'),
        ToolCall("c2", "add", '{"a":2}'),
        TokenUsage(110, 10, 40, 0, 3),
        StopChunk("tool_use", "STOP"),
    ]


def test_a_call_without_an_id_or_arguments_is_whole() -> None:
    function = {"functionCall": {"name": "now"}}
    assert calls_in(read(event(function, finishReason="STOP"))) == [ToolCall("", "now", "{}")]


def test_thinking_and_signatures_are_kept_for_the_way_back() -> None:
    signed = {**call("add", "c1"), "thoughtSignature": "C"}
    chunks = read(
        event(text("Hm", thought=True)),
        event(text("m.", thought=True, thoughtSignature="T")),
        event(text("Yes"), signed),
        event(text("", thoughtSignature="X"), finishReason="STOP"),
    )
    assert chunks == [
        ReasoningChunk("Hm"),
        ReasoningChunk("m."),
        TextChunk("Yes"),
        ToolInputChunk(0, "{}", "c1", "add"),
        ReasoningBlock("Hmm.", "T", {MARK: "thought"}),
        ReasoningBlock("", "X", {MARK: "text"}),
        ToolCall("c1", "add", "{}", "C"),
        StopChunk("tool_use", "STOP"),
    ]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("CONTINUATION", "max_tokens"),
        ("SAFETY", "content_filter"),
        ("MODEL_ARMOR", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("LANGUAGE", "other"),
        ("SOMETHING_NEW", "other"),
    ],
)
def test_finish_reasons_have_one_meaning_and_keep_the_services_word(word: str, reason: str) -> None:
    assert read(event(text("x"), finishReason=word))[-1] == StopChunk(reason, word)  # type: ignore[arg-type]


def test_the_explanation_of_a_finish_reason_is_kept() -> None:
    said = sse({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(add("}]})
    assert read(said) == [StopChunk("error", "MALFORMED_FUNCTION_CALL: print(add(")]


def test_a_blocked_prompt_is_a_refusal() -> None:
    feedback = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 5}}
    assert read(sse(feedback)) == [TokenUsage(5), StopChunk("refusal", "SAFETY")]


def test_hosted_searches_are_told_and_their_sources_kept() -> None:
    grounding = {
        "webSearchQueries": ["turtles", "tortoises"],
        "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}, {"retrievedContext": {}}],
    }
    pages = {
        "urlMetadata": [
            {"retrievedUrl": "https://b.example", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}
        ]
    }
    cited = {"citationSources": [{"uri": "https://c.example", "license": "mit"}]}
    chunks = read(
        event(text("Turtles."), groundingMetadata={"webSearchQueries": ["turtles"]}),
        event(
            groundingMetadata=grounding, urlContextMetadata=pages, citationMetadata=cited, finishReason="STOP"
        ),
    )
    assert chunks == [
        TextChunk("Turtles."),
        ServerToolChunk("web_search", {"query": "turtles"}),
        ServerToolChunk("web_search", {"query": "tortoises"}),
        ServerToolChunk("web_fetch", {"url": "https://b.example"}),
        MetadataChunk(
            {
                "provenance": {
                    "queries": ["turtles", "tortoises"],
                    "sources": [{"url": "https://a.example", "title": "A"}],
                    "pages": [{"url": "https://b.example", "status": "success"}],
                    "citations": [{"url": "https://c.example", "license": "mit"}],
                }
            }
        ),
        StopChunk("end_turn", "STOP"),
    ]


def test_tools_that_ran_on_the_other_side_are_told_and_kept() -> None:
    asked = {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["x"]}, "id": "s1"}
    ran = {"toolCall": asked, "thoughtSignature": "S"}
    found = {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "s1"}}
    coded = {"executableCode": {"language": "PYTHON", "code": "1+1"}}
    chunks = read(event(ran, found), event(coded), LAST)
    assert chunks == [
        ServerToolChunk("web_search", {"queries": ["x"]}),
        ServerToolChunk("code_execution", coded["executableCode"]),
        ReasoningBlock(data={MARK: ran}),
        ReasoningBlock(data={MARK: found}),
        ReasoningBlock(data={MARK: coded}),
        MetadataChunk({"provenance": {"queries": ["x"]}}),
        StopChunk("end_turn", "STOP"),
    ]


# --- native payloads --------------------------------------------------------------------------------------


def test_raw_bytes_ride_on_the_text_or_come_by_themselves() -> None:
    first, second = event(text("a"), text("b")), event(call("add", "c1"), finishReason="STOP")
    chunks = read(first, second, want_raw=True)
    raw = first[len(b"data: ") : -4]
    assert chunks[:2] == [TextChunk("a", raw), TextChunk("b")]
    native = [chunk for chunk in chunks if isinstance(chunk, NativePayload)]
    assert [(chunk.kind, chunk.sequence, chunk.api_surface) for chunk in native] == [
        ("stream_event", 2, GeminiContent.surface)
    ]
    assert native[0].payload == second[len(b"data: ") : -4]


# --- replies that are not quite what they should be -------------------------------------------------------


def plain(reply: bytes) -> Any:
    return json.loads(reply[len(b"data: ") :])


@pytest.mark.parametrize("as_array", [False, True])
def test_a_reply_without_event_stream_is_read_all_the_same(as_array: bool) -> None:
    if as_array:
        body: Any = [plain(event(text("Hel"))), plain(event(text("lo"), finishReason="STOP"))]
    else:
        body = plain(event(text("Hel"), text("lo"), finishReason="STOP"))
    chunks = read(json.dumps(body, indent=2).encode(), want_raw=True)
    assert text_in(chunks) == "Hello"
    assert chunks[-1] == StopChunk("end_turn", "STOP")
    assert isinstance(chunks[0], NativePayload)
    assert b"\n" not in chunks[0].payload


@pytest.mark.parametrize(
    "odd",
    [
        {"candidates": []},
        {"candidates": [None]},
        {"candidates": [{"content": {}}]},
        {"candidates": [{"content": {"parts": [None, {}, {"text": None}, {"video": {}}]}}]},
        {"somethingNew": 1},
        {"usageMetadata": {"promptTokenCount": None}},
        [],
        None,
    ],
)
def test_an_odd_event_does_no_harm(odd: Any) -> None:
    chunks = read(
        event(text("a")), sse(odd), b": comment\n\n", b"data: \n\n", event(text("b"), finishReason="STOP")
    )
    assert text_in(chunks) == "ab"


def test_something_else_is_refused() -> None:
    for body in (b'{"object": "chat.completion"}', b"[1]", b"data: nonsense\n\n"):
        _, error = read_failure(body)
        assert "is not a Gemini reply" in str(error)
    _, error = read_failure(b"<html>")
    assert "web page" in str(error)


def test_an_error_in_the_stream_keeps_the_text_and_its_kind() -> None:
    overloaded = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    said, error = read_failure(event(text("Hel")), sse(overloaded))
    assert (said, type(error), getattr(error, "status", 0)) == ("Hel", ProviderError, 503)
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    _, error = read_failure(sse({"error": {"code": 400, "message": "Bad key.", "details": [info]}}))
    assert isinstance(error, AuthenticationError)


def test_a_stream_that_ends_without_a_reason_is_cut() -> None:
    said, error = read_failure(event(text("Hel"), call("add", "c1")))
    assert (said, type(error)) == ("Hel", NetworkError)


# --- cuts -------------------------------------------------------------------------------------------------


def recorded_stream() -> bytes:
    """A reply of some four kilobytes with everything in it."""
    events = [event(text("Let me think. ", thought=True, thoughtSignature="T" * 200))]
    events += [event(text(f'{n}: żółw 🐢 漢字 "quoted"\n')) for n in range(20)]
    events += [
        event({**call("add", f"c{n}", note="long " * 20), "thoughtSignature": "S" * 100}) for n in range(3)
    ]
    usage = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 8}}
    return b"".join(events) + event(text(""), finishReason="STOP", top=usage)


def test_a_stream_cut_at_any_byte_keeps_the_text_and_runs_no_call() -> None:
    stream = recorded_stream()
    whole = read(stream)
    assert len(stream) > 4000
    for end in range(len(stream)):
        reader = ReplyReader(GeminiContent(), Peer("test"))
        heard = reader.feed(stream[:end]) + reader.end()
        try:
            heard += reader.finish()
        except NetworkError:
            events = stream[:end].count(b"\r\n\r\n")
            assert sum(isinstance(chunk, TextChunk) for chunk in heard) >= min(events - 1, 20)
            assert text_in(whole).startswith(text_in(heard))
            assert not calls_in(heard)
        else:
            assert heard == whole


def test_a_stream_torn_at_any_byte_is_the_same() -> None:
    check_tears(GeminiContent, recorded_stream())
