from __future__ import annotations

import json

import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import TokenUsage, ToolCall
from robota.core.provider import (
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.testing.dialect import Turn
from robota.testing.wire_chat import ChatCompletions

CHAT = ChatCompletions()
PATH = "/v1/chat/completions"
QUESTION = {"role": "user", "content": "Add."}


def say(*steps, include_usage=False):
    body = {"model": "m", "stream_options": {"include_usage": include_usage}}
    encoder = CHAT.encoder(PATH, body)
    events = [
        *encoder.begin(steps[0]),
        *(event for step in steps for event in encoder.say(step)),
        *encoder.end(),
    ]
    assert {name for name, _ in events} == {""}
    return [json.loads(data) for _, data in events]


def deltas(events):
    return [event["choices"][0]["delta"] for event in events if event["choices"]]


def made_call(id="c1", arguments="{}"):
    return {"id": id, "type": "function", "function": {"name": "add", "arguments": arguments}}


# --- replies -----------------------------------------------------------------------------------------


def test_text_is_said_in_the_vendors_envelope():
    first, hello, last = say('Hel"lo')
    assert hello == {
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "delta": {"content": "Hel\"lo"}, "logprobs": None, "finish_reason": None}],
    }  # fmt: skip
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")


def test_a_call_opens_with_id_and_name_and_sends_its_arguments_in_pieces():
    arguments = '{"a":1,"b":"a longer text"}'
    role, opening, *pieces, _ = deltas(say(ToolCall("c1", "add", arguments)))
    assert role == {"role": "assistant", "content": None}
    assert opening["tool_calls"] == [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}
    ]
    assert len(pieces) > 1
    assert "".join(piece["tool_calls"][0]["function"]["arguments"] for piece in pieces) == arguments
    assert all(piece["tool_calls"][0].keys() == {"index", "function"} for piece in pieces)


def test_fragments_and_calls_count_on():
    events = say(ToolInputChunk(0, "{}", name="add"), ToolCall("c2", "add"))
    assert [delta["tool_calls"][0]["index"] for delta in deltas(events)[1:-1]] == [0, 1, 1]
    assert "id" not in deltas(events)[1]["tool_calls"][0]
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_has_a_chunk_of_its_own_only_if_asked_for():
    assert not [event for event in say("Hi", TokenUsage(7, 3)) if "usage" in event]
    *others, last = say("Hi", TokenUsage(7, 3, 2, 0, 1), include_usage=True)
    assert {event["usage"] for event in others} == {None}
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("stop", "word"),
    [
        (StopChunk("max_tokens"), "length"),
        (StopChunk("content_filter"), "content_filter"),
        (StopChunk("end_turn", "eos"), "eos"),
        (StopChunk("pause"), "pause"),
    ],
)
def test_a_reply_ends_with_the_vendors_word(stop, word):
    assert say("Hi", stop)[-1]["choices"][0]["finish_reason"] == word


def test_a_refusal_is_a_delta_of_its_own():
    *_, refusal, last = say("Hm", StopChunk("refusal", "No."))
    assert refusal["choices"][0]["delta"] == {"refusal": "No."}
    assert last["choices"][0]["finish_reason"] == "stop"


def test_thinking_and_facts_are_said():
    events = say(ReasoningChunk("Hmm"), MetadataChunk({"model": "m-2026"}), TextChunk("Hi"))
    assert deltas(events)[1:3] == [{"reasoning_content": "Hmm"}, {"content": "Hi"}]
    assert [event["model"] for event in events] == ["m", "m", "m-2026", "m-2026"]


def test_what_the_protocol_has_no_words_for_is_refused():
    with pytest.raises(ConfigurationError, match="ServerToolChunk cannot be said in Chat Completions"):
        say(ServerToolChunk("web_search"))


def test_a_client_that_does_not_stream_gets_the_same_reply_whole():
    steps = (ReasoningChunk("Hmm"), "Hel", "lo", ToolCall("c1", "add", '{"a":1}'), TokenUsage(7, 3))
    reply = CHAT.encoder(PATH, {"model": "m"}).whole(steps)
    assert (reply["object"], reply["usage"]["total_tokens"]) == ("chat.completion", 10)
    assert reply["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant", "content": "Hello", "refusal": None, "reasoning_content": "Hmm",
                "tool_calls": [made_call(arguments='{"a":1}')],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        }
    ]  # fmt: skip


# --- requests ----------------------------------------------------------------------------------------


def test_a_request_reads_as_a_conversation():
    body = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Add."}, {"type": "image_url", "image_url": {}}],
            },
            {"role": "assistant", "content": None, "tool_calls": [made_call()]},
            {"role": "tool", "tool_call_id": "c1", "content": "3"},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
    }
    assert CHAT.check(body) is None
    conversation = CHAT.read(body)
    assert conversation.tools == ("add",)
    assert conversation.turns == (
        Turn("system", "Be brief."),
        Turn("user", "Add."),
        Turn("assistant", "", (ToolCall("c1", "add", "{}"),)),
        Turn("tool", "3", answers="c1"),
    )


ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "3"}


def chat(*messages, **fields):
    return {"model": "m", "messages": list(messages), **fields}


def calling(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def offering(kind="function", **function):
    return chat(QUESTION, tools=[{"type": kind, "function": function}])


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"messages": [QUESTION]}, "model parameter"),
        (chat(), "at least one message"),
        (chat({"role": "robot", "content": ""}), "role is 'robot'"),
        (chat({"role": "user", "content": None}), "must be a string or a list"),
        (chat(QUESTION, ANSWER), "answers no call"),
        (chat({"role": "assistant", "content": None}), "neither content nor tool calls"),
        (chat(calling()), "empty list"),
        (chat(calling(made_call())), "no answer: c1"),
        (chat(calling(made_call()), QUESTION), "before the answers to these tool calls: c1"),
        (chat(calling(made_call(), made_call()), ANSWER), "ids of their own"),
        (chat(calling(made_call("")), ANSWER), "ids of their own"),
        (chat(calling(made_call(arguments='{"a')), ANSWER), "JSON object"),
        (chat(calling(made_call(arguments=None)), ANSWER), "JSON object"),
        (chat(QUESTION, tools=[]), "empty list"),
        (offering("web_search", name="add"), "not a function"),
        (offering(name="a b"), "not a function with a name"),
        (offering(name="add", parameters={"type": "string"}), "schema of type object"),
    ],
)
def test_what_the_vendor_refuses_is_refused_with_a_reason(body, complaint):
    assert complaint in (CHAT.check(body) or "")
