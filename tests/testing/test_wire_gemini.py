from __future__ import annotations

import json

import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import (
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.testing.dialect import Turn
from robota.testing.wire_gemini import GenerateContent

GEMINI = GenerateContent()
PATH = "/v1beta/models/gemini-m:streamGenerateContent"


def say(*steps):
    encoder = GEMINI.encoder(PATH, {})
    events = [
        *encoder.begin(steps[0] if steps else None),
        *(event for step in steps for event in encoder.say(step)),
        *encoder.end(),
    ]
    return [json.loads(data) for _, data in events]


def parts(events):
    return [part for event in events for part in event["candidates"][0]["content"]["parts"]]


def user(*said):
    return {"role": "user", "parts": [{"text": text} for text in said]}


def model(*made):
    return {"role": "model", "parts": list(made)}


def call(name="add", id="c1"):
    return {"functionCall": {"name": name, "id": id, "args": {"a": 1}}}


def answer(name="add", id="c1", **response):
    return {"functionResponse": {"name": name, "id": id, "response": response or {"output": "2"}}}


# --- replies ----------------------------------------------------------------------------------------------


def test_a_reply_is_said_in_the_vendors_envelope():
    first, last = say('Hel"lo', TokenUsage(9, 5, 4, 0, 2))
    assert first == {
        "candidates": [{"content": {"parts": [{"text": 'Hel"lo'}], "role": "model"}, "index": 0}],
        "modelVersion": "gemini-m",
        "responseId": "gemini-scripted",
    }
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 3,
        "totalTokenCount": 14,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 2,
    }


def test_thinking_calls_and_signatures_are_parts():
    said = parts(
        say(
            ReasoningChunk("Hm"),
            ReasoningBlock("m", "T"),
            TextChunk("x"),
            ToolCall("c1", "add", '{"a":1}', "C"),
        )
    )
    assert said == [
        {"text": "Hm", "thought": True},
        {"text": "m", "thought": True, "thoughtSignature": "T"},
        {"text": "x"},
        {**call(), "thoughtSignature": "C"},
        {"text": ""},
    ]


def test_fragments_are_one_call_when_they_are_whole_and_none_before():
    pieces = ToolInputChunk(0, '{"a"', "c1", "add"), ToolInputChunk(0, ":1}")
    assert parts(say(*pieces))[0] == call()
    assert parts(say(pieces[0], StopChunk("max_tokens"))) == [{"text": ""}]


@pytest.mark.parametrize(
    ("stop", "word"),
    [(StopChunk("max_tokens"), "MAX_TOKENS"), (StopChunk("content_filter"), "SAFETY"),
     (StopChunk("other", "LANGUAGE"), "LANGUAGE"), (StopChunk("other"), "OTHER")],
)  # fmt: skip
def test_the_reason_to_stop_is_the_vendors_word(stop, word):
    assert say(stop)[-1]["candidates"][0]["finishReason"] == word


def test_a_refusal_is_a_blocked_prompt():
    (said,) = say(StopChunk("refusal"))
    assert said["promptFeedback"] == {"blockReason": "PROHIBITED_CONTENT"}
    assert "candidates" not in said


def test_facts_go_where_the_vendor_has_them():
    (said,) = say(MetadataChunk({"modelVersion": "other", "groundingMetadata": {"webSearchQueries": ["x"]}}))
    assert said["modelVersion"] == "other"
    assert said["candidates"][0]["groundingMetadata"] == {"webSearchQueries": ["x"]}


def test_a_whole_reply_is_one_document():
    whole = GEMINI.encoder(PATH, {}).whole(["Hel", "lo", ToolCall("c1", "add", '{"a":1}')])
    assert whole["candidates"][0]["content"]["parts"] == [{"text": "Hel"}, {"text": "lo"}, call()]
    assert whole["candidates"][0]["finishReason"] == "STOP"
    assert "promptFeedback" in GEMINI.encoder(PATH, {}).whole([StopChunk("refusal")])


def test_what_the_protocol_cannot_say_is_refused():
    with pytest.raises(ConfigurationError, match="ServerToolChunk cannot be said in Gemini"):
        say(ServerToolChunk("web_search"))


# --- requests ---------------------------------------------------------------------------------------------


def test_it_serves_both_methods_of_every_model():
    streaming = "/v1/models/gemini-m:streamGenerateContent"
    assert GEMINI.serves(streaming)
    assert GEMINI.wants_stream(streaming, {})
    assert GEMINI.serves("/x/v1beta/tunedModels/m:generateContent")
    assert not GEMINI.wants_stream("/v1beta/models/m:generateContent", {})
    assert not GEMINI.serves("/v1beta/models/m:countTokens")
    assert not GEMINI.serves("/v1/chat/completions")


def test_a_request_reads_as_a_conversation():
    sent = GEMINI.read(
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                user("Add."),
                model({"text": "Hm", "thought": True}, {"text": "Yes."}, call()),
                {"role": "user", "parts": [answer(), {"text": "Go on."}]},
            ],
            "tools": [{"functionDeclarations": [{"name": "add"}]}, {"googleSearch": {}}],
        }
    )
    assert sent.tools == ("add",)
    assert sent.turns == (
        Turn("system", "Be brief."),
        Turn("user", "Add."),
        Turn("assistant", "Yes.", (ToolCall("c1", "add", '{"a":1}'),)),
        Turn("tool", "2", answers="c1"),
        Turn("user", "Go on."),
    )


@pytest.mark.parametrize(
    "contents",
    [
        [user("a")],
        [user("a"), user("b")],
        [model({"text": "a"}), user("b")],
        [
            user("a"),
            model(call(), call("sub", "c2")),
            {"role": "user", "parts": [answer(), answer("sub", "c2")]},
        ],
    ],
)
def test_what_the_vendor_takes_is_taken(contents):
    assert GEMINI.check({"contents": contents}) is None


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        ([], "contents is not specified"),
        ([{"role": "assistant", "parts": [{"text": "x"}]}], "valid role"),
        ([{"role": "user", "parts": []}], "must not be empty"),
        ([user("")], "no empty text"),
        ([{"role": "user", "parts": [{"thought": True}]}], "exactly one content"),
        ([user("a"), model({"text": "b"})], "must end with a user turn"),
        ([model(call()), {"role": "user", "parts": [answer()]}], "immediately after a user turn"),
        ([user("a"), model(call()), user("b")], "number of function response parts"),
        ([user("a"), {"role": "user", "parts": [answer()]}], "number of function response parts"),
        ([user("a"), model(call()), {"role": "user", "parts": [answer("sub")]}], "does not belong"),
        ([user("a"), model({"functionCall": {"name": "add", "args": "x"}})], "must be an object"),
        (
            [
                user("a"),
                model(call()),
                {"role": "user", "parts": [{"functionResponse": {"name": "add", "id": "c1"}}]},
            ],
            "must be an object",
        ),
    ],
)
def test_what_the_vendor_refuses_is_refused(contents, problem):
    assert problem in GEMINI.check({"contents": contents})


def test_tools_are_checked():
    tools = [{"functionDeclarations": [{"name": "1add"}]}]
    assert "not a valid function name" in GEMINI.check({"contents": [user("a")], "tools": tools})
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}}
    assert "not declared" in GEMINI.check({"contents": [user("a")], "toolConfig": config})


def test_errors_are_google_rpc_statuses():
    assert GEMINI.error_body(429, "Slow down.") == {
        "error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}
    }
    assert GEMINI.error_body(529, "x")["error"]["status"] == "INTERNAL"
    assert json.loads(GEMINI.error_event("Broken.", "server_error")[1])["error"]["message"] == "Broken."
