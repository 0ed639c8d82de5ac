from __future__ import annotations

import json
import random

import pytest
from tests.providers.anthropic_requests import (
    ADD,
    ADD_WIRE,
    MARK,
    MODEL,
    PLAIN,
    encode,
    result,
    text,
    turns,
)

from robota.core.encoded import EncodedHistory
from robota.core.errors import ConfigurationError
from robota.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, NativeWebTools, ToolSchema
from robota.providers.anthropic.request import MessagesEncoder
from robota.testing.wire_anthropic import Messages

# --- settings ----------------------------------------------------------------------------------------


def test_a_plain_request_says_no_more_than_needed() -> None:
    assert encode() == {
        "model": MODEL,
        "max_tokens": 128_000,
        "stream": True,
        "messages": [{"role": "user", "content": [text("hi")]}],
    }


def test_the_longest_output_is_that_of_the_model_unless_one_is_asked_for() -> None:
    assert encode(model="claude-haiku-4-5-20251001")["max_tokens"] == 64_000
    assert encode(model="somebody-elses-model")["max_tokens"] == 16_384
    assert encode(settings=ModelSettings(max_tokens=9))["max_tokens"] == 9


def test_sampling_parameters_are_sent_only_to_the_old_api() -> None:
    settings = ModelSettings(temperature=0.5, top_p=0.9, stop=("X",))
    body = encode(settings=settings)
    assert not {"temperature", "top_p"} & body.keys()
    assert body["stop_sequences"] == ["X"]
    old = encode(MessagesEncoder(sampling=True), settings=settings)
    assert (old["temperature"], old["top_p"]) == (0.5, 0.9)


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", {"type": "auto"}),
        ("none", {"type": "none"}),
        ("required", {"type": "any"}),
        ("add", {"type": "tool", "name": "add"}),
    ],
)
def test_a_tool_choice_is_an_object(choice: str, wire: object) -> None:
    settings = ModelSettings(tool_choice=choice)
    assert encode(settings=settings, tools=(ADD,))["tool_choice"] == wire
    assert "tool_choice" not in encode(settings=settings)


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "config"),
    [
        ("claude-opus-5-5", "max", {"type": "adaptive", "display": "summarized"}, {"effort": "max"}),
        ("claude-sonnet-4-6", "minimal", {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        (
            "us.anthropic.claude-fable-5",
            "low",
            {"type": "adaptive", "display": "summarized"},
            {"effort": "low"},
        ),
        ("claude-opus-4-5-20251101", "low", {"type": "enabled", "budget_tokens": 2048}, {"effort": "low"}),
        ("claude-haiku-4-5", "high", {"type": "enabled", "budget_tokens": 16_384}, None),
        ("claude-3-7-sonnet-20250219", "low", {"type": "enabled", "budget_tokens": 2048}, None),
        ("claude-sonnet-5", "none", None, None),
    ],
)
def test_effort_is_said_in_the_words_of_the_model(
    model: str, effort: str, thinking: object, config: object
) -> None:
    body = encode(model=model, settings=ModelSettings(effort=effort))
    assert (body.get("thinking"), body.get("output_config")) == (thinking, config)


def test_a_forced_call_goes_without_thinking() -> None:
    settings = ModelSettings(effort="high", tool_choice="required")
    body = encode(settings=settings, tools=(ADD,))
    assert "thinking" not in body
    assert body["output_config"] == {"effort": "high"}


def test_a_short_answer_leaves_no_room_for_a_budget_of_thinking() -> None:
    settings = ModelSettings(effort="high", max_tokens=2000)
    assert "thinking" not in encode(model="claude-haiku-4-5", settings=settings)


def test_an_output_schema_is_sent_to_endpoints_that_enforce_it() -> None:
    schema = {"type": "object", "additionalProperties": False}
    assert "output_config" not in encode(output_schema=schema)
    body = encode(MessagesEncoder(output_schema=True), output_schema=schema)
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_extra_fields_win_and_none_takes_a_field_away() -> None:
    extra = {
        "max_tokens": 7,
        "metadata": {"user_id": "u"},
        "tools": [{"type": "bash_20250124", "name": "bash"}],
    }
    body = encode(settings=ModelSettings(effort="low", extra={**extra, "thinking": None}), tools=(ADD,))
    assert (body["max_tokens"], body["metadata"]) == (7, {"user_id": "u"})
    assert "thinking" not in body
    assert body["tools"] == [ADD_WIRE, {"type": "bash_20250124", "name": "bash"}]


@pytest.mark.parametrize("name", ["messages", "system"])
def test_the_conversation_cannot_be_smuggled_in(name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        encode(settings=ModelSettings(extra={name: []}))


# --- tools -------------------------------------------------------------------------------------------


def test_providers_do_not_alias_tool_names() -> None:
    names = ["Read", "mcp__github__create_issue", "web_search", "a-b_C9"]
    tools = tuple(ToolSchema(name, "", {"type": "object"}) for name in names)
    assert [tool["name"] for tool in encode(tools=tools)["tools"]] == names


def test_hosted_web_search_stands_behind_the_other_tools() -> None:
    wanted = NativeWebTools(web_search=True)
    search = {"type": "web_search_20250305", "name": "web_search"}
    assert encode(tools=(ADD,), native_web_tools=wanted)["tools"] == [ADD_WIRE, search]
    assert encode(native_web_tools=wanted)["tools"] == [search]


def test_tool_sets_are_told_apart_by_more_than_their_address() -> None:
    encoder = PLAIN
    for number in range(100):
        tools = (ToolSchema(f"t{number}", "", {"type": "object"}),)
        request = ChatRequest(model="m", messages=[UserMessage("hi")], tools=tools)
        assert json.loads(encoder.encode(request, "m"))["tools"][0]["name"] == f"t{number}"


# --- prompt caching ----------------------------------------------------------------------------------

CACHING = MessagesEncoder()


def test_cache_marks_stand_behind_tools_system_and_the_last_two_user_turns() -> None:
    messages = (
        SystemMessage("Be"),
        SystemMessage("brief."),
        UserMessage("one"),
        AssistantMessage("1"),
        UserMessage("two"),
        AssistantMessage("", (ToolCall("c1", "add"),)),
        ToolMessage("2", "c1", "add"),
        UserMessage("three"),
    )
    body = encode(CACHING, messages=messages, tools=(ADD, ToolSchema("sub", "", {"type": "object"})))
    assert [MARK.items() <= tool.items() for tool in body["tools"]] == [False, True]
    assert body["system"] == [text("Be"), {**text("brief."), **MARK}]
    assert [turn["content"] for turn in body["messages"] if turn["role"] == "user"] == [
        [text("one")],
        [{**text("two"), **MARK}],
        [result("c1"), {**text("three"), **MARK}],
    ]


def test_a_turn_that_answers_calls_for_the_history_is_marked_and_not_the_answer_behind_it() -> None:
    sent = turns(
        UserMessage("Add."),
        AssistantMessage("", (ToolCall("c1", "add"),)),
        AssistantMessage("Never mind."),
        UserMessage("Thanks."),
        options=CACHING,
    )
    assert [["cache_control" in block for block in blocks] for _, blocks in sent] == [
        [False], [False], [True], [False], [True],
    ]  # fmt: skip


def test_short_conversations_have_fewer_marks() -> None:
    assert turns(UserMessage("one"), options=CACHING) == [("user", [{**text("one"), **MARK}])]
    assert turns(AssistantMessage("one"), options=CACHING)[-1] == ("user", [{**text("Go on."), **MARK}])


def random_message(number: int) -> Message:
    return random.choice(
        [
            UserMessage(f"ask {number}"),
            UserMessage(""),
            SystemMessage(f"rule {number}"),
            AssistantMessage(""),
            AssistantMessage(f"answer {number}"),
            AssistantMessage("", (ToolCall("c", "add"), ToolCall(f"c{number}", "add"))),
            ToolMessage(f"result {number}", "c", "add", (ImagePart("aW1n"),)),
            ToolMessage(f"result {number}", f"c{number - 1}", "add"),
        ]
    )


@pytest.mark.parametrize("options", [PLAIN, CACHING])
def test_a_body_joined_from_kept_fragments_is_the_body_made_from_scratch(options: MessagesEncoder) -> None:
    random.seed(7)
    messages: list[Message] = []
    starts: list[int] = []
    history = EncodedHistory(messages, starts)
    encoder = options
    for number in range(300):
        message = random_message(number)
        if not (isinstance(message, ToolMessage) and messages and isinstance(messages[-1], ToolMessage)):
            starts.append(len(messages))
        messages.append(message)
        kept = encoder.encode(ChatRequest(model=MODEL, messages=messages, history=history), MODEL)
        assert kept == encoder.encode(ChatRequest(model=MODEL, messages=messages), MODEL)
        assert Messages().check(json.loads(kept)) is None


def test_a_settled_group_is_encoded_once_although_the_marks_move() -> None:
    messages: list[Message] = []
    starts: list[int] = []
    history = EncodedHistory(messages, starts)
    encoder = CACHING
    for number in range(50):
        starts.append(number)
        messages.append(UserMessage("a") if number % 2 == 0 else AssistantMessage("b"))
        encoder.encode(ChatRequest(model=MODEL, messages=messages, history=history), MODEL)
    assert history.encodings == 50
