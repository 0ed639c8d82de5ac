from __future__ import annotations

import json
import random
from typing import Any

import pytest

from robota.core.encoded import EncodedHistory
from robota.core.errors import ConfigurationError
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.providers.chat.request import ChatDialect, ChatEncoder

ADD = ToolSchema("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ADD_WIRE = {
    "type": "function",
    "function": {"name": "add", "description": "Adds.", "parameters": ADD.parameters},
}
PLAIN = ChatDialect()
SEES = ChatDialect(images=True, files=True)


def encode(dialect: ChatDialect = PLAIN, **fields: Any) -> dict[str, Any]:
    request = ChatRequest(**{"model": "m", "messages": [UserMessage("hi")], **fields})
    body: dict[str, Any] = json.loads(ChatEncoder(dialect).encode(request, "m"))
    return body


def encode_messages(*messages: Message, dialect: ChatDialect = PLAIN) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = encode(dialect, messages=messages)["messages"]
    return wire


def test_a_plain_request_says_no_more_than_needed() -> None:
    assert encode() == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_settings_have_their_names_on_the_wire() -> None:
    settings = ModelSettings(
        temperature=0.0, top_p=0.5, max_tokens=9, effort="low", stop=("X",), tool_choice="required"
    )
    assert encode(settings=settings, tools=(ADD,)) == {
        **encode(),
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 9,
        "reasoning_effort": "low",
        "stop": ["X"],
        "tool_choice": "required",
        "tools": [ADD_WIRE],
    }


def test_some_endpoints_name_the_token_limit_differently() -> None:
    dialect = ChatDialect(max_tokens_field="max_completion_tokens")
    assert encode(dialect, settings=ModelSettings(max_tokens=9))["max_completion_tokens"] == 9


@pytest.mark.parametrize(
    ("choice", "wire"),
    [("auto", "auto"), ("none", "none"), ("add", {"type": "function", "function": {"name": "add"}})],
)
def test_a_tool_choice_is_a_word_or_a_tool(choice: str, wire: object) -> None:
    settings = ModelSettings(tool_choice=choice)
    assert encode(settings=settings, tools=(ADD,))["tool_choice"] == wire
    assert "tool_choice" not in encode(settings=settings)


def test_extra_fields_win_and_none_takes_a_field_away() -> None:
    extra = {"temperature": 1, "stream_options": None, "seed": 7, "tools": [{"type": "web_search"}]}
    assert encode(settings=ModelSettings(temperature=0.5, extra=extra), tools=(ADD,)) == {
        "model": "m",
        "stream": True,
        "temperature": 1,
        "seed": 7,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [ADD_WIRE, {"type": "web_search"}],
    }
    assert encode(settings=ModelSettings(extra={"tools": [{"type": "web_search"}]}))["tools"] == [
        {"type": "web_search"}
    ]


def test_messages_cannot_be_smuggled_in() -> None:
    with pytest.raises(ConfigurationError, match="messages"):
        encode(settings=ModelSettings(extra={"messages": []}))


def test_an_output_schema_is_sent_to_endpoints_that_enforce_it() -> None:
    schema = {"type": "object", "additionalProperties": False}
    assert "response_format" not in encode(output_schema=schema)
    assert encode(ChatDialect(output_schema=True), output_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": schema, "strict": True},
    }
    open_schema = encode(ChatDialect(output_schema=True), output_schema={"type": "object"})
    assert open_schema["response_format"]["json_schema"]["strict"] is False


def test_every_kind_of_message_has_its_wire_form() -> None:
    call = ToolCall("c1", "add", '{"a": 1}')
    assert encode_messages(
        SystemMessage("Be brief."),
        UserMessage("1+1?"),
        AssistantMessage("", (call,)),
        ToolMessage("2", "c1", "add"),
        AssistantMessage("Two."),
    ) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "assistant", "content": "Two."},
    ]


def test_an_empty_answer_keeps_its_place() -> None:
    assert encode_messages(AssistantMessage(""))[0] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("arguments", ['{"a":', "", "[1]", "null", "NaN", "\ud800"])
def test_arguments_that_would_make_a_server_fail_become_an_empty_object(arguments: str) -> None:
    wire = encode_messages(AssistantMessage("", (ToolCall("c1", "add", arguments),)))
    assert wire[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_ids_that_an_endpoint_would_refuse_are_replaced_and_their_results_follow() -> None:
    ids = ("", "x" * 41, "c1", "c1")
    calls = tuple(ToolCall(id, "add", f'{{"a":{n}}}') for n, id in enumerate(ids))
    results = [ToolMessage(str(n), id, "add") for n, id in enumerate(ids)]
    asked, *answers = encode_messages(UserMessage("hi"), AssistantMessage("", calls), *results)[1:]
    sent = [call["id"] for call in asked["tool_calls"]]
    assert sent == ["call_1_0", "call_1_1", "c1", "call_1_3"]
    assert [(answer["tool_call_id"], answer["content"]) for answer in answers] == [
        (id, str(n)) for n, id in enumerate(sent)
    ]


def test_a_result_without_its_call_gets_one_and_a_call_without_its_result_too() -> None:
    asked = AssistantMessage("", (ToolCall("c1", "add"), ToolCall("c2", "add")))
    wire = encode_messages(
        UserMessage("hi"), asked, ToolMessage("2", "c2", "add"), ToolMessage("0", "c0", "ls")
    )
    roles = [(message["role"], message.get("tool_call_id", "")) for message in wire]
    assert roles == [
        ("user", ""), ("assistant", ""), ("tool", "c2"), ("tool", "c1"), ("assistant", ""),
        ("tool", "call_2_1_result"),
    ]  # fmt: skip
    assert (wire[3]["content"], wire[5]["content"]) == ("No result is known for this call.", "0")
    assert wire[4]["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}


def test_text_that_is_no_unicode_is_sent_all_the_same() -> None:
    assert encode_messages(ToolMessage("caf\udce9.txt", "c1", "ls"))[-1]["content"] == "caf?.txt"


def test_past_thinking_is_sent_back_only_where_it_is_wanted() -> None:
    message = AssistantMessage("Yes", reasoning=(ReasoningBlock("Hm."),))
    assert encode_messages(message) == [{"role": "assistant", "content": "Yes"}]
    wire = encode_messages(message, dialect=ChatDialect(reasoning_field="reasoning_content"))
    assert wire == [{"role": "assistant", "content": "Yes", "reasoning_content": "Hm."}]


FOREIGN = (
    ReasoningBlock("Hm.", "sig", {"type": "thinking"}),
    ReasoningBlock("Hm.", "sig"),
    ReasoningBlock("Hm.", data={"type": "reasoning", "id": "rs_1"}),
    ReasoningBlock("Hm.", "sig", {"gemini": "thought"}),
)


def test_thinking_of_other_wires_is_not_sent_back() -> None:
    dialect = ChatDialect(reasoning_field="reasoning_content", reasoning_details=True)
    wire = encode_messages(AssistantMessage("Yes", reasoning=FOREIGN), dialect=dialect)
    assert wire == [{"role": "assistant", "content": "Yes"}]


def test_an_endpoint_that_insists_on_thinking_gets_a_placeholder() -> None:
    dialect = ChatDialect(reasoning_field="reasoning_content", reasoning_placeholder="-")
    ours = ReasoningBlock("Hm.", data={"type": "reasoning_content"})
    wire = encode_messages(
        AssistantMessage("Yes", reasoning=FOREIGN), AssistantMessage("No", reasoning=(ours,)), dialect=dialect
    )
    assert [message["reasoning_content"] for message in wire] == ["-", "Hm."]


def test_details_of_thinking_go_back_where_they_are_wanted() -> None:
    details = [{"type": "reasoning.encrypted", "data": "ab", "index": 0}]
    block = ReasoningBlock("Hm.", data={"type": "reasoning_details", "details": details})
    message = AssistantMessage("Yes", reasoning=(block,))
    assert "reasoning_details" not in encode_messages(message)[0]
    wire = encode_messages(message, dialect=ChatDialect(reasoning_details=True))
    assert wire[0]["reasoning_details"] == details


PARTS = (
    TextPart("Look:"),
    ImagePart("aW1n", "image/png"),
    ImageUriPart("https://x/y.jpg"),
    FilePart("cGRm", "application/pdf", "a.pdf"),
)


def test_images_and_files_are_sent_to_endpoints_that_take_them() -> None:
    assert encode_messages(UserMessage("Look:", PARTS), dialect=SEES)[0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.jpg"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
    ]


def test_other_endpoints_get_a_note_instead() -> None:
    content = encode_messages(UserMessage("Look:", PARTS))[0]["content"]
    assert [part["text"] for part in content] == [
        "Look:",
        "[image (image/png) left out: this endpoint does not take images]",
        "[image (unknown type) left out: this endpoint does not take images]",
        "[file a.pdf (application/pdf) left out: this endpoint does not take files]",
    ]


def test_images_of_tool_results_follow_in_a_user_message() -> None:
    results = (
        ToolMessage("one.png", "c1", "Read", (ImagePart("aW1n"),)),
        ToolMessage("two.txt", "c2", "Read"),
    )
    calls = AssistantMessage("", (ToolCall("c1", "Read"), ToolCall("c2", "Read")))
    wire = encode_messages(calls, *results, dialect=SEES)
    assert [message["role"] for message in wire] == ["assistant", "tool", "tool", "user"]
    assert wire[3]["content"] == [
        {"type": "text", "text": "Images in the result of Read:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
    ]
    blind = encode_messages(calls, *results)
    assert blind[1]["content"].startswith("one.png\n[image/png content left out")
    assert len(blind) == 3


def test_a_body_joined_from_kept_fragments_is_the_body_made_from_scratch() -> None:
    random.seed(7)
    messages: list[Message] = []
    starts: list[int] = []
    history = EncodedHistory(messages, starts)
    encoders = [ChatEncoder(ChatDialect()), ChatEncoder(SEES)]
    for number in range(200):
        tool = ToolMessage(f"result {number}", "c", "add", (ImagePart("aW1n"),))
        message = random.choice(
            [UserMessage(f"ask {number}"), AssistantMessage("", (ToolCall("c", "add"),)), tool]
        )
        if not (isinstance(message, ToolMessage) and messages and isinstance(messages[-1], ToolMessage)):
            starts.append(len(messages))
        messages.append(message)
        encoder = random.choice(encoders)
        kept = encoder.encode(ChatRequest(model="m", messages=messages, history=history), "m")
        assert kept == encoder.encode(ChatRequest(model="m", messages=messages), "m")


def test_a_settled_group_is_encoded_once() -> None:
    messages: list[Message] = [UserMessage(str(number)) for number in range(50)]
    history = EncodedHistory(messages, list(range(50)))
    encoder = ChatEncoder(ChatDialect())
    for _ in range(3):
        encoder.encode(ChatRequest(model="m", messages=messages, history=history), "m")
    assert history.encodings == 50


def test_tool_sets_are_told_apart_by_more_than_their_address() -> None:
    encoder = ChatEncoder(ChatDialect())
    for number in range(100):
        request = ChatRequest(
            model="m", messages=[UserMessage("hi")], tools=(ToolSchema(f"t{number}", "", {"type": "object"}),)
        )
        assert json.loads(encoder.encode(request, "m"))["tools"][0]["function"]["name"] == f"t{number}"


def test_signatures_of_calls_go_back_to_gemini_and_to_nobody_else() -> None:
    call = ToolCall("call-1", "add", "{}", "c2lnbmVk")
    messages = [UserMessage("hi"), AssistantMessage("", (call,)), ToolMessage("3", "call-1", "add")]
    request = ChatRequest(model="", messages=messages)

    def sent(model: str, **options: Any) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(ChatEncoder(PLAIN, **options).encode(request, model))
        wire: dict[str, Any] = body["messages"][1]["tool_calls"][0]
        return wire

    plain = {"id": "call-1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    signed = {**plain, "extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}
    assert sent("google/gemini-3-pro") == signed
    assert sent("gpt-5") == plain
    assert sent("gemini-3-pro", left_out=frozenset({"extra_content"})) == plain
