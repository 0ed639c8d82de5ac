from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.loopback import DONE, event, tool_delta
from tests.providers.reading import check_cuts, check_tears, read_broken, read_reply

from robota.core.errors import NetworkError, ProviderError, RateLimitError, RobotaError
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.chat.reply import ChatContent
from robota.providers.wire import reply as wire_reply
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader


def read(*parts: bytes, want_raw: bool = False) -> list[Chunk]:
    """All chunks of a whole reply, without the metadata that each begins with."""
    chunks = read_reply(ChatContent(), *parts, want_raw=want_raw)
    return [chunk for chunk in chunks if not isinstance(chunk, MetadataChunk)]


def read_failure(*parts: bytes) -> tuple[str, RobotaError]:
    return read_broken(ChatContent(), *parts)


def function(name: str, arguments: object) -> dict[str, object]:
    return {"name": name, "arguments": arguments}


# --- a whole reply ---------------------------------------------------------------------------------------


def test_a_reply_is_text_then_usage_then_the_reason_to_stop() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    reader = ReplyReader(ChatContent(), Peer("test"))
    chunks = reader.feed(event({"role": "assistant", "content": ""}))
    chunks += reader.feed(event({"content": "Hel"}) + event({"content": "lo"}))
    chunks += reader.feed(event({}, "stop") + event(None, usage=usage) + DONE)
    assert chunks == [
        MetadataChunk({"model": "served-model", "responseId": "chatcmpl-1"}),
        TextChunk("Hel"),
        TextChunk("lo"),
    ]
    assert reader.over
    assert reader.finish() == [TokenUsage(10, 5, 4, 0, 2), StopChunk("end_turn", "stop")]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "content_filter"),
        ("tool_calls", "end_turn"),  # but there was none
        ("function_call", "end_turn"),
        ("sensitive", "other"),
    ],
)
def test_finish_reasons_have_one_meaning_and_keep_the_servers_word(word: str, reason: str) -> None:
    assert read(event({"content": "x"}, word), DONE)[-1] == StopChunk(reason, word)  # type: ignore[arg-type]


def test_the_usage_of_deepseek_and_moonshot_is_found() -> None:
    hit = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}
    assert read(event({}, "stop", usage=hit), DONE)[0] == TokenUsage(9, 1, 8)
    inside = {
        "choices": [
            {"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": None}}
        ]
    }
    assert read(b"data: %s\n\n" % json.dumps(inside).encode(), DONE)[0] == TokenUsage(3)


THOUGHT = {"type": "reasoning_content"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_streams_and_ends_as_one_block(field: str) -> None:
    chunks = read(
        event({field: "Hm"}), event({field: "m."}), event({"content": "Yes", field: None}, "stop"), DONE
    )
    assert chunks == [
        ReasoningChunk("Hm"),
        ReasoningChunk("m."),
        TextChunk("Yes"),
        ReasoningBlock("Hmm.", data=THOUGHT),
        StopChunk("end_turn", "stop"),
    ]


def test_content_may_be_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
        {"type": "text", "text": "Yes"},
    ]
    chunks = read(event({"content": parts}, "stop"), DONE)
    assert chunks == [
        ReasoningChunk("Hm"),
        TextChunk("Yes"),
        ReasoningBlock("Hm", data=THOUGHT),
        StopChunk("end_turn", "stop"),
    ]


def test_details_of_thinking_are_joined_and_kept() -> None:
    def detail(index: int, **fields: Any) -> dict[str, Any]:
        return {"reasoning_details": [{"index": index, "format": "f", **fields}]}

    chunks = read(
        event({"reasoning": "Hm", **detail(0, type="reasoning.text", text="Hm", signature=None)}),
        event({"reasoning": ".", **detail(0, type="reasoning.text", text=".", signature="s")}),
        event(detail(1, type="reasoning.encrypted", data="ab", id="r1")),
        event({"reasoning_details": ["odd"]}),
        event({"content": "Yes"}, "stop"),
        DONE,
    )
    details = [
        {"index": 0, "format": "f", "type": "reasoning.text", "text": "Hm.", "signature": "s"},
        {"index": 1, "format": "f", "type": "reasoning.encrypted", "data": "ab", "id": "r1"},
    ]
    block = ReasoningBlock("Hm.", data={"type": "reasoning_details", "details": details})
    assert [chunk for chunk in chunks if isinstance(chunk, ReasoningBlock)] == [block]


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_in_a_choice_is_raised_after_the_text(stream: bool) -> None:
    failed = {"index": 0, "finish_reason": "error", "error": {"code": 502, "message": "Upstream failed."}}
    reader = ReplyReader(ChatContent(), Peer("test"))
    if stream:
        last = b"data: " + json.dumps({"choices": [{**failed, "delta": {"content": "lo"}}]}).encode()
        chunks = [*reader.feed(event({"content": "Hel"})), *reader.feed(last + b"\n\n" + DONE)]
    else:
        reader.feed(json.dumps({"choices": [{**failed, "message": {"content": "Hello"}}]}).encode())
        chunks = reader.end()
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
    with pytest.raises(ProviderError, match=r"broke off its reply \(Upstream failed\); try again") as caught:
        reader.finish()
    assert (text, caught.value.status) == ("Hello", 502)


def test_a_refusal_is_shown_and_named() -> None:
    chunks = read(event({"refusal": "I will "}), event({"refusal": "not."}), event({}, "stop"), DONE)
    assert chunks == [TextChunk("I will "), TextChunk("not."), StopChunk("refusal", "I will not.")]


# --- replies that are not quite what they should be --------------------------------------------------


def test_a_missing_done_is_fine_when_the_reason_to_stop_was_given() -> None:
    assert read(event({"content": "x"}), event({}, "stop")) == [TextChunk("x"), StopChunk("end_turn", "stop")]


def test_done_without_a_reason_to_stop_ends_the_turn() -> None:
    assert read(event({"content": "x"}), DONE) == [TextChunk("x"), StopChunk("end_turn")]


def test_a_plain_json_reply_is_read_too() -> None:
    message = {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "Hm",
        "tool_calls": [{"id": "", "type": "function", "function": function("add", {"a": 1})},
                       {"id": "", "type": "function", "function": function("sub", '{"b":2}')}],
    }  # fmt: skip
    body = {"id": "c", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    data = json.dumps(body, indent=1).encode()
    assert read(data[:50], data[50:]) == [
        TextChunk("Hello"),
        ReasoningChunk("Hm"),
        ToolInputChunk(0, '{"a":1}', "", "add"),
        ToolInputChunk(1, '{"b":2}', "", "sub"),
        ReasoningBlock("Hm", data=THOUGHT),
        ToolCall("", "add", '{"a":1}'),
        ToolCall("", "sub", '{"b":2}'),
        TokenUsage(1, 2),
        StopChunk("tool_use", "tool_calls"),
    ]


def test_what_is_not_quite_json_is_mended() -> None:
    choice = b'{"delta":{"content":"a\\ud83d\xff"},"logprobs":[NaN,-Infinity],"finish_reason":"stop"}'
    odd = b'data: {"choices":[' + choice + b"]}\n\n"
    assert read(odd, DONE) == [TextChunk("a��"), StopChunk("end_turn", "stop")]


def test_blank_events_comments_and_foreign_objects_are_passed_over() -> None:
    noise = [
        b": ping\n\n",
        b"data:\n\n",
        b"data: 1\n\n",
        b'data: {"prompt_filter_results":[]}\n\n',
        b'data: {"choices":null}\n\n',
    ]
    assert read(*noise, event({"content": "x"}, "stop"), DONE) == [
        TextChunk("x"),
        StopChunk("end_turn", "stop"),
    ]


def test_an_error_inside_the_stream_follows_the_text_before_it() -> None:
    text, error = read_failure(event({"content": "Hel"}) + b'data: {"error":{"message":"it  broke."}}\n\n')
    assert (text, type(error), str(error)) == (
        "Hel",
        ProviderError,
        "test broke off its reply (it broke); try again.",
    )


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"message": "slow down", "code": 429}, RateLimitError, 429),
        ({"message": "slow down", "type": "rate_limit_error", "code": None}, RateLimitError, 429),
        ({"message": "busy", "type": "overloaded_error"}, ProviderError, 529),
        ("plain words", ProviderError, None),
    ],
)
def test_an_error_object_says_what_kind_it_is(
    error: object, kind: type[RobotaError], status: int | None
) -> None:
    caught = read_failure(b"data: %s\n\n" % json.dumps({"error": error, "choices": []}).encode())[1]
    assert (type(caught), getattr(caught, "status", None)) == (kind, status)


@pytest.mark.parametrize(
    "sent",
    [
        b"event: error\ndata: it broke\n\n",
        b'event: error\ndata: {"message":"it broke"}\n\n',
        b'data: {"object":"error","message":"it broke"}\n\n',
        b'{"error":{"message":"it broke"}}',
    ],
)
def test_other_ways_to_say_that_it_broke(sent: bytes) -> None:
    assert "it broke" in str(read_failure(sent)[1])


def test_a_web_page_is_recognised() -> None:
    error = read_failure(b"\n <!DOCTYPE html><html>")[1]
    assert str(error) == "test answered with a web page instead of a model's reply; check the base URL."


@pytest.mark.parametrize("sent", [b"data: {nonsense\n\n", b'{"half": ', b'{"no": "choices"}', b"[1]"])
def test_nonsense_is_refused_in_one_sentence(sent: bytes) -> None:
    error = read_failure(sent)[1]
    assert isinstance(error, ProviderError)
    assert str(error).startswith("test sent something that is not a Chat Completions reply (")


def test_an_endless_body_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_reply, "MAX_BODY_BYTES", 100)
    assert "more than 100 bytes" in str(read_failure(b"{" + b" " * 100)[1])


def test_an_empty_reply_is_a_broken_connection() -> None:
    assert isinstance(read_failure()[1], NetworkError)


# --- raw events ------------------------------------------------------------------------------------------


def test_raw_bytes_travel_with_the_text_and_all_other_events_by_themselves() -> None:
    parts = [event({"role": "assistant"}), event({"content": "x"}), event({}, "stop")]
    first, text, last = (part[len(b"data: ") : -2] for part in parts)

    def native(payload: bytes, sequence: int) -> NativePayload:
        return NativePayload(
            kind="stream_event", payload=payload, api_surface="openai-chat-completions", sequence=sequence
        )

    chunks = read(*parts, DONE, want_raw=True)
    assert chunks == [native(first, 1), TextChunk("x", text), native(last, 3), StopChunk("end_turn", "stop")]


def test_raw_bytes_are_always_one_line_of_valid_json() -> None:
    odd = b'data: {"choices":\ndata: [{"delta":{"content":"a\\ud83d"},"finish_reason":NaN}]}\n\n'
    chunk = read(odd, DONE, want_raw=True)[0]
    assert chunk == TextChunk("a�", '{"choices":[{"delta":{"content":"a�"},"finish_reason":null}]}'.encode())


def test_a_plain_reply_is_one_native_response() -> None:
    body = b'{"choices":[\n{"message":{"content":"x"},"finish_reason":"stop"}]}'
    native = read(body, want_raw=True)[0]
    assert isinstance(native, NativePayload)
    assert (native.kind, native.payload) == ("response", body.replace(b"\n", b""))


# --- a stream cut anywhere -------------------------------------------------------------------------------

CALLS = [ToolCall("a", "add", '{"a":1}'), ToolCall("b", "sub", '{"b":2}')]
_TEXTS = ["안녕 ", "wörld ", "🙂 ", *(f"number {at} " for at in range(12))]
RECORDED = [
    event({"role": "assistant", "content": None}),
    event({"reasoning_content": "Hm."}),
    *(event({"content": text}) for text in _TEXTS),
    event(tool_delta(index=0, id="a", function=function("add", '{"a"'))),
    event(tool_delta(index=1, id="b", function=function("sub", '{"b":2}'))),
    event(tool_delta(index=0, function={"arguments": ":1}"})),
    event({}, "tool_calls"),
    event(None, usage={"prompt_tokens": 10, "completion_tokens": 5}),
    DONE,
]


def test_a_stream_cut_at_any_byte_keeps_its_text_and_gives_out_no_unfinished_call() -> None:
    certain = len(b"".join(RECORDED[:-2])) - 2  # the finish reason has come
    texts = [*zip(_TEXTS, RECORDED[2:], strict=False)]
    check_cuts(ChatContent, b"".join(RECORDED), texts, CALLS, certain)


def test_where_chunks_are_cut_changes_nothing() -> None:
    check_tears(ChatContent, b"".join(RECORDED))


def test_a_whole_message_counts_where_a_server_sends_an_empty_delta_beside_it() -> None:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Blue."},
        "delta": {"role": "assistant", "content": ""},
    }
    reply = json.dumps({"id": "x", "object": "chat.completion", "choices": [choice]}).encode()
    assert read(reply) == [TextChunk("Blue."), StopChunk("end_turn", "stop")]


def test_a_stream_that_ends_with_an_error_line_fails_with_its_reason() -> None:
    line = b'error: {"error":{"code":500,"message":"the context is too small to go on"}}\n\n'
    text, error = read_failure(event({"content": "Hel"}), line)
    assert text == "Hel"
    assert "the context is too small to go on" in str(error)
    assert "the context is too small" in str(read_failure(line)[1])


def test_a_gemini_call_keeps_its_signature() -> None:
    call = {
        "index": 0,
        "id": "call-1",
        "type": "function",
        "function": function("look", "{}"),
        "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
    }
    chunks = read(event({"tool_calls": [call]}), event({}, "tool_calls"), DONE)
    assert ToolCall("call-1", "look", "{}", "c2lnbmVk") in chunks
