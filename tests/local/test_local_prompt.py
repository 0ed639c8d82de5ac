from __future__ import annotations

import msgspec
import pytest

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    JsonObject,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.core.schema import check
from robota.providers.local.request import (
    EXAMPLES,
    LONGEST_LEAD,
    choice_schema,
    example_turns,
    offered_tools,
    wire_messages,
    without_optional_parameters,
)
from robota.sdk import bash_tool, edit_tool, glob_tool, grep_tool, read_tool, write_tool
from robota.testing.reply_conformance import ADD
from robota.tools import todo_tool, web_fetch_tool, web_search_tool


def sent(*messages: Message, tools: tuple[ToolSchema, ...] = (), examples: bool = False) -> list[JsonObject]:
    request = ChatRequest(model="", messages=messages, tools=tools)
    return wire_messages(request, tools, may_answer=True, examples=examples)


def roles(messages: list[JsonObject]) -> list[str]:
    return [message["role"] for message in messages]


def builtin_tools() -> tuple[ToolSchema, ...]:
    made = (
        read_tool(), write_tool(), edit_tool(), glob_tool(), grep_tool(), bash_tool(), web_fetch_tool(),
        web_search_tool(), todo_tool(),
    )  # fmt: skip
    return tuple(ToolSchema(tool.name, tool.description, tool.parameters) for tool in made)


def test_a_plain_conversation_is_sent_as_it_is() -> None:
    assert sent(
        SystemMessage("Be brief."), UserMessage("Hi"), AssistantMessage("Hello"), UserMessage("So?")
    ) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "So?"},
    ]


def test_user_and_assistant_take_turns_whatever_the_history_looks_like() -> None:
    history = (
        AssistantMessage("Summary."),
        UserMessage("One."),
        SystemMessage("By the way."),
        UserMessage("Two."),
        AssistantMessage(""),
        AssistantMessage("Three."),
    )
    messages = sent(*history)

    assert roles(messages) == ["user", "assistant", "user", "assistant", "user"]
    assert messages[2]["content"] == "One.\n\nBy the way.\n\nTwo."


def test_calls_and_results_are_told_in_the_form_that_is_asked_for() -> None:
    history = (
        UserMessage("Add."),
        AssistantMessage(
            "Let me add.", (ToolCall("1", "add", '{"a": 1, "b":2}'), ToolCall("2", "add", '{"a'))
        ),
        ToolMessage("3", tool_call_id="1", name="add"),
        ToolMessage("Error: no JSON", tool_call_id="2", name="add"),
        AssistantMessage('It is "3".'),
        UserMessage("Thanks."),
    )
    messages = sent(*history, tools=(ADD,))

    assert roles(messages) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[2]["content"].splitlines() == [
        "Let me add.",
        '{"name": "add", "arguments": {"a": 1, "b":2}}',
        '{"name": "add", "arguments": {}}',
    ]
    assert messages[3]["content"] == "Result of add:\n3\n\nResult of add:\nError: no JSON"
    assert msgspec.json.decode(messages[4]["content"]) == {"answer": 'It is "3".'}


def test_tools_are_described_by_their_signatures() -> None:
    tool = ToolSchema(
        "look",
        "Look at it. " + "Really. " * 60 + "\n\nMore of it.",
        {
            "type": "object",
            "properties": {
                "at": {"type": "string", "description": "What to look at."},
                "how": {"enum": ["long", "short"], "description": "How."},
                "n": {"type": ["integer", "null"]},
                "any": True,
            },
            "required": ["at"],
        },
    )
    lead = sent(SystemMessage("Be brief."), UserMessage("Hi"), tools=(tool,))[0]["content"]

    assert lead.startswith("Be brief.\n\nReply with one JSON object.")
    assert '- look(at: string, how?: "long" | "short", n?: integer | null, any?: any): Look at it.' in lead
    assert "\n  at: What to look at." in lead
    assert "More of it" not in lead


def test_what_is_no_text_is_noted() -> None:
    parts = (TextPart("See"), ImagePart("aGk="), FilePart("aGk=", "application/pdf"))
    (message,) = sent(UserMessage("See", parts))

    assert message["content"].splitlines() == [
        "See",
        "[image left out: this model reads only text]",
        "[file left out: this model reads only text]",
    ]


def test_examples_come_before_the_conversation_and_fit_the_tools_that_are_offered() -> None:
    tools = builtin_tools()
    turns = example_turns(tools)
    assert sent(UserMessage("Hi"), tools=tools, examples=True)[1:] == [
        *turns,
        {"role": "user", "content": "Hi"},
    ]

    schema = choice_schema(tools, "auto")
    said = [msgspec.json.decode(turn["content"]) for turn in turns if turn["role"] == "assistant"]
    assert len(said) == 2 * len(EXAMPLES) + 1
    assert [problem for reply in said for problem in check(reply, schema)] == []


def test_tools_that_no_example_is_about_have_none() -> None:
    assert example_turns((ADD,)) == []
    other = ToolSchema("Read", "Another one.", {"type": "object", "properties": {}, "required": ["book"]})
    assert example_turns((other,)) == []


def test_parameters_that_may_be_left_out_are() -> None:
    kept = without_optional_parameters(builtin_tools()[0])
    assert (kept.name, list(kept.parameters["properties"])) == ("Read", ["file_path"])
    free = ToolSchema("free", "Needs nothing.", {"type": "object", "properties": {"a": {"type": "string"}}})
    assert without_optional_parameters(free) == free


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_what_is_left_of_a_schema_still_takes_what_the_tool_takes(tool: ToolSchema) -> None:
    branch = choice_schema((tool,), "required")["anyOf"][0]["properties"]["arguments"]
    required = {name: tool.parameters["properties"][name] for name in tool.parameters["required"]}

    assert branch["required"] == tool.parameters["required"]
    assert set(branch["properties"]) == set(tool.parameters["properties"])
    assert all(branch["properties"][name].get("type") == part.get("type") for name, part in required.items())


def test_of_many_tools_a_tiny_model_gets_those_that_only_look_and_the_one_asked_for() -> None:
    many = builtin_tools()
    request = ChatRequest(model="", messages=(UserMessage("Hi"),), tools=many)
    forced = msgspec.structs.replace(request, settings=ModelSettings(tool_choice="Bash"))
    few = msgspec.structs.replace(request, tools=many[:3])

    assert {tool.name for tool in offered_tools(request, tiny=True)} == {"Read", "Glob", "Grep"}
    assert {tool.name for tool in offered_tools(forced, tiny=True)} == {"Read", "Glob", "Grep", "Bash"}
    assert [tool.name for tool in offered_tools(few, tiny=True)] == [tool.name for tool in many[:3]]
    assert offered_tools(request, tiny=False) == many


def test_a_tiny_model_gets_the_first_whole_lines_of_long_instructions() -> None:
    rules = "\n".join(f"Rule {number}: be kind." for number in range(100))
    whole = sent(SystemMessage(rules), UserMessage("Hi"))[0]["content"]
    brief = sent(SystemMessage(rules), UserMessage("Hi"), examples=True)[0]["content"]

    assert whole == rules
    assert len(brief) <= LONGEST_LEAD
    assert rules.startswith(f"{brief}\n")
