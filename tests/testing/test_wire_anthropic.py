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
from robota.testing.wire_anthropic import Messages

MESSAGES = Messages()
PATH = "/v1/messages"
QUESTION = {"role": "user", "content": "Add."}
SEARCHED = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}


def say(*steps):
    encoder = MESSAGES.encoder(PATH, {"model": "m"})
    events = [
        *encoder.begin(steps[0] if steps else None),
        *(event for step in steps for event in encoder.say(step)),
        *encoder.end(),
    ]
    read = [json.loads(data) for _, data in events]
    assert [name for name, _ in events] == [event["type"] for event in read]
    return read


def blocks(*steps):
    return MESSAGES.encoder(PATH, {"model": "m"}).whole(steps)["content"]


def made_call(id="c1", input=None):
    return {"type": "tool_use", "id": id, "name": "add", "input": {} if input is None else input}


# --- replies -----------------------------------------------------------------------------------------


def test_text_is_said_in_the_vendors_events():
    events = say('Hel"', TextChunk("lo"))
    assert [event["type"] for event in events] == [
        "message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta",
        "content_block_stop", "message_delta",
    ]  # fmt: skip
    assert events[0]["message"]["model"] == "m"
    assert events[0]["message"]["content"] == []
    assert events[3] == {
        "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 'Hel"'},
    }  # fmt: skip
    assert events[-1]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}


def test_a_call_is_a_block_whose_input_comes_in_pieces():
    arguments = '{"a":1,"b":"a longer text"}'
    opening, *deltas, stop = say("Hm.", ToolCall("c1", "add", arguments))[5:-1]
    assert opening["content_block"] == made_call()
    assert len(deltas) > 2
    assert "".join(delta["delta"]["partial_json"] for delta in deltas) == arguments
    assert {delta["index"] for delta in (opening, *deltas, stop)} == {1}


def test_fragments_of_two_calls_may_come_by_turns():
    events = say(
        ToolInputChunk(0, "{", "c1", "add"),
        ToolInputChunk(1, "{", "c2", "add"),
        ToolInputChunk(0, "}"),
        ToolInputChunk(1, "}"),
    )
    deltas = [event for event in events if event["type"] == "content_block_delta"]
    assert [delta["index"] for delta in deltas] == [0, 1, 0, 1]
    assert events[-1]["delta"]["stop_reason"] == "tool_use"


def test_thinking_is_signed_at_its_end():
    steps = (ReasoningChunk("Hm"), ReasoningChunk("m."), ReasoningBlock("Hmm.", "sig"), "Hi")
    thought = {"type": "thinking", "thinking": "Hmm.", "signature": "sig"}
    assert blocks(*steps) == [thought, {"type": "text", "text": "Hi"}]
    assert blocks(ReasoningBlock("Hmm.", "sig")) == [thought]
    hidden = {"type": "redacted_thinking", "data": "x"}
    assert blocks(ReasoningBlock(data=hidden)) == [hidden]


def test_a_hosted_tool_is_said_with_an_empty_result():
    use, result = blocks(ServerToolChunk("web_search", {"query": "x"}))
    assert (use["type"], use["name"], use["input"]) == ("server_tool_use", "web_search", {"query": "x"})
    assert result == {"type": "web_search_tool_result", "tool_use_id": use["id"], "content": []}


def test_usage_counts_the_cache_apart():
    assert say("Hi", TokenUsage(10, 3, 4, 5, 1))[-1]["usage"] == {
        "input_tokens": 1, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3,
        "output_tokens_details": {"thinking_tokens": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (StopChunk("max_tokens"), "max_tokens"),
        (StopChunk("pause"), "pause_turn"),
        (StopChunk("context_overflow"), "model_context_window_exceeded"),
    ],
)
def test_a_reply_ends_with_the_vendors_word(stop, word):
    assert say("Hi", stop)[-1]["delta"]["stop_reason"] == word


def test_a_refusal_may_be_explained():
    delta = say(StopChunk("refusal", "No."))[-1]["delta"]
    assert (delta["stop_reason"], delta["stop_details"]["explanation"]) == ("refusal", "No.")


def test_facts_at_the_beginning_are_in_the_envelope():
    message = say(MetadataChunk({"model": "m-2026", "responseId": "msg_1"}), "Hi")[0]["message"]
    assert (message["id"], message["model"]) == ("msg_1", "m-2026")


def test_what_the_protocol_has_no_words_for_is_refused():
    with pytest.raises(ConfigurationError, match="RetryNotice cannot be said in the Messages API"):
        say(RetryNotice(attempt=1, max_attempts=2, delay=0, message=""))


def test_a_client_that_does_not_stream_gets_the_same_reply_whole():
    reply = MESSAGES.encoder(PATH, {"model": "m"}).whole(
        ("Hel", "lo", ToolCall("c1", "add", '{"a":1}'), TokenUsage(7, 3))
    )
    assert reply["content"] == [{"type": "text", "text": "Hello"}, made_call(input={"a": 1})]
    assert (reply["type"], reply["stop_reason"], reply["usage"]["input_tokens"]) == ("message", "tool_use", 7)


def test_errors_have_the_vendors_form():
    assert json.loads(MESSAGES.error_event("Busy.", "overloaded_error")[1]) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Busy."},
    }
    assert MESSAGES.error_body(429, "Slow.")["error"] == {"type": "rate_limit_error", "message": "Slow."}
    assert MESSAGES.error_body(503, "")["error"]["type"] == "api_error"
    assert MESSAGES.error_body(422, "")["error"]["type"] == "invalid_request_error"


# --- requests ----------------------------------------------------------------------------------------


def result(id="c1", **fields):
    return {"type": "tool_result", "tool_use_id": id, **fields}


def user(*content):
    return {"role": "user", "content": [*content]}


def assistant(*content):
    return {"role": "assistant", "content": [*content]}


def text(words="Hi"):
    return {"type": "text", "text": words}


def asking(*messages, **fields):
    return {"model": "m", "max_tokens": 9, "messages": list(messages), **fields}


def test_a_request_reads_as_a_conversation():
    body = asking(
        QUESTION,
        assistant({"type": "thinking", "thinking": "", "signature": "s"}, text("Well."), made_call()),
        user(result(content=[text("3")]), text("Thanks.")),
        system=[text("Be brief.")],
        tools=[{"name": "add", "input_schema": {"type": "object"}}],
    )
    assert MESSAGES.check(body) is None
    conversation = MESSAGES.read(body)
    assert conversation.tools == ("add",)
    assert conversation.turns == (
        Turn("system", "Be brief."),
        Turn("user", "Add."),
        Turn("assistant", "Well.", (ToolCall("c1", "add", "{}"),)),
        Turn("tool", "3", answers="c1"),
        Turn("user", "Thanks."),
    )


@pytest.mark.parametrize(
    "body",
    [
        asking(QUESTION, QUESTION, system="Be brief."),
        asking(QUESTION, assistant(made_call()), user(result()), user(text())),
        asking(QUESTION, assistant(SEARCHED)),
    ],
)
def test_what_the_vendor_accepts_is_accepted(body):
    assert MESSAGES.check(body) is None


MARKED = {**text(), "cache_control": {"type": "ephemeral"}}
ADD = {"name": "add", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({**asking(QUESTION), "model": ""}, "model"),
        ({**asking(QUESTION), "max_tokens": 0}, "max_tokens"),
        (asking(QUESTION, temperature=1), "temperature"),
        (asking(QUESTION, tools=[ADD], tool_choice={"type": "required"}), "tool_choice.type"),
        (asking(QUESTION, tool_choice={"type": "auto"}), "while providing tools"),
        (asking(QUESTION, tools=[ADD], tool_choice={"type": "any"}, thinking={"type": "adaptive"}), "forces"),
        (asking(), "at least one message"),
        (asking(QUESTION, system=[text(" ")]), "system"),
        (asking({"role": "system", "content": "x"}), "user or assistant"),
        (asking(assistant(text()), QUESTION), "first message"),
        (asking(QUESTION, assistant(text())), "prefill"),
        (asking(user()), "non-empty"),
        (asking({"role": "user", "content": " "}), "non-empty"),
        (asking(user(text("\n"))), "non-whitespace"),
        (asking(user(made_call())), "cannot stand in a message of the user"),
        (asking(QUESTION, assistant({"type": "document"}), QUESTION), "cannot stand"),
        (asking(user({**text(), "citations": [{}]})), "citations"),
        (asking(QUESTION, assistant({"type": "thinking", "thinking": ""}), QUESTION), "signature"),
        (asking(QUESTION, assistant(made_call(input="{}")), user(result())), "valid dictionary"),
        (asking(QUESTION, assistant(made_call()), QUESTION), "without `tool_result`"),
        (asking(QUESTION, assistant(made_call()), user(result("c2"))), "unexpected"),
        (asking(QUESTION, assistant(made_call()), user(result(), result())), "unexpected"),
        (asking(QUESTION, assistant(made_call()), user(text(), result())), "come first"),
        (asking(QUESTION, assistant(made_call(), made_call()), user(result())), "unique"),
        (asking(QUESTION, assistant(made_call("c:1")), user(result("c:1"))), "match"),
        (asking(QUESTION, tools=[{**ADD, "name": "a b"}]), "does not match"),
        (asking(QUESTION, tools=[ADD, ADD]), "twice"),
        (asking(QUESTION, tools=[{"name": "add", "input_schema": {}}]), "type object"),
        (asking(user(MARKED, MARKED, MARKED), system=[MARKED, MARKED]), "cache_control"),
    ],
)
def test_what_the_vendor_refuses_is_refused_with_a_reason(body, complaint):
    assert complaint in (MESSAGES.check(body) or "")
