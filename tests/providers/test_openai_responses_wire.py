from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.support.forms import some_of

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
from robota.core.provider import ChatRequest, ModelSettings, NativeWebTools, ToolSchema
from robota.providers.responses.request import UNANSWERED, ItemDialect, ResponsesEncoder
from robota.testing.wire_responses import Responses

ADD = ToolSchema("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
QUESTION = {"role": "user", "content": "hi"}
SEES = ItemDialect()
ENCRYPTED = ["reasoning.encrypted_content"]


def encode(encoder: ResponsesEncoder | None = None, model: str = "m", **fields: Any) -> dict[str, Any]:
    """The body, which the vendor would accept."""
    request = ChatRequest(**{"model": "", "messages": [UserMessage("hi")], **fields})
    body: dict[str, Any] = json.loads((encoder or ResponsesEncoder(SEES)).encode(request, model))
    assert Responses().check(body) is None
    return body


def items(*messages: Message, dialect: ItemDialect = SEES) -> list[dict[str, Any]]:
    wire: list[dict[str, Any]] = encode(ResponsesEncoder(dialect), messages=messages)["input"]
    return wire


def an_answer(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def a_call(call_id: str, name: str = "add", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def an_output(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


# --- the fields besides the items ------------------------------------------------------------------------


def test_a_plain_request_stores_nothing_and_asks_for_reasoning_to_keep() -> None:
    assert encode() == {
        "model": "m", "stream": True, "store": False, "include": ENCRYPTED, "input": [QUESTION],
    }  # fmt: skip


def test_settings_have_their_names_on_the_wire() -> None:
    settings = ModelSettings(temperature=0.0, top_p=0.5, max_tokens=9, effort="low", tool_choice="required")
    body = encode(settings=settings, tools=(ADD,))
    assert {name: body[name] for name in ("temperature", "top_p", "max_output_tokens", "tool_choice")} == {
        "temperature": 0.0, "top_p": 0.5, "max_output_tokens": 9, "tool_choice": "required",
    }  # fmt: skip
    assert body["reasoning"] == {"effort": "low"}
    assert "tool_choice" not in encode(settings=settings)
    one = encode(settings=ModelSettings(tool_choice="add"), tools=(ADD,))
    assert one["tool_choice"] == {"type": "function", "name": "add"}


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("o3", "xhigh", "high"),
        ("gpt-5", "max", "high"),
        ("gpt-5-mini", "max", "high"),
        ("gpt-5.1", "max", "high"),
        ("gpt-5", "minimal", "minimal"),
        ("gpt-5.1-codex-max", "xhigh", "xhigh"),
        ("gpt-5.6", "max", "max"),
    ],
)
def test_an_effort_that_the_model_does_not_know_is_sent_as_its_highest(
    model: str, effort: str, sent: str
) -> None:
    assert encode(model=model, settings=ModelSettings(effort=effort))["reasoning"] == {"effort": sent}


def test_extra_fields_win_and_are_merged_into_objects() -> None:
    extra = {"reasoning": {"effort": "xhigh"}, "store": True, "include": None, "service_tier": "flex"}
    encoder = ResponsesEncoder(SEES, reasoning_summary="auto")
    body = encode(encoder, settings=ModelSettings(effort="low", extra=extra))
    assert body["reasoning"] == {"effort": "xhigh", "summary": "auto"}
    assert (body["store"], body["service_tier"]) == (True, "flex")
    assert "include" not in body


def test_a_service_that_overlooks_instructions_gets_the_system_prompt_as_an_item() -> None:
    messages = SystemMessage("Be brief."), UserMessage("hi"), SystemMessage("Hurry."), UserMessage("go")
    body = encode(ResponsesEncoder(ItemDialect(instructions=False)), messages=messages)
    assert "instructions" not in body
    assert [item["role"] for item in body["input"]] == ["system", "user", "system", "user"]


def test_a_hosted_tool_that_reads_pages_goes_by_the_name_the_service_has_for_it() -> None:
    both = NativeWebTools(web_search=True, web_fetch=True)
    encoder = ResponsesEncoder(SEES, web_fetch_tool="web_extractor")
    tools = encode(encoder, native_web_tools=both)["tools"]
    assert [tool["type"] for tool in tools] == ["web_search", "web_extractor"]


@pytest.mark.parametrize(
    "settings",
    [ModelSettings(stop=("X",)), ModelSettings(extra={"input": []}), ModelSettings(extra={"messages": []})],
)
def test_settings_that_the_api_does_not_have_are_refused(settings: ModelSettings) -> None:
    with pytest.raises(ConfigurationError):
        encode(settings=settings)


@pytest.mark.parametrize(
    ("model", "include"),
    [
        ("gpt-5.2", ENCRYPTED),
        ("o3", ENCRYPTED),
        ("gpt-4.1", None),
        ("openai/gpt-4o", None),
        ("ft:gpt-4o:me", None),
    ],
)
def test_models_that_do_not_reason_are_not_asked_for_reasoning(model: str, include: Any) -> None:
    assert encode(model=model).get("include") == include


def test_an_output_schema_is_strict_if_it_is_closed() -> None:
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for schema, strict in ((closed, True), ({"type": "object"}, False)):
        assert encode(output_schema=schema)["text"] == {
            "format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": strict}
        }


# --- tools -----------------------------------------------------------------------------------------------


def test_tools_keep_their_schemas_unless_strict_ones_are_wanted() -> None:
    wire = {"type": "function", "name": "add", "description": "Adds."}
    assert encode(tools=(ADD,))["tools"] == [{**wire, "parameters": ADD.parameters, "strict": False}]
    closed = {
        "type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "required": ["a"],
        "additionalProperties": False,
    }  # fmt: skip
    strict = ResponsesEncoder(SEES, strict_tools=True)
    assert encode(strict, tools=(ADD,))["tools"] == [{**wire, "parameters": closed, "strict": True}]
    open_map = ToolSchema("put", "", {"type": "object", "additionalProperties": True})
    sent = encode(strict, tools=(open_map,))["tools"][0]
    assert (sent["parameters"], sent["strict"]) == (open_map.parameters, False)


def test_hosted_tools_come_after_ours() -> None:
    extra = {"tools": [{"type": "code_interpreter"}]}
    body = encode(
        tools=(ADD,),
        settings=ModelSettings(extra=extra),
        native_web_tools=NativeWebTools(web_search=True),
    )
    assert [tool["type"] for tool in body["tools"]] == ["function", "code_interpreter", "web_search"]


@pytest.mark.parametrize("strict", [False, True])
def test_a_tool_is_encoded_once_as_long_as_its_schema_lives(strict: bool) -> None:
    properties = {"a": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties}
    tool = ToolSchema("add", "", parameters)
    first = encode(ResponsesEncoder(SEES, strict_tools=strict), tools=(tool,))
    properties["b"] = {"type": "integer"}
    assert (
        encode(ResponsesEncoder(SEES, strict_tools=strict), tools=(ADD, tool))["tools"][1:] == first["tools"]
    )
    assert (
        encode(ResponsesEncoder(SEES, strict_tools=strict), tools=(ToolSchema("add", "", parameters),))
        != first
    )


# --- messages --------------------------------------------------------------------------------------------


def test_a_tool_round_becomes_items() -> None:
    body = encode(
        messages=[
            SystemMessage("Be brief."),
            SystemMessage("Be kind."),
            UserMessage("1+2?"),
            AssistantMessage("Let me.", (ToolCall("c1", "add", '{"a":1}'),)),
            ToolMessage("3", "c1", "add"),
            SystemMessage("Hurry."),
            AssistantMessage("Three."),
        ]
    )
    assert body["instructions"] == "Be brief.\n\nBe kind."
    assert body["input"] == [
        {"role": "user", "content": "1+2?"},
        an_answer("Let me."),
        a_call("c1", arguments='{"a":1}'),
        an_output("c1", "3"),
        {"role": "developer", "content": "Hurry."},
        an_answer("Three."),
    ]


def test_a_message_keeps_the_phase_that_its_model_gave_it() -> None:
    sent = items(
        *(AssistantMessage("a", metadata={"phase": phase}) for phase in ("commentary", "moon", None))
    )
    assert [item.get("phase") for item in sent] == ["commentary", None, None]


def test_unusual_histories_are_sent_as_they_are_without_empty_answers() -> None:
    sent = items(AssistantMessage("Summary."), UserMessage("a"), UserMessage("b"), AssistantMessage(""))
    assert [(item["role"], item["content"]) for item in sent] == [
        ("assistant", "Summary."), ("user", "a"), ("user", "b"),
    ]  # fmt: skip


def test_a_result_whose_call_is_gone_gets_a_call_to_answer() -> None:
    assert items(ToolMessage("3", "c1", "add"), ToolMessage("4", "c1", ""), UserMessage("Go on.")) == [
        a_call("call_0_0_result"),
        an_output("call_0_0_result", "3"),
        a_call("call_0_1_result", "tool"),
        an_output("call_0_1_result", "4"),
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize("after", [(), (UserMessage("Go on."),), (AssistantMessage("Well."),)])
def test_a_call_without_a_result_gets_an_output(after: tuple[Message, ...]) -> None:
    asked = AssistantMessage("", (ToolCall("c1", "add"), ToolCall("c2", "add")))
    assert items(asked, *after)[:4] == [
        a_call("c1"), a_call("c2"), an_output("c1", UNANSWERED), an_output("c2", UNANSWERED),
    ]  # fmt: skip
    assert items(asked, ToolMessage("3", "c2", "add"), *after)[2:4] == [
        an_output("c2", "3"), an_output("c1", UNANSWERED),
    ]  # fmt: skip


def test_ids_are_made_unique_and_short_on_the_wire_only() -> None:
    long = "toolu_" + "x" * 70
    random_id = "call_abcdefghijklmnopqrst"
    given = ("call_0", "x", "x", "", long, random_id)
    sent = items(
        AssistantMessage("", (ToolCall("call_0", "add"),)),
        ToolMessage("a", "call_0", "add"),
        AssistantMessage("", tuple(ToolCall(id, "add") for id in given)),
        *(ToolMessage(text, id, "add") for text, id in zip("bcdefg", given, strict=True)),
    )
    ids = ["call_2_0", "x", "call_2_2", "call_2_3", "call_2_4", random_id]
    assert [item["call_id"] for item in sent if "name" in item] == ["call_0", *ids]
    assert [(item["call_id"], item["output"]) for item in sent if "output" in item] == [
        ("call_0", "a"), *zip(ids, "bcdefg", strict=True),
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", ""])
def test_arguments_that_are_no_object_become_an_empty_one(arguments: str) -> None:
    sent = items(AssistantMessage("", (ToolCall("c1", "add", arguments),)), ToolMessage("no", "c1", "add"))
    assert sent[0]["arguments"] == "{}"


def thought(id: str, **fields: Any) -> ReasoningBlock:
    return ReasoningBlock(
        "Hm.", data={"type": "reasoning", "id": id, "summary": [], "encrypted_content": "e", **fields}
    )


def test_reasoning_goes_back_to_where_it_was() -> None:
    calls = (ToolCall("c1", "add"), ToolCall("c2", "add"))
    blocks = (thought("rs_1"), thought("rs_2", before="c2"), thought("rs_3", before="gone"))
    sent = items(
        AssistantMessage("Let me.", calls, reasoning=blocks),
        ToolMessage("1", "c1", "add"),
        ToolMessage("2", "c2", "add"),
    )
    assert [item.get("id") or item.get("call_id") or item["role"] for item in sent] == [
        "rs_1", "rs_3", "assistant", "c1", "rs_2", "c2", "c1", "c2",
    ]  # fmt: skip
    assert sent[4] == {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "e"}


@pytest.mark.parametrize(
    "block",
    [
        ReasoningBlock("Hm."),
        ReasoningBlock("Hm.", signature="of another provider"),
        ReasoningBlock(data={"type": "redacted_thinking"}),
        thought("rs_1", encrypted_content=None),
    ],
)
def test_thinking_that_this_api_cannot_read_stays_here(block: ReasoningBlock) -> None:
    assert items(AssistantMessage("Yes.", reasoning=(block,))) == [an_answer("Yes.")]


def test_reasoning_that_led_to_nothing_stays_here() -> None:
    assert items(UserMessage("hi"), AssistantMessage("", reasoning=(thought("rs_1"),))) == [QUESTION]


PARTS = (
    TextPart("Look:"),
    ImagePart("aW1n", "image/jpeg"),
    ImageUriPart("https://host/x.png"),
    FilePart("ZG9j", "application/pdf", "doc.pdf"),
)
MEDIA = [
    {"type": "input_image", "image_url": "data:image/jpeg;base64,aW1n", "detail": "auto"},
    {"type": "input_image", "image_url": "https://host/x.png", "detail": "auto"},
    {"type": "input_file", "filename": "doc.pdf", "file_data": "data:application/pdf;base64,ZG9j"},
]


def test_images_and_files_are_parts_of_messages_and_of_results() -> None:
    look = {"type": "input_text", "text": "Look:"}
    asked = AssistantMessage("", (ToolCall("c1", "add"),))
    sent = items(UserMessage("Look:", PARTS), asked, ToolMessage("Look:", "c1", "add", PARTS))
    assert sent[0]["content"] == sent[2]["output"] == [look, *MEDIA]
    assert items(asked, ToolMessage("", "c1", "add", PARTS))[1]["output"] == MEDIA
    assert items(asked, ToolMessage("x", "c1", "add", PARTS[:1]))[1]["output"] == "x"


def test_a_model_that_takes_no_media_gets_notes() -> None:
    sent = items(UserMessage("Look:", PARTS), dialect=ItemDialect(images=False, files=False))
    assert [part["text"] for part in sent[0]["content"]] == [
        "Look:",
        "[image (image/jpeg) left out: this endpoint does not take images]",
        "[image (unknown type) left out: this endpoint does not take images]",
        "[file doc.pdf (application/pdf) left out: this endpoint does not take files]",
    ]


# --- fragments -------------------------------------------------------------------------------------------


def random_group(rng: random.Random) -> list[Message]:
    ids = [
        rng.choice(["c1", "c2", "c3", "", "call_" + "x" * rng.choice([11, 70])])
        for _ in range(rng.randint(1, 3))
    ]
    return rng.choice(
        [
            [UserMessage("u")],
            [SystemMessage("s")],
            [AssistantMessage(rng.choice(["", "a"]), reasoning=(thought("rs_1"),))],
            [AssistantMessage("", tuple(ToolCall(id, "add") for id in ids))],
            [ToolMessage("t", id, "add") for id in ids],
        ]
    )


@pytest.mark.parametrize("seed", some_of(range(200), 5))
def test_any_history_is_acceptable_and_the_same_from_fragments(seed: int) -> None:
    rng = random.Random(seed)
    messages: list[Message] = [UserMessage("first")]
    starts = [0]
    history = EncodedHistory(messages, starts)
    encoder = ResponsesEncoder(SEES)
    for _ in range(12):
        group = random_group(rng)
        joins = isinstance(group[0], ToolMessage) and isinstance(messages[-1], ToolMessage)
        if not joins:
            starts.append(len(messages))
        messages += group
        if rng.random() < 0.7:
            assert encode(encoder, messages=messages, history=history) == encode(encoder, messages=messages)


def test_a_round_encodes_only_what_is_new() -> None:
    messages: list[Message] = [UserMessage("first")]
    history = EncodedHistory(messages, starts := [0])
    encoder = ResponsesEncoder(SEES)
    for n in range(50):
        encode(encoder, messages=messages, history=history)
        starts += [len(messages), len(messages) + 1]
        messages += [AssistantMessage("", (ToolCall(f"c{n}", "add"),)), ToolMessage("t", f"c{n}", "add")]
    encode(encoder, messages=messages, history=history)
    assert history.encodings == len(starts) == 101
