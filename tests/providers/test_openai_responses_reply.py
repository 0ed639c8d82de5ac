from __future__ import annotations

import json
from typing import Any

import pytest
from tests.providers.reading import calls_in, check_cuts, check_tears, read_broken, read_reply, text_in

from robota.core.errors import ProviderError, RateLimitError, RobotaError
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
from robota.providers.responses.reply import ResponseContent
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader


def event(kind: str, **fields: Any) -> bytes:
    """One event as the service writes it."""
    body = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {body}\n\n".encode()


def response(status: str = "completed", **fields: Any) -> bytes:
    kind = "incomplete" if status == "incomplete" else "completed"
    return event(f"response.{kind}", response={"id": "resp_1", "model": "m-1", "status": status, **fields})


def text_delta(text: str, place: int = 0) -> bytes:
    return event("response.output_text.delta", output_index=place, content_index=0, delta=text)


def done(place: int, **item: Any) -> bytes:
    return event("response.output_item.done", output_index=place, item=item)


def call_item(call_id: str = "call_1", arguments: str = '{"a":1}', **fields: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "add", "arguments": arguments}
    return {**item, "status": "completed", **fields}


def message_item(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def output_text(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": list(annotations)}


def read(*parts: bytes, want_raw: bool = False, **options: Any) -> list[Chunk]:
    """All chunks of a whole reply, without the metadata that each begins with."""
    begun = MetadataChunk({"model": "m-1", "responseId": "resp_1"})
    chunks = read_reply(ResponseContent(**options), *parts, want_raw=want_raw)
    return [chunk for chunk in chunks if chunk != begun]


def read_failure(*parts: bytes) -> tuple[str, RobotaError]:
    return read_broken(ResponseContent(), *parts, peer=Peer("test", "req_1", ["sk-very-secret"]))


# --- a whole reply ---------------------------------------------------------------------------------------

USAGE = {
    "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3},
    "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15,
}  # fmt: skip


def test_a_reply_is_text_then_usage_then_the_reason_to_stop() -> None:
    assert read(text_delta("Hel"), text_delta("lo"), response(usage=USAGE)) == [
        TextChunk("Hel"), TextChunk("lo"), TokenUsage(10, 5, 4, 3, 2), StopChunk("end_turn", "completed"),
    ]  # fmt: skip


def test_model_and_id_are_told_once_and_first() -> None:
    begun = event("response.created", response={"id": "resp_1", "model": "m-1", "status": "in_progress"})
    reader = ReplyReader(ResponseContent(), Peer("test"))
    assert reader.feed(begun) == [MetadataChunk({"model": "m-1", "responseId": "resp_1"})]
    assert reader.feed(response()) == []
    assert reader.over


def test_a_call_streams_and_is_given_out_at_the_end() -> None:
    opening = event("response.output_item.added", output_index=1, item=call_item(arguments=""))
    pieces = [
        event("response.function_call_arguments.delta", output_index=1, delta=text)
        for text in ('{"a"', ":1}")
    ]
    assert read(opening, *pieces, done(1, **call_item()), response()) == [
        ToolInputChunk(0, "", "call_1", "add"),
        ToolInputChunk(0, '{"a"', "call_1", "add"),
        ToolInputChunk(0, ":1}", "call_1", "add"),
        ToolCall("call_1", "add", '{"a":1}'),
        StopChunk("tool_use", "completed"),
    ]


def test_calls_come_in_the_order_of_their_items() -> None:
    chunks = read(done(2, **call_item("b")), done(0, **call_item("a")), response())
    assert [call.id for call in calls_in(chunks)] == ["a", "b"]


@pytest.mark.parametrize(("written", "told"), [("", "{}"), ('{"a": ', '{"a": ')])
def test_arguments_are_the_models_own_but_never_empty(written: str, told: str) -> None:
    chunks = read(done(0, **call_item(arguments=written)), response())
    assert calls_in(chunks) == [ToolCall("call_1", "add", told)]


def test_nulls_of_a_strict_schema_are_taken_out_of_calls() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    item = call_item(arguments='{"a":null}')
    assert calls_in(read(done(0, **item), response(), schemas={"add": schema}))[0].arguments == "{}"
    assert calls_in(read(done(0, **item), response()))[0].arguments == '{"a":null}'


def thought(id: str, *summary: str, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id, "summary": parts, "encrypted_content": "e", **fields}


def kept(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("type", "id", "summary", "encrypted_content")}


def test_thinking_streams_and_is_kept_with_the_item_it_led_to() -> None:
    first, second = thought("rs_1", "Hm.", "So."), thought("rs_2", status="completed")
    assert read(
        event("response.reasoning_summary_part.added", output_index=0, summary_index=0),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Hm."),
        event("response.reasoning_summary_part.added", output_index=0, summary_index=1),
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=1, delta="So."),
        done(0, **first),
        done(1, **message_item(output_text("Yes."))),
        done(2, **second),
        done(3, **call_item()),
        response(),
    ) == [
        ReasoningChunk("Hm."), ReasoningChunk("\n\n"), ReasoningChunk("So."),
        TextChunk("Yes."),
        ReasoningBlock("Hm.\n\nSo.", data=kept(first)),
        ReasoningBlock("", data={**kept(second), "before": "call_1"}),
        ToolCall("call_1", "add", '{"a":1}'),
        StopChunk("tool_use", "completed"),
    ]  # fmt: skip


def test_reasoning_that_could_not_be_sent_back_is_text_only() -> None:
    chunks = read(done(0, **thought("rs_1", "Hm.")), response())
    blocks = [chunk for chunk in chunks if isinstance(chunk, ReasoningBlock)]
    assert blocks == [ReasoningBlock("Hm.", data={"type": "reasoning"})]


def test_thinking_of_open_models_is_read_too() -> None:
    content = [{"type": "reasoning_text", "text": "Hm."}]
    item = thought("rs_1", content=content, encrypted_content=None)
    streamed = event("response.reasoning_text.delta", output_index=0, delta="Hm.")
    for parts in ([streamed, done(0, **item)], [done(0, **item)]):
        block = ReasoningBlock("Hm.", data={"type": "reasoning"})
        assert read(*parts, response())[:2] == [ReasoningChunk("Hm."), block]


def test_a_web_search_is_told_with_its_query_and_the_text_with_its_sources() -> None:
    cited = {"type": "url_citation", "url": "https://a.org", "title": "A", "start_index": 0, "end_index": 2}
    action = {"type": "search", "query": "turtles", "sources": [{"type": "url", "url": "https://a.org"}]}
    assert read(
        done(0, type="web_search_call", id="ws_1", status="completed", action=action),
        text_delta("Slow.", 1),
        done(1, **message_item(output_text("Slow.", cited, cited, {"type": "file_citation"}))),
        response(),
    ) == [
        ServerToolChunk("web_search", {"query": "turtles"}),
        MetadataChunk(
            {
                "serverTools": [
                    {"name": "web_search", "input": {"query": "turtles"}, "id": "ws_1", "status": "completed",
                     "sources": action["sources"]},
                ],
            }
        ),
        TextChunk("Slow."),
        MetadataChunk({"citations": [{"url": "https://a.org", "title": "A"}]}),
        StopChunk("end_turn", "completed"),
    ]  # fmt: skip


def test_a_hosted_tool_without_an_action_is_told_with_what_its_item_says() -> None:
    item = {"type": "web_extractor_call", "id": "we_1", "status": "completed"}
    asked = {"goal": "prices", "urls": ["https://a.org"]}
    chunks = read(done(0, **item, **asked, output="long"), response())
    assert ServerToolChunk("web_extractor", asked) in chunks
    told = {"name": "web_extractor", "input": asked, "id": "we_1", "status": "completed"}
    assert MetadataChunk({"serverTools": [told]}) in chunks


def test_the_phase_of_the_last_message_is_kept() -> None:
    items = [{**message_item(output_text(phase)), "phase": phase} for phase in ("commentary", "final_answer")]
    assert MetadataChunk({"phase": "final_answer"}) in read(response(output=items))


# --- why it stopped --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "reason"),
    [("max_output_tokens", "max_tokens"), ("content_filter", "content_filter"), ("whim", "other")],
)
def test_an_incomplete_reply_says_why(word: str, reason: str) -> None:
    chunks = read(text_delta("Hel"), response("incomplete", incomplete_details={"reason": word}))
    assert chunks[-1] == StopChunk(reason, word)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (call_item(), 1),
        (call_item(arguments='{"a":'), 0),
        (call_item(status="incomplete"), 0),
        (call_item(arguments="[]"), 0),
    ],
)
def test_an_incomplete_reply_gives_out_whole_calls_only(item: dict[str, Any], told: int) -> None:
    chunks = read(done(0, **item), response("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert len(calls_in(chunks)) == told
    assert chunks[-1] == StopChunk("max_tokens", "max_output_tokens")


def test_a_refusal_is_text_and_the_reason_to_stop() -> None:
    streamed = [event("response.refusal.delta", output_index=0, delta=text) for text in ("I ", "won't.")]
    item = done(0, **message_item({"type": "refusal", "refusal": "I won't."}))
    for parts in ([*streamed, item], [item]):
        chunks = read(*parts, response())
        assert text_in(chunks) == "I won't."
        assert chunks[-1] == StopChunk("refusal", "I won't.")


# --- servers that say less, or more ----------------------------------------------------------------------


def test_an_item_that_came_is_known_at_another_place_of_the_whole() -> None:
    said, call = message_item(output_text("seen")) | {"id": "msg_1"}, call_item()
    streamed = [text_delta("seen", 1), done(1, **said), done(2, **call)]
    chunks = read(*streamed, response(output=[said, call]))
    assert text_in(chunks) == "seen"
    assert len(calls_in(chunks)) == 1


def test_what_did_not_stream_is_taken_from_the_end() -> None:
    output = [message_item(output_text("Hello")), call_item()]
    expected = [TextChunk("Hello"), ToolCall("call_1", "add", '{"a":1}'), StopChunk("tool_use", "completed")]
    assert read(response(output=output)) == expected
    assert read(done(0, **output[0]), response(output=output)) == expected
    assert read(text_delta("Hello"), done(0, **output[0]), response(output=output)) == expected
    body = {"id": "resp_1", "object": "response", "model": "m-1", "status": "completed", "error": None}
    assert read(json.dumps({**body, "output": output}).encode()) == expected


@pytest.mark.parametrize(
    "odd",
    [
        b"data: 7\n\n",
        event("response.turtle.delta", delta="?"),
        event("response.output_text.delta", delta=None),
        event("response.output_item.done", item=None),
        event("response.output_item.added", item=None),
        event("response.function_call_arguments.delta", output_index=9, delta="?"),
        event("response.output_item.done", output_index=9, item={"type": 7, "content": 7}),
        event("response.created", response=None),
    ],
)
def test_odd_events_are_passed_over(odd: bytes) -> None:
    chunks = read(text_delta("Hel"), odd, text_delta("lo"), response(output=7, usage=7, incomplete_details=7))
    assert text_in(chunks) == "Hello"


def test_an_end_without_a_response_is_an_end() -> None:
    assert read(event("response.completed"))[-1] == StopChunk("end_turn", "completed")


def test_an_end_mark_without_an_end_gives_out_whole_calls_only() -> None:
    chunks = read(done(0, **call_item()), done(1, **call_item("b", "{")), b"data: [DONE]\n\n")
    assert [call.id for call in calls_in(chunks)] == ["call_1"]
    assert chunks[-1] == StopChunk("other")


# --- failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "kind", "status"),
    [
        (event("error", code="rate_limit_exceeded", message="Slow down."), RateLimitError, 429),
        (event("error", error={"code": "server_error", "message": "Oops."}), ProviderError, 500),
        (event("response.failed", response={"status": "failed", "error": {"code": "server_error"}}),
         ProviderError, 500),
        (event("response.failed", response={"error": {"code": "server_is_overloaded"}}), ProviderError, 529),
        (event("response.failed", response=None), ProviderError, None),
        (b'event: error\ndata: {"message":"Oops."}\n\n', ProviderError, None),
        (b'data: {"error":{"type":"server_error","message":"Oops."}}\n\n', ProviderError, 500),
    ],
)  # fmt: skip
def test_a_failure_in_the_stream_is_the_error_of_its_kind(
    failure: bytes, kind: type[RobotaError], status: int | None
) -> None:
    text, error = read_failure(text_delta("Hel"), failure + text_delta("lo"))
    assert text == "Hel"
    assert type(error) is kind
    assert isinstance(error, ProviderError | RateLimitError)
    assert (error.status, error.request_id) == (status, "req_1")


def test_a_conversation_too_long_says_what_to_do() -> None:
    failed = {"error": {"code": "context_length_exceeded", "message": "Too long for sk-very-secret."}}
    _, error = read_failure(event("response.failed", response=failed))
    assert str(error) == (
        "test cannot take a conversation this long (Too long for ***); "
        "compact it or use a model with a larger window."
    )
    assert isinstance(error, ProviderError)
    assert error.status == 400


@pytest.mark.parametrize(
    "sent",
    [
        b'{"choices":[]}',
        b"[]",
        b"data: nonsense\n\ndata: {}\n\n",
        b"<html>",
        b'{"output":[],"status":"failed"}',
    ],
)
def test_nonsense_is_refused_in_one_sentence(sent: bytes) -> None:
    _, error = read_failure(sent)
    assert type(error) is ProviderError
    assert "\n" not in str(error)


# --- raw bytes -------------------------------------------------------------------------------------------


def test_raw_bytes_travel_with_the_text_and_all_other_events_by_themselves() -> None:
    failed = event("error", code="server_error", message="Oops.")
    reader = ReplyReader(ResponseContent(), Peer("test"), want_raw=True)
    chunks = [chunk for part in (text_delta("Hi"), failed) for chunk in reader.feed(part)]
    payload = [part.partition(b"data: ")[2].strip() for part in (text_delta("Hi"), failed)]
    assert chunks == [
        TextChunk("Hi", payload[0]),
        NativePayload(kind="stream_event", payload=payload[1], api_surface="openai-responses", sequence=2),
    ]


def test_a_whole_response_is_one_payload_in_one_line() -> None:
    body = b'{\n"output": [], "status": "completed"}'
    assert read(body, want_raw=True)[0] == NativePayload(
        kind="response", payload=b'{"output":[],"status":"completed"}', api_surface="openai-responses"
    )


# --- cut anywhere ----------------------------------------------------------------------------------------

TEXTS = ["Let ", "me ", "add: ", "żółw 🐢"]
CALLS = [ToolCall("call_1", "add", '{"a":1}'), ToolCall("call_2", "add", '{"a":1}')]
ITEMS = [
    thought("rs_1", "Hm."),
    message_item(output_text("".join(TEXTS))),
    call_item("call_1"),
    call_item("call_2"),
]
RECORDED = [
    event("response.created", sequence_number=0, response={"id": "resp_1", "model": "m-1", "output": []}),
    event("response.output_item.added", output_index=0, item=thought("rs_1")),
    event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Hm."),
    done(0, **ITEMS[0]),
    event("response.output_item.added", output_index=1, item=message_item()),
    *(text_delta(text, 1) for text in TEXTS),
    done(1, **ITEMS[1]),
    event("response.output_item.added", output_index=2, item=call_item("call_1", "", status="in_progress")),
    event("response.function_call_arguments.delta", output_index=2, delta='{"a"'),
    event("response.function_call_arguments.delta", output_index=2, delta=":1}"),
    event("response.function_call_arguments.done", output_index=2, arguments='{"a":1}'),
    done(2, **ITEMS[2]),
    done(3, **ITEMS[3]),
    response(output=ITEMS, usage=USAGE),
]


def test_a_stream_cut_at_any_byte_keeps_its_text_and_gives_out_no_unfinished_call() -> None:
    stream = b"".join(RECORDED)
    assert calls_in(read(stream)) == CALLS
    texts = [(text, text_delta(text, 1)) for text in TEXTS]
    check_cuts(ResponseContent, stream, texts, CALLS, len(stream) - 2)


def test_where_chunks_are_cut_changes_nothing() -> None:
    check_tears(ResponseContent, b"".join(RECORDED))
