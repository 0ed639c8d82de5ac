"""The table of conversations as a user of each vendor's own client would write it."""

from __future__ import annotations

from typing import Any

from tests.providers.conversations import ADD_SCHEMA, ANSWER_SCHEMA, PDF, PNG

# --- anthropic.AsyncAnthropic().messages.create(**…) -------------------------------------------------------

MARK = {"cache_control": {"type": "ephemeral"}}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def used(id: str, name: str, **input: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
CLAUDE_ADD = {"name": "add", "description": "Add two numbers.", "input_schema": ADD_SCHEMA, **MARK}
HI = [user(said("Hi", **MARK))]
ANTHROPIC: dict[str, dict[str, Any]] = {
    "text": {"system": [said("Be brief.", **MARK)], "messages": [user(said("Say żółw 🐢.", **MARK))]},
    "several turns": {
        "messages": [user(said("Hi", **MARK)), answer(said("Hello.")), user(said("Bye", **MARK))]
    },
    "tools": {"messages": [user(said("1+2?", **MARK))], "tools": [CLAUDE_ADD]},
    "parallel results": {
        "messages": [
            user(said("1+2 and 3+4?", **MARK)),
            answer(said("Let me."), used("toolu_1", "add", a=1, b=2), used("toolu_2", "add", a=3, b=4)),
            user(
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "too big",
                    "is_error": True,
                    **MARK,
                },
            ),
        ],
        "tools": [CLAUDE_ADD],
    },
    "tool choice auto": {"messages": HI, "tools": [CLAUDE_ADD], "tool_choice": {"type": "auto"}},
    "tool choice none": {"messages": HI, "tools": [CLAUDE_ADD], "tool_choice": {"type": "none"}},
    "tool choice required": {"messages": HI, "tools": [CLAUDE_ADD], "tool_choice": {"type": "any"}},
    "tool choice by name": {
        "messages": HI,
        "tools": [CLAUDE_ADD],
        "tool_choice": {"type": "tool", "name": "add"},
    },
    "images": {
        "messages": [
            user(
                said("Look."),
                PICTURE,
                {"type": "image", "source": {"type": "url", "url": "https://a.org/b.jpg"}, **MARK},
            )
        ]
    },
    "image in a result": {
        "messages": [
            user(said("Look.", **MARK)),
            answer(used("toolu_1", "shoot")),
            user(
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [said("Shot."), PICTURE],
                    **MARK,
                }
            ),
        ]
    },
    "files": {
        "messages": [
            user(
                said("Read."),
                {
                    "type": "document",
                    "title": "a.pdf",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                },
                {
                    "type": "document",
                    "title": "notes.txt",
                    "source": {"type": "text", "media_type": "text/plain", "data": "notes"},
                    **MARK,
                },
            )
        ]
    },
    "thinking": {
        "messages": [
            user(said("Sure?", **MARK)),
            answer({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, said("Yes.")),
            user(said("Really?", **MARK)),
        ],
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    },
    "caching": {
        "system": [said("Be brief.", **MARK)],
        "messages": [
            user(said("One")),
            answer(said("1")),
            user(said("Two", **MARK)),
            answer(said("2")),
            user(said("Three", **MARK)),
        ],
        "tools": [CLAUDE_ADD],
    },
    "output schema": {
        "messages": [user(said("1+2?", **MARK))],
        "output_config": {"format": {"type": "json_schema", "schema": ANSWER_SCHEMA}},
    },
    "web search": {
        "messages": [user(said("News?", **MARK))],
        "tools": [{"type": "web_search_20250305", "name": "web_search", **MARK}],
    },
    "limits": {"messages": HI, "max_tokens": 99},
}

# --- openai.AsyncOpenAI().responses.create(**…) ------------------------------------------------------------


def asked(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answered(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text}


def called(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def output(id: str, content: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": content}


SHOT = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"}
OPENAI_ADD = {
    "type": "function",
    "name": "add",
    "description": "Add two numbers.",
    "parameters": ADD_SCHEMA,
    "strict": False,
}
OPENAI: dict[str, dict[str, Any]] = {
    "text": {"instructions": "Be brief.", "input": [asked("Say żółw 🐢.")]},
    "several turns": {"input": [asked("Hi"), answered("Hello."), asked("Bye")]},
    "tools": {"input": [asked("1+2?")], "tools": [OPENAI_ADD]},
    "parallel results": {
        "input": [
            asked("1+2 and 3+4?"),
            answered("Let me."),
            called("toolu_1", "add", '{"a":1,"b":2}'),
            called("toolu_2", "add", '{"a":3,"b":4}'),
            output("toolu_1", "3"),
            output("toolu_2", "too big"),
        ],
        "tools": [OPENAI_ADD],
    },
    "tool choice auto": {"input": [asked("Hi")], "tools": [OPENAI_ADD], "tool_choice": "auto"},
    "tool choice none": {"input": [asked("Hi")], "tools": [OPENAI_ADD], "tool_choice": "none"},
    "tool choice required": {"input": [asked("Hi")], "tools": [OPENAI_ADD], "tool_choice": "required"},
    "tool choice by name": {
        "input": [asked("Hi")],
        "tools": [OPENAI_ADD],
        "tool_choice": {"type": "function", "name": "add"},
    },
    "images": {
        "input": [
            asked(
                [
                    {"type": "input_text", "text": "Look."},
                    SHOT,
                    {"type": "input_image", "image_url": "https://a.org/b.jpg", "detail": "auto"},
                ]
            )
        ]
    },
    "image in a result": {
        "input": [
            asked("Look."),
            called("toolu_1", "shoot", "{}"),
            output("toolu_1", [{"type": "input_text", "text": "Shot."}, SHOT]),
        ]
    },
    "files": {
        "input": [
            asked(
                [
                    {"type": "input_text", "text": "Read."},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": f"data:application/pdf;base64,{PDF}",
                    },
                    {
                        "type": "input_file",
                        "filename": "notes.txt",
                        "file_data": "data:text/plain;base64,bm90ZXM=",
                    },
                ]
            )
        ]
    },
    "thinking": {
        "input": [
            asked("Sure?"),
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "encrypted_content": "c2VjcmV0",
            },
            answered("Yes."),
            asked("Really?"),
        ],
        "reasoning": {"effort": "high"},
    },
    "caching": {
        "instructions": "Be brief.",
        "input": [asked("One"), answered("1"), asked("Two"), answered("2"), asked("Three")],
        "tools": [OPENAI_ADD],
    },
    "output schema": {
        "input": [asked("1+2?")],
        "text": {
            "format": {"type": "json_schema", "name": "answer", "schema": ANSWER_SCHEMA, "strict": True}
        },
    },
    "web search": {"input": [asked("News?")], "tools": [{"type": "web_search"}]},
    "limits": {"input": [asked("Hi")], "max_output_tokens": 99},
}
