"""Conversations that every wire must be able to send, as one table for all of them."""

from __future__ import annotations

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

ADD_SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
ADD = ToolSchema("add", "Add two numbers.", ADD_SCHEMA)
PNG, PDF, NOTES = "aW1hZ2U=", "cGRm", "bm90ZXM="
THOUGHTS = {
    "anthropic": ReasoningBlock("Hm.", "c2ln", {"type": "thinking"}),
    "responses": ReasoningBlock(
        "Hm.",
        data={
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "c2VjcmV0",
        },
    ),
    "gemini": ReasoningBlock("Hm.", "c2ln", {"gemini": "thought"}),
}
CALLS = (ToolCall("toolu_1", "add", '{"a":1,"b":2}', "c2ln"), ToolCall("toolu_2", "add", '{"a":3,"b":4}'))
TOOL_ROUND: tuple[Message, ...] = (
    UserMessage("1+2 and 3+4?"),
    AssistantMessage("Let me.", CALLS),
    ToolMessage("3", "toolu_1", "add"),
    ToolMessage("too big", "toolu_2", "add", metadata={"success": False}),
)


def ask(*messages: Message, **fields: object) -> ChatRequest:
    return ChatRequest(model="", messages=messages, **fields)  # type: ignore[arg-type]


def conversations(wire: str) -> dict[str, ChatRequest]:
    """The table, with thinking that is the wire's own."""
    thinking = AssistantMessage("Yes.", reasoning=(THOUGHTS[wire],))
    return {
        "text": ask(SystemMessage("Be brief."), UserMessage("Say żółw 🐢.")),
        "several turns": ask(UserMessage("Hi"), AssistantMessage("Hello."), UserMessage("Bye")),
        "tools": ask(UserMessage("1+2?"), tools=(ADD,)),
        "parallel results": ask(*TOOL_ROUND, tools=(ADD,)),
        "tool choice auto": ask(UserMessage("Hi"), tools=(ADD,), settings=ModelSettings(tool_choice="auto")),
        "tool choice none": ask(UserMessage("Hi"), tools=(ADD,), settings=ModelSettings(tool_choice="none")),
        "tool choice required": ask(
            UserMessage("Hi"), tools=(ADD,), settings=ModelSettings(tool_choice="required")
        ),
        "tool choice by name": ask(
            UserMessage("Hi"), tools=(ADD,), settings=ModelSettings(tool_choice="add")
        ),
        "images": ask(
            UserMessage(
                "Look.",
                (
                    TextPart("Look."),
                    ImagePart(PNG, "image/png"),
                    ImageUriPart("https://a.org/b.jpg", "image/jpeg"),
                ),
            )
        ),
        "image in a result": ask(
            UserMessage("Look."),
            AssistantMessage("", (ToolCall("toolu_1", "shoot", "{}", "c2ln"),)),
            ToolMessage("Shot.", "toolu_1", "shoot", (ImagePart(PNG, "image/png"),)),
        ),
        "files": ask(
            UserMessage(
                "Read.",
                (
                    TextPart("Read."),
                    FilePart(PDF, "application/pdf", "a.pdf"),
                    FilePart(NOTES, "text/plain", "notes.txt"),
                ),
            )
        ),
        "thinking": ask(
            UserMessage("Sure?"), thinking, UserMessage("Really?"), settings=ModelSettings(effort="high")
        ),
        "caching": ask(
            SystemMessage("Be brief."),
            UserMessage("One"),
            AssistantMessage("1"),
            UserMessage("Two"),
            AssistantMessage("2"),
            UserMessage("Three"),
            tools=(ADD,),
        ),
        "output schema": ask(UserMessage("1+2?"), output_schema=ANSWER_SCHEMA),
        "web search": ask(UserMessage("News?"), native_web_tools=NativeWebTools(web_search=True)),
        "limits": ask(UserMessage("Hi"), settings=ModelSettings(max_tokens=99)),
    }
