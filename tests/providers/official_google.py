"""Conversations for `google.genai.Client().aio.models.generate_content_stream(**…)`: slow to load."""

from __future__ import annotations

from typing import Any

from google.genai import types
from tests.providers.official_requests import ADD_SCHEMA, ANSWER_SCHEMA


def turn(role: str, *parts: types.Part) -> types.Content:
    return types.Content(role=role, parts=list(parts))


def text(words: str) -> types.Part:
    return types.Part.from_text(text=words)


def call(id: str, name: str, args: dict[str, int], signature: bytes | None = None) -> types.Part:
    function = types.FunctionCall(id=id, name=name, args=args)
    return types.Part(function_call=function, thought_signature=signature)


def response(id: str, name: str, **outcome: str) -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id=id, name=name, response=outcome))


def config(**fields: Any) -> types.GenerateContentConfig:
    manual = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(automatic_function_calling=manual, **fields)


def choosing(mode: types.FunctionCallingConfigMode, *names: str) -> types.GenerateContentConfig:
    calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=list(names) or None)
    return config(tools=[GOOGLE_ADD], tool_config=types.ToolConfig(function_calling_config=calling))


MODES = types.FunctionCallingConfigMode
GOOGLE_ADD = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="add", description="Add two numbers.", parameters_json_schema=ADD_SCHEMA
        )
    ]
)
GOOGLE_HI = [turn("user", text("Hi"))]
PIXELS = types.Part.from_bytes(data=b"image", mime_type="image/png")
GOOGLE: dict[str, dict[str, Any]] = {
    "text": {
        "contents": [turn("user", text("Say żółw 🐢."))],
        "config": config(system_instruction="Be brief."),
    },
    "several turns": {
        "contents": [turn("user", text("Hi")), turn("model", text("Hello.")), turn("user", text("Bye"))]
    },
    "tools": {"contents": [turn("user", text("1+2?"))], "config": config(tools=[GOOGLE_ADD])},
    "parallel results": {
        "contents": [
            turn("user", text("1+2 and 3+4?")),
            turn(
                "model",
                text("Let me."),
                call("toolu_1", "add", {"a": 1, "b": 2}, b"sig"),
                call("toolu_2", "add", {"a": 3, "b": 4}),
            ),
            turn(
                "user",
                response("toolu_1", "add", output="3"),
                response("toolu_2", "add", error="too big"),
            ),
        ],
        "config": config(tools=[GOOGLE_ADD]),
    },
    "tool choice auto": {"contents": GOOGLE_HI, "config": choosing(MODES.AUTO)},
    "tool choice none": {"contents": GOOGLE_HI, "config": choosing(MODES.NONE)},
    "tool choice required": {"contents": GOOGLE_HI, "config": choosing(MODES.ANY)},
    "tool choice by name": {"contents": GOOGLE_HI, "config": choosing(MODES.ANY, "add")},
    "images": {
        "contents": [
            turn(
                "user",
                text("Look."),
                PIXELS,
                types.Part.from_uri(file_uri="https://a.org/b.jpg", mime_type="image/jpeg"),
            )
        ]
    },
    "image in a result": {
        "contents": [
            turn("user", text("Look.")),
            turn("model", call("toolu_1", "shoot", {}, b"sig")),
            turn(
                "user",
                response("toolu_1", "shoot", output="Shot."),
                text("Content of the result of shoot:"),
                PIXELS,
            ),
        ]
    },
    "files": {
        "contents": [
            turn(
                "user",
                text("Read."),
                types.Part.from_bytes(data=b"pdf", mime_type="application/pdf"),
                types.Part.from_bytes(data=b"notes", mime_type="text/plain"),
            )
        ]
    },
    "thinking": {
        "contents": [
            turn("user", text("Sure?")),
            turn("model", types.Part(text="Hm.", thought=True, thought_signature=b"sig"), text("Yes.")),
            turn("user", text("Really?")),
        ],
        "config": config(
            thinking_config=types.ThinkingConfig(
                include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH
            )
        ),
    },
    "caching": {
        "contents": [
            turn("user", text("One")),
            turn("model", text("1")),
            turn("user", text("Two")),
            turn("model", text("2")),
            turn("user", text("Three")),
        ],
        "config": config(system_instruction="Be brief.", tools=[GOOGLE_ADD]),
    },
    "output schema": {
        "contents": [turn("user", text("1+2?"))],
        "config": config(response_mime_type="application/json", response_json_schema=ANSWER_SCHEMA),
    },
    "web search": {
        "contents": [turn("user", text("News?"))],
        "config": config(tools=[types.Tool(google_search=types.GoogleSearch())]),
    },
    "limits": {"contents": GOOGLE_HI, "config": config(max_output_tokens=99)},
}
