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
from robota.providers.encoding import split_groups
from robota.providers.gemini.request import BEGINNING_LOST, GO_ON, MARK, GeminiEncoder
from robota.testing.wire_gemini import GenerateContent

ADD = ToolSchema("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = ToolCall("c1", "add", '{"a": 1}')
OTHER = ToolCall("c2", "sub", '{"a": 2}')
HI = UserMessage("hi")


def body_of(*messages: Message, model: str = "gemini-3-flash-preview", **fields: Any) -> dict[str, Any]:
    request = ChatRequest(model=model, messages=messages or (HI,), **fields)
    body: dict[str, Any] = json.loads(GeminiEncoder().encode(request, model))
    assert GenerateContent().check(body) is None
    return body


def contents_of(*messages: Message, model: str = "gemini-2.5-flash") -> list[tuple[str, list[Any]]]:
    return [(turn["role"], turn["parts"]) for turn in body_of(*messages, model=model)["contents"]]


def response(call: ToolCall, **outcome: str) -> dict[str, Any]:
    return {"functionResponse": {"id": call.id, "name": call.name, "response": outcome}}


def config_of(model: str = "gemini-3-pro", **settings: Any) -> dict[str, Any]:
    config: dict[str, Any] = body_of(model=model, settings=ModelSettings(**settings))["generationConfig"]
    return config


# --- conversations ----------------------------------------------------------------------------------------


def test_a_tool_round_is_three_turns_and_the_instructions_stand_apart() -> None:
    body = body_of(
        SystemMessage("Be brief."),
        HI,
        AssistantMessage("Let me see.", (CALL,)),
        ToolMessage("2", "c1", "add"),
        model="gemini-2.5-flash",
        tools=(ADD,),
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}], "role": "user"},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see."},
                    {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}},
                ],
            },
            {"role": "user", "parts": [response(CALL, output="2")]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "add", "description": "Adds.", "parametersJsonSchema": ADD.parameters}
                ]
            }
        ],
    }


def test_results_follow_the_order_of_their_calls() -> None:
    results = (ToolMessage("two", "c2", "sub"), ToolMessage("one", "c1", "add"))
    turns = contents_of(HI, AssistantMessage("", (CALL, OTHER)), *results)
    assert turns[-1] == ("user", [response(CALL, output="one"), response(OTHER, output="two")])


def test_results_whose_ids_are_lost_are_matched_by_name_and_order() -> None:
    results = (ToolMessage("two", "x", "sub"), ToolMessage("one", "y", "add"))
    turns = contents_of(HI, AssistantMessage("", (CALL, OTHER)), *results)
    assert turns[-1] == ("user", [response(CALL, output="one"), response(OTHER, output="two")])


def test_calls_that_share_an_id_are_sent_without_ids() -> None:
    calls = (ToolCall("x", "add"), ToolCall("x", "add"))
    results = (ToolMessage("one", "x", "add"), ToolMessage("two", "x", "add"))
    _, (_, called), (_, answered) = contents_of(HI, AssistantMessage("", calls), *results)
    assert [part["functionCall"] for part in called] == [{"name": "add", "args": {}}] * 2
    assert [part["functionResponse"]["response"] for part in answered] == [
        {"output": "one"},
        {"output": "two"},
    ]


def test_a_failed_result_is_an_error() -> None:
    failed = ToolMessage("No such file.", "c1", "add", metadata={"success": False})
    turns = contents_of(HI, AssistantMessage("", (CALL,)), failed)
    assert turns[-1] == ("user", [response(CALL, error="No such file.")])


@pytest.mark.parametrize("after", [(), (UserMessage("Well?"),), (AssistantMessage("Never mind."),)])
def test_a_call_without_a_result_gets_one(after: tuple[Message, ...]) -> None:
    turns = contents_of(HI, AssistantMessage("", (CALL, OTHER)), *after)
    assert [list(part["functionResponse"]["response"]) for part in turns[2][1]] == [["error"], ["error"]]
    turns = contents_of(HI, AssistantMessage("", (CALL, OTHER)), ToolMessage("2", "c2", "sub"), *after)
    assert [list(part["functionResponse"]["response"]) for part in turns[2][1]] == [["error"], ["output"]]


def test_a_result_whose_call_was_compacted_away_becomes_text() -> None:
    turns = contents_of(SystemMessage("Be brief."), ToolMessage("2", "c1", "add"), UserMessage("Go on."))
    assert turns == [
        ("user", [{"text": "[Result of an earlier call of add] 2"}]),
        ("user", [{"text": "Go on."}]),
    ]


def test_a_history_that_begins_or_ends_with_the_model_gets_what_the_api_wants_there() -> None:
    assert contents_of(AssistantMessage("Summary.")) == [
        ("user", [{"text": BEGINNING_LOST}]),
        ("model", [{"text": "Summary."}]),
        ("user", [{"text": GO_ON}]),
    ]
    assert contents_of(SystemMessage("Be brief.")) == [("user", [{"text": GO_ON}])]


def test_messages_of_one_side_in_a_row_are_one_turn_and_empty_ones_none() -> None:
    turns = contents_of(
        UserMessage("a"),
        AssistantMessage(""),
        UserMessage(""),
        UserMessage("b"),
        AssistantMessage("c"),
        AssistantMessage("", (CALL,)),
        ToolMessage("2", "c1", "add"),
    )
    assert turns[:2] == [
        ("user", [{"text": "a"}, {"text": "b"}]),
        ("model", [{"text": "c"}, {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}]),
    ]


def test_a_system_message_in_mid_conversation_stays_in_its_place() -> None:
    body = body_of(SystemMessage("A"), SystemMessage("B"), HI, AssistantMessage("Yes?"), SystemMessage("C"))
    assert body["systemInstruction"]["parts"] == [{"text": "A"}, {"text": "B"}]
    assert body["contents"][-1] == {"role": "user", "parts": [{"text": "[System message] C"}]}


def test_arguments_that_are_no_object_are_sent_as_an_empty_one() -> None:
    for arguments in ('{"a": 1, "b', "[1]", ""):
        turns = contents_of(HI, AssistantMessage("", (ToolCall("c1", "add", arguments),)))
        assert turns[1][1][0]["functionCall"]["args"] == {}


# --- thinking ---------------------------------------------------------------------------------------------


def test_thinking_and_signatures_go_back_where_they_came_from() -> None:
    ran = {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}, "thoughtSignature": "S"}
    message = AssistantMessage(
        "Answer.",
        (ToolCall("c1", "add", "{}", "C"), OTHER),
        reasoning=(
            ReasoningBlock("Hm.", "T", {MARK: "thought"}),
            ReasoningBlock(data={MARK: ran}),
            ReasoningBlock("", "X", {MARK: "text"}),
        ),
    )
    _, (_, parts), _ = contents_of(HI, message, model="gemini-3-flash")
    assert parts == [
        {"text": "Hm.", "thought": True, "thoughtSignature": "T"},
        ran,
        {"text": "Answer.", "thoughtSignature": "X"},
        {"functionCall": {"id": "c1", "name": "add", "args": {}}, "thoughtSignature": "C"},
        {"functionCall": {"id": "c2", "name": "sub", "args": {"a": 2}}},
    ]


def test_the_thinking_of_other_vendors_stays_at_home() -> None:
    foreign = (ReasoningBlock("Hm.", "sig"), ReasoningBlock(data={"type": "redacted_thinking"}))
    assert contents_of(HI, AssistantMessage("Yes.", reasoning=foreign))[1] == ("model", [{"text": "Yes."}])


@pytest.mark.parametrize(
    ("model", "signed"),
    [("gemini-3-flash-preview", True), ("gemini-4-argon", True), ("gemini-flash-latest", True),
     ("gemini-2.5-pro", False), ("gemma-3-27b-it", False)],
)  # fmt: skip
def test_calls_of_another_model_are_signed_as_such_where_signatures_are_checked(
    model: str, signed: bool
) -> None:
    _, (_, parts), _ = contents_of(HI, AssistantMessage("", (CALL, OTHER)), model=model)
    assert [part.get("thoughtSignature") for part in parts] == [
        "skip_thought_signature_validator" if signed else None,
        None,
    ]


# --- images and files -------------------------------------------------------------------------------------


def test_images_and_files_are_sent_inline_or_by_address() -> None:
    prompt = UserMessage(
        "What is it?",
        (
            TextPart("What is it?"),
            ImagePart("aW1n", "image/jpeg"),
            ImageUriPart("data:image/png;base64,cG5n"),
            ImageUriPart("https://example.org/a.webp", "image/webp"),
            FilePart("cGRm", "application/pdf", "a.pdf"),
        ),
    )
    assert contents_of(prompt)[0][1] == [
        {"text": "What is it?"},
        {"inlineData": {"mimeType": "image/jpeg", "data": "aW1n"}},
        {"inlineData": {"mimeType": "image/png", "data": "cG5n"}},
        {"fileData": {"mimeType": "image/webp", "fileUri": "https://example.org/a.webp"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}},
    ]


def test_images_in_a_result_stand_beside_it() -> None:
    result = ToolMessage("Seen.", "c1", "add", (TextPart("Seen."), ImagePart("aW1n")))
    assert contents_of(HI, AssistantMessage("", (CALL,)), result)[-1][1] == [
        response(CALL, output="Seen."),
        {"text": "Content of the result of add:"},
        {"inlineData": {"mimeType": "image/png", "data": "aW1n"}},
    ]


def test_what_the_model_does_not_take_is_noted() -> None:
    request = ChatRequest(
        model="m", messages=(UserMessage("", (ImagePart("x"), FilePart("x", "audio/wav"))),)
    )
    body = json.loads(GeminiEncoder(images=False, files=False).encode(request, "m"))
    notes = [part["text"] for part in body["contents"][0]["parts"]]
    assert notes == [
        "[image (image/png) left out: this endpoint does not take images]",
        "[file without a name (audio/wav) left out: this endpoint does not take files]",
    ]


# --- settings ---------------------------------------------------------------------------------------------


def test_settings_are_the_generation_config() -> None:
    assert config_of(temperature=0.5, top_p=0.9, max_tokens=100, stop=("END",)) == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
    }
    assert "generationConfig" not in body_of()


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-3-pro", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3-pro", "none", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-flash-latest", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
        ("gemini-2.5-flash", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-flash", "max", {"includeThoughts": True, "thinkingBudget": -1}),
    ],
)
def test_effort_is_a_level_or_a_budget_of_thinking(model: str, effort: str, thinking: dict[str, Any]) -> None:
    assert config_of(model, effort=effort) == {"thinkingConfig": thinking}


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("add", {"mode": "ANY", "allowedFunctionNames": ["add"]}),
    ],
)
def test_the_choice_of_tools(choice: str, config: dict[str, Any]) -> None:
    settings = ModelSettings(tool_choice=choice)
    assert body_of(tools=(ADD,), settings=settings)["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in body_of(settings=settings)


def test_an_output_schema_is_enforced_where_the_model_can() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    wanted = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    assert body_of(output_schema=schema, tools=(ADD,))["generationConfig"] == wanted
    assert body_of(output_schema=schema, model="gemini-2.5-pro")["generationConfig"] == wanted
    assert "generationConfig" not in body_of(output_schema=schema, model="gemini-2.5-pro", tools=(ADD,))


def test_hosted_web_tools_stand_beside_functions_where_the_model_can() -> None:
    web = NativeWebTools(web_search=True, web_fetch=True)
    hosted = [{"googleSearch": {}}, {"urlContext": {}}]
    assert body_of(native_web_tools=web, model="gemini-2.5-pro")["tools"] == hosted
    body = body_of(native_web_tools=web, tools=(ADD,))
    assert body["tools"][:2] == hosted
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}
    with pytest.raises(ConfigurationError, match="cannot have hosted web tools beside other tools"):
        body_of(native_web_tools=web, tools=(ADD,), model="gemini-2.5-pro")


def test_extra_fields_are_passed_on_and_win() -> None:
    extra = {
        "safetySettings": [],
        "generationConfig": {"topK": 3, "temperature": 1},
        "tools": [{"codeExecution": {}}],
    }
    body = body_of(tools=(ADD,), settings=ModelSettings(temperature=0, top_p=0.5, extra=extra))
    assert body["safetySettings"] == []
    assert body["generationConfig"] == {"temperature": 1, "topP": 0.5, "topK": 3}
    assert [list(tool) for tool in body["tools"]] == [["codeExecution"], ["functionDeclarations"]]
    with pytest.raises(ConfigurationError, match="cannot hold 'contents'"):
        body_of(settings=ModelSettings(extra={"contents": []}))


# --- fragments --------------------------------------------------------------------------------------------


def random_message(chance: random.Random) -> Message:
    calls = tuple(ToolCall(f"c{n}", chance.choice(["add", "sub"])) for n in range(chance.randrange(3)))
    text = chance.choice(["", "text", "ż"])
    return chance.choice(
        [
            SystemMessage(text),
            UserMessage(text),
            AssistantMessage(text, calls),
            AssistantMessage(text, reasoning=(ReasoningBlock("Hm.", None, {MARK: "thought"}),)),
            ToolMessage(text, chance.choice(["c0", "c1", "old"]), "add"),
            ToolMessage(text, "c1", "sub", (ImagePart("x"),)),
        ]
    )


@pytest.mark.parametrize("seed", some_of(range(150), 5))
def test_any_history_is_accepted_and_the_same_with_and_without_kept_fragments(seed: int) -> None:
    chance = random.Random(seed)
    messages: list[Message] = []
    starts: list[int] = []
    history = EncodedHistory(messages, starts)
    for _ in range(12):
        message = random_message(chance)
        if not (messages and isinstance(message, ToolMessage) and isinstance(messages[-1], ToolMessage)):
            starts.append(len(messages))
        messages.append(message)
        if chance.random() < 0.5:
            kept = GeminiEncoder().encode(
                ChatRequest(model="m", messages=messages, history=history), "gemini-3-pro"
            )
            assert json.loads(kept) == body_of(*messages, model="gemini-3-pro")


def test_a_message_is_encoded_once() -> None:
    messages: list[Message] = [HI, AssistantMessage("", (CALL,)), ToolMessage("2", "c1", "add")]
    history = EncodedHistory(messages, starts := [0, 1, 2])
    encoder = GeminiEncoder()
    for _ in range(20):
        encoder.encode(ChatRequest(model="m", messages=messages, history=history), "m")
        starts += [len(messages), len(messages) + 1]
        messages += [AssistantMessage("", (CALL,)), ToolMessage("2", "c1", "add")]
    assert history.encodings == len(split_groups(messages)) - 2
