from __future__ import annotations

import json

import pytest
from tests.providers.anthropic_events import END, PING, call, closed, delta, event, opened, start, stop, text
from tests.providers.reading import calls_in, check_cuts, check_tears, read_broken, read_reply

from robota.core.errors import NetworkError, ProviderError, RateLimitError, RobotaError
from robota.core.messages import ReasoningBlock, StopReason, TokenUsage, ToolCall
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
from robota.providers.anthropic.reply import BlockContent
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader

ANNOUNCED = MetadataChunk({"model": "served", "responseId": "msg_1"})


def read(*parts: bytes, want_raw: bool = False) -> list[Chunk]:
    """All chunks of a whole reply, without the metadata and the usage that each has."""
    chunks = read_reply(BlockContent(), *parts, want_raw=want_raw)
    return [chunk for chunk in chunks if chunk not in (ANNOUNCED, TokenUsage(3, 5))]


def read_failure(*parts: bytes) -> tuple[str, RobotaError]:
    return read_broken(BlockContent(), *parts)


# --- a whole reply ---------------------------------------------------------------------------------------


def test_a_reply_is_metadata_text_usage_and_the_reason_to_stop() -> None:
    reader = ReplyReader(BlockContent(), Peer("test"))
    chunks = reader.feed(b"".join([start(), PING, *text(0, "Hel", "lo"), stop(), END]))
    assert reader.done
    assert chunks + reader.finish() == [
        ANNOUNCED,
        TextChunk("Hel"),
        TextChunk("lo"),
        TokenUsage(3, 5),
        StopChunk("end_turn", "end_turn"),
    ]


def test_calls_are_put_together_and_numbered() -> None:
    parts = [*text(0, "Hm."), *call(1, "a", "add", "", '{"a"', ":1}"), *call(2, "b", "sub")]
    assert read(start(), *parts, stop("tool_use"), END) == [
        TextChunk("Hm."),
        ToolInputChunk(0, "", "a", "add"),
        ToolInputChunk(0, '{"a"', "a", "add"),
        ToolInputChunk(0, ":1}", "a", "add"),
        ToolInputChunk(1, "", "b", "sub"),
        ToolCall("a", "add", '{"a":1}'),
        ToolCall("b", "sub", "{}"),
        StopChunk("tool_use", "tool_use"),
    ]


def test_an_input_that_came_with_the_beginning_of_its_block_counts() -> None:
    block = opened(0, type="tool_use", id="a", name="add", input={"a": 1})
    assert calls_in(read(start(), block, closed(0), stop("tool_use"), END)) == [
        ToolCall("a", "add", '{"a":1}')
    ]


def test_blocks_that_all_have_one_index_are_still_told_apart() -> None:
    parts = [*call(0, "a", "add", '{"a":1}'), *call(0, "b", "add", '{"a":2}')]
    assert [made.id for made in calls_in(read(start(), *parts, stop("tool_use"), END))] == ["a", "b"]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_overflow"),
        ("something_new", "other"),
    ],
)
def test_each_reason_to_stop_has_a_neutral_name(word: str, reason: StopReason) -> None:
    assert read(start(), *text(0, "x"), stop(word), END)[-1] == StopChunk(reason, word)


def test_a_call_makes_the_reason_a_call() -> None:
    assert read(start(), *call(0, "a", "add", "{}"), stop("end_turn"), END)[-1] == StopChunk(
        "tool_use", "end_turn"
    )


def test_a_refusal_is_told_with_its_explanation() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "This looks like an attack."}
    assert read(start(), stop("refusal", stop_details=details), END) == [
        StopChunk("refusal", "This looks like an attack.")
    ]


@pytest.mark.parametrize("pieces", [(), ('{"a":1, "b',), ("[1]",)])
def test_a_call_that_was_cut_by_the_token_limit_is_not_given_out(pieces: tuple[str, ...]) -> None:
    parts = [*call(0, "a", "add", '{"a":1}'), *call(1, "b", "add", *pieces)]
    assert calls_in(read(start(), *parts, stop("max_tokens"), END)) == [ToolCall("a", "add", '{"a":1}')]


def test_usage_sums_up_what_the_api_counts_apart() -> None:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100}
    last = {
        "output_tokens": 9,
        "cache_read_input_tokens": None,
        "output_tokens_details": {"thinking_tokens": 4},
    }
    chunks = read(
        start(usage=usage),
        *text(0, "x"),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage=last),
        END,
    )
    assert chunks[1] == TokenUsage(123, 9, 100, 20, 4)


def test_a_reply_without_counts_has_no_usage() -> None:
    parts = [*text(0, "x"), event("message_delta", delta={"stop_reason": "end_turn"}), END]
    assert read(*parts) == [TextChunk("x"), StopChunk("end_turn", "end_turn")]


def test_unknown_events_blocks_and_deltas_are_passed_over() -> None:
    parts = [
        event("content_block_news", index=0),
        opened(0, type="hologram"),
        delta(0, type="hologram_delta", beam=1),
        closed(0),
        closed(7),
        delta(8, type="thinking_delta", thinking="lost"),
        delta(9, type="text_delta", text="found"),
        event("content_block_delta", index=9, delta=None),
        b"data: 7\n\n",
        b": comment\n\n",
    ]
    assert [
        chunk for chunk in read(start(), *parts, stop(), END) if not isinstance(chunk, MetadataChunk)
    ] == [
        TextChunk("found"),
        StopChunk("end_turn", "end_turn"),
    ]


# --- thinking and hosted tools ---------------------------------------------------------------------------


def thinking(index: int, text: str, signature: str) -> list[bytes]:
    return [
        opened(index, type="thinking", thinking="", signature=""),
        delta(index, type="thinking_delta", thinking=text),
        delta(index, type="signature_delta", signature=signature),
        closed(index),
    ]


def test_thinking_streams_and_is_then_given_out_signed() -> None:
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    parts = [*thinking(0, "Hm.", "sig"), opened(1, **hidden), closed(1), *text(2, "Yes.")]
    assert read(start(), *parts, stop(), END) == [
        ReasoningChunk("Hm."),
        ReasoningBlock("Hm.", "sig", {"type": "thinking"}),
        ReasoningBlock(data=hidden),
        TextChunk("Yes."),
        StopChunk("end_turn", "end_turn"),
    ]


def test_thinking_without_words_keeps_its_signature() -> None:
    block = [
        opened(0, type="thinking", thinking="", signature=""),
        delta(0, type="signature_delta", signature="s"),
        closed(0),
    ]
    assert read(start(), *block, *text(1, "Yes."), stop(), END)[0] == ReasoningBlock(
        "", "s", {"type": "thinking"}
    )


CITATION = {"type": "web_search_result_location", "url": "https://x", "cited_text": "c"}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srv_1",
    "content": [{"type": "web_search_result", "title": "X", "url": "https://x", "encrypted_content": "e"}],
}
SEARCHING = [
    *text(0, "Let me see. "),
    opened(1, type="server_tool_use", id="srv_1", name="web_search", input={}),
    delta(1, type="input_json_delta", partial_json='{"query":"x"}'),
    closed(1),
    opened(2, **FOUND),
    closed(2),
    opened(3, type="text", text=""),
    delta(3, type="citations_delta", citation=CITATION),
    delta(3, type="text_delta", text="Yes."),
    closed(3),
]
SEARCHED = [
    {"type": "text", "text": "Let me see. "},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}},
    FOUND,
    {"type": "text", "text": "Yes.", "citations": [CITATION]},
]


def test_a_hosted_search_is_told_and_its_blocks_are_kept() -> None:
    assert read(start(), *SEARCHING, stop(), END) == [
        TextChunk("Let me see. "),
        ServerToolChunk("web_search", {"query": "x"}),
        TextChunk("Yes."),
        MetadataChunk(
            {
                "anthropicContent": SEARCHED,
                "webSources": [{"title": "X", "url": "https://x"}],
                "usageIsSum": True,
            }
        ),
        StopChunk("end_turn", "end_turn"),
    ]


def test_a_hosted_tool_whose_input_cannot_be_read_is_told_all_the_same() -> None:
    use = [
        opened(0, type="server_tool_use", id="srv_1", name="web_search", input={}),
        delta(0, type="input_json_delta", partial_json='{"query'),
        closed(0),
    ]
    told, kept, _ = read(start(), *use, stop(), END)
    assert told == ServerToolChunk("web_search", None)
    assert isinstance(kept, MetadataChunk)
    assert kept.values["anthropicContent"][0]["input"] == {}


def test_a_pause_in_a_search_keeps_what_the_api_wants_back() -> None:
    chunks = read(start(), *SEARCHING[:-6], stop("pause_turn"), END)
    assert chunks[-2:] == [
        MetadataChunk({"anthropicContent": SEARCHED[:2], "usageIsSum": True}),
        StopChunk("pause", "pause_turn"),
    ]


def test_blank_text_between_cited_passages_is_kept_with_them() -> None:
    cited = [opened(5, type="text", text=""), delta(5, type="citations_delta", citation=CITATION)]
    more = [*text(4, " "), *cited, delta(5, type="text_delta", text="So."), closed(5)]
    kept = read(start(), *SEARCHING, *more, stop(), END)[-2]
    assert isinstance(kept, MetadataChunk)
    after = [{"type": "text", "text": " "}, {"type": "text", "text": "So.", "citations": [CITATION]}]
    assert kept.values["anthropicContent"] == [*SEARCHED, *after]


def test_thinking_between_words_and_calls_is_kept_in_its_place() -> None:
    parts = [*text(0, "Well."), *thinking(1, "Hm.", "sig"), *call(2, "a", "add", "{}")]
    kept = next(
        chunk for chunk in read(start(), *parts, stop("tool_use"), END) if isinstance(chunk, MetadataChunk)
    )
    assert [block["type"] for block in kept.values["anthropicContent"]] == ["text", "thinking", "tool_use"]


def test_a_message_that_begins_inside_another_ends_the_reply() -> None:
    first = [start(), *text(0, "Hm."), *call(1, "a", "add", '{"a":1}')]
    second = [start(id="msg_2"), *call(0, "b", "add", '{"a":1}'), stop("tool_use"), END]
    said, error = read_failure(*first, *second)
    assert said == "Hm."
    assert "(another message began before this one had ended); try again." in str(error)


def test_a_message_that_is_announced_twice_is_one() -> None:
    assert read(start(), *text(0, "Hel"), start(), *text(1, "lo"), stop(), END)[:2] == [
        TextChunk("Hel"),
        TextChunk("lo"),
    ]


# --- a reply that is not streamed ------------------------------------------------------------------------


def test_a_plain_json_reply_is_read_like_a_stream() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        {"type": "text", "text": "Yes."},
        {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1}},
    ]
    message = {
        "type": "message", "id": "msg_1", "model": "served", "content": content, "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }  # fmt: skip
    body = json.dumps(message).encode()
    assert read(body[:50], body[50:]) == [
        ReasoningChunk("Hm."),
        ReasoningBlock("Hm.", "sig", {"type": "thinking"}),
        TextChunk("Yes."),
        ToolInputChunk(0, "", "a", "add"),
        ToolCall("a", "add", '{"a":1}'),
        StopChunk("tool_use", "tool_use"),
    ]
    native = read(body, want_raw=True)[0]
    assert isinstance(native, NativePayload)
    assert (native.kind, native.payload, native.api_surface) == ("response", body, "anthropic-messages")


# --- failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected", "status"),
    [
        ("overloaded_error", ProviderError, 529),
        ("rate_limit_error", RateLimitError, 429),
        ("api_error", ProviderError, 500),
        ("invalid_request_error", ProviderError, None),
    ],
)
def test_an_error_inside_the_stream_follows_the_text_before_it(
    kind: str, expected: type[RobotaError], status: int | None
) -> None:
    failed = event("error", error={"type": kind, "message": "It broke."})
    words, error = read_failure(start(), *text(0, "Hel"), failed)
    assert (words, type(error), getattr(error, "status", None)) == ("Hel", expected, status)
    assert str(error) == "test broke off its reply (It broke); try again."


@pytest.mark.parametrize(
    "sent",
    [
        b"event: error\ndata: it broke\n\n",
        b'event: error\ndata: {"message":"it broke"}\n\n',
        b'data: {"error":{"message":"it broke"}}\n\n',
        b'{"type":"error","error":{"type":"api_error","message":"it broke"}}',
    ],
)
def test_other_ways_to_say_that_it_broke(sent: bytes) -> None:
    assert "it broke" in str(read_failure(sent)[1])


@pytest.mark.parametrize("sent", [b"data: {nonsense\n\n", b'{"half": ', b'{"no": "content"}', b"[1]"])
def test_nonsense_is_refused_in_one_sentence(sent: bytes) -> None:
    error = read_failure(sent)[1]
    assert isinstance(error, ProviderError)
    assert str(error).startswith("test sent something that is not a Messages reply (")


def test_an_empty_reply_is_a_broken_connection() -> None:
    assert isinstance(read_failure()[1], NetworkError)


# --- raw events ------------------------------------------------------------------------------------------


def test_raw_bytes_travel_with_the_text_and_all_other_events_by_themselves() -> None:
    parts = [start(), *text(0, "x"), stop(), END]
    sent = [part.partition(b"data: ")[2][:-2] for part in parts]
    chunks = [chunk for chunk in read(*parts, want_raw=True) if isinstance(chunk, NativePayload | TextChunk)]
    assert chunks[2] == TextChunk("x", sent[2])
    native = [chunk for chunk in chunks if isinstance(chunk, NativePayload)]
    assert [chunk.payload for chunk in native] == [sent[0], sent[1], *sent[3:]]
    assert [chunk.sequence for chunk in native] == [1, 2, 4, 5, 6]
    assert {(chunk.kind, chunk.api_surface) for chunk in native} == {("stream_event", "anthropic-messages")}


# --- a stream cut anywhere -------------------------------------------------------------------------------

CALLS = [ToolCall("a", "add", '{"a":1}'), ToolCall("b", "sub", '{"b":2}')]
_TEXTS = ["안녕 ", "wörld ", "🙂 ", *(f"number {at} " for at in range(12))]
RECORDED = [
    start(),
    PING,
    *thinking(0, "Hm.", "sig"),
    *text(1, *_TEXTS),
    *call(2, "a", "add", '{"a"', ":1}"),
    *call(3, "b", "sub", '{"b":2}'),
    stop("tool_use"),
    END,
]


def test_a_stream_cut_at_any_byte_keeps_its_text_and_gives_out_no_unfinished_call() -> None:
    certain = len(b"".join(RECORDED[:-1])) - 2  # the stop reason has come
    texts = [(words, delta(1, type="text_delta", text=words)) for words in _TEXTS]
    check_cuts(BlockContent, b"".join(RECORDED), texts, CALLS, certain)


def test_where_chunks_are_cut_changes_nothing() -> None:
    check_tears(BlockContent, b"".join(RECORDED))
