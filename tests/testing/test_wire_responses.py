from __future__ import annotations

import json

import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import (
    MetadataChunk,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.testing.dialect import Turn
from robota.testing.wire_responses import Responses

RESPONSES = Responses()
PATH = "/v1/responses"
QUESTION = {"role": "user", "content": "Add."}
CALL = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "3"}
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "e"}


def say(*steps):
    encoder = RESPONSES.encoder(PATH, {"model": "m"})
    events = [
        *encoder.begin(steps[0] if steps else None),
        *(event for step in steps for event in encoder.say(step)),
        *encoder.end(),
    ]
    decoded = [json.loads(data) for _, data in events]
    assert [name for name, _ in events] == [event["type"] for event in decoded]
    assert [event["sequence_number"] for event in decoded] == list(range(1, len(events) + 1))
    return decoded


def kinds(events):
    return [event["type"].removeprefix("response.") for event in events]


def check(*items, **fields):
    return RESPONSES.check({"model": "o9", "input": list(items), **fields})


# --- replies -----------------------------------------------------------------------------------------


def test_a_text_is_a_message_item_that_opens_streams_and_closes():
    events = say("Hel", TextChunk('"lo"'))
    assert kinds(events) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta",
        "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert [event["delta"] for event in events if "delta" in event] == ["Hel", '"lo"']
    assert events[-2]["item"]["content"][0]["text"] == events[-4]["text"] == 'Hel"lo"'
    assert events[-1]["response"]["output"] == [events[-2]["item"]]


def test_a_call_streams_its_arguments_in_pieces_and_is_said_whole_at_its_end():
    arguments = '{"a":1,"b":"a longer text"}'
    events = say("Let me.", ToolCall("c1", "add", arguments))
    pieces = [event for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert len(pieces) > 1
    assert "".join(piece["delta"] for piece in pieces) == arguments
    assert {piece["output_index"] for piece in pieces} == {1}
    item = events[-2]["item"]
    assert (item["call_id"], item["name"], item["arguments"], item["status"]) == (
        "c1", "add", arguments, "completed",
    )  # fmt: skip


def test_a_call_in_fragments_ends_with_the_reply_and_is_incomplete_if_the_reply_is():
    events = say(ToolInputChunk(0, '{"a":', "c1", "add"), StopChunk("max_tokens"))
    assert events[-2]["item"]["status"] == "incomplete"
    assert events[-1]["type"] == "response.incomplete"
    assert events[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_thinking_is_an_item_with_a_summary_and_encrypted_content():
    events = say(ReasoningChunk("Hm"), ReasoningChunk("m."), "Yes.", ReasoningBlock("", data={"id": "rs_1"}))
    items = events[-1]["response"]["output"]
    assert [item["type"] for item in items] == ["reasoning", "message", "reasoning"]
    assert items[0]["summary"] == [{"type": "summary_text", "text": "Hmm."}]
    assert (items[2]["id"], items[2]["summary"], items[2]["encrypted_content"]) == ("rs_1", [], "scripted")


def test_a_hosted_tool_is_an_item_of_its_own():
    events = say(ServerToolChunk("web_search", {"query": "turtles"}))
    assert events[-2]["item"]["type"] == "web_search_call"
    assert events[-2]["item"]["action"] == {"type": "search", "query": "turtles"}


def test_a_refusal_is_a_part_of_its_own():
    events = say("Well", StopChunk("refusal", "No."))
    assert [event["delta"] for event in events if event["type"] == "response.refusal.delta"] == ["No."]
    assert events[-1]["type"] == "response.completed"


def test_usage_and_metadata_are_in_the_response_that_ends_the_reply():
    response = say(MetadataChunk({"model": "m-2"}), "Hi", TokenUsage(7, 3, 2, 4, 1))[-1]["response"]
    assert response["model"] == "m-2"
    assert response["usage"] == {
        "input_tokens": 7, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4},
        "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 10,
    }  # fmt: skip


def test_a_reply_can_be_one_document():
    steps = ["Hi", ToolCall("c1", "add")]
    response = RESPONSES.encoder(PATH, {"model": "m"}).whole(steps)
    assert response["output"] == say(*steps)[-1]["response"]["output"]
    assert response["status"] == "completed"


def test_what_the_protocol_cannot_say_is_refused():
    with pytest.raises(ConfigurationError, match="RetryNotice cannot be said in the Responses API"):
        say(RetryNotice(attempt=1, max_attempts=2, delay=0, message=""))


# --- requests ----------------------------------------------------------------------------------------


def test_a_conversation_is_read_from_instructions_and_items():
    body = {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Add."}]},
            THOUGHT, {"role": "assistant", "content": "Let me."}, CALL, OUTPUT,
            {"role": "developer", "content": "Hurry."}, CALL,
        ],
        "tools": [{"type": "function", "name": "add"}, {"type": "web_search"}],
    }  # fmt: skip
    call = ToolCall("c1", "add", "{}")
    read = RESPONSES.read(body)
    assert read.turns == (
        Turn("system", "Be brief."), Turn("user", "Add."), Turn("assistant", "Let me.", (call,)),
        Turn("tool", "3", answers="c1"), Turn("system", "Hurry."), Turn("assistant", "", (call,)),
    )  # fmt: skip
    assert read.tools == ("add", "web_search")
    assert RESPONSES.read({"input": "Hi"}).turns == (Turn("user", "Hi"),)


@pytest.mark.parametrize(
    "items",
    [
        (QUESTION,),
        (QUESTION, QUESTION),
        ({"role": "assistant", "content": "Summary."},),
        (QUESTION, THOUGHT, CALL, OUTPUT),
        (QUESTION, CALL, {**OUTPUT, "output": [{"type": "input_image", "image_url": "data:"}]}),
    ],
)
def test_what_the_vendor_takes_is_taken(items):
    assert check(*items) is None


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ((), "at least one item"),
        (({"role": "tool", "content": ""},), "role 'tool'"),
        (({"role": "user", "content": None},), "neither a text nor"),
        (({"role": "user", "content": [{"type": "output_text"}]},), "type 'output_text'"),
        ((OUTPUT,), "answers no call"),
        ((CALL, OUTPUT, OUTPUT), "answers no call"),
        ((CALL,), "no tool output found for function call c1"),
        ((CALL, OUTPUT, CALL, OUTPUT), "call_id of its own"),
        (({**CALL, "call_id": "x" * 65},), "at most 64"),
        (({**CALL, "arguments": "{"},), "not the text of a JSON object"),
        ((THOUGHT,), "without its required following item"),
        ((THOUGHT, QUESTION), "without its required following item"),
        (({**THOUGHT, "encrypted_content": None}, CALL, OUTPUT), "no encrypted content"),
        (({"type": "reasoning"}, CALL, OUTPUT), "without a summary list"),
        (({"type": "message_list"},), "unknown type"),
    ],
)
def test_items_that_the_vendor_refuses_are_refused(items, problem):
    assert problem in check(*items)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"model": ""}, "model parameter"),
        ({"max_tokens": 5}, "unsupported parameter: 'max_tokens'"),
        ({"model": "gpt-4o", "include": ["reasoning.encrypted_content"]}, "encrypted content"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "needs a name"),
        ({"tools": [{"type": "function", "name": "a", "parameters": {}}]}, "type object"),
        ({"tools": [{"type": "function", "name": "a", "parameters": {"type": "object"}}]}, "not strict"),
    ],
)
def test_fields_that_the_vendor_refuses_are_refused(fields, problem):
    assert problem in check(QUESTION, **fields)


def test_strict_schemas_are_closed_on_every_level():
    inner = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
    outer = {**inner, "properties": {"a": {"anyOf": [inner]}}}
    tool = {"type": "function", "name": "a", "strict": True, "parameters": outer}
    assert check(QUESTION, tools=[tool]) is None
    inner["required"] = []
    assert "not strict" in check(QUESTION, tools=[tool])
    assert check(QUESTION, tools=[{**tool, "strict": False}, {"type": "web_search"}]) is None
