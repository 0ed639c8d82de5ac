"""Requests of the Messages API as the encoder writes them, checked as the vendor would."""

from __future__ import annotations

import json
from typing import Any

from robota.core.messages import (
    Message,
    UserMessage,
)
from robota.core.provider import ChatRequest, ToolSchema
from robota.providers.anthropic.request import MessagesEncoder
from robota.testing.wire_anthropic import Messages

ADD = ToolSchema("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ADD_WIRE = {"name": "add", "description": "Adds.", "input_schema": ADD.parameters}
PLAIN = MessagesEncoder(prompt_caching=False)
MARK = {"cache_control": {"type": "ephemeral"}}
MODEL = "claude-sonnet-5"


def encode(options: MessagesEncoder = PLAIN, model: str = MODEL, **fields: Any) -> dict[str, Any]:
    request = ChatRequest(**{"model": model, "messages": [UserMessage("hi")], **fields})
    body: dict[str, Any] = json.loads(options.encode(request, model))
    if not options.sampling:
        assert Messages().check(body) is None
    return body


def turns(*messages: Message, options: MessagesEncoder = PLAIN) -> list[tuple[str, list[dict[str, Any]]]]:
    return [(turn["role"], turn["content"]) for turn in encode(options, messages=messages)["messages"]]


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def use(id: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "add", "input": input}


def result(id: str, content: str = "2") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}
