"""What Anthropic's Messages API refuses, so that a history that would fail in production fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator

from robota.core.messages import Json, JsonObject

SAMPLING = ("temperature", "top_p", "top_k")
MAX_MARKS = 4
CHOICES = ("auto", "any", "none", "tool")
BLOCKS = {
    "user": ("text", "image", "document", "tool_result", "search_result"),
    "assistant": (
        "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result",
    ),
}  # fmt: skip
_ID = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


def check_request(body: JsonObject) -> str | None:
    """Why the vendor would refuse this request, or `None`."""
    return (
        _check_fields(body)
        or _check_system(body.get("system"))
        or _check_tools(body.get("tools"))
        or _check_turns(body["messages"])
        or _check_marks(body)
    )


def _check_fields(body: JsonObject) -> str | None:
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "max_tokens: Input should be greater than or equal to 1"
    for name in SAMPLING:
        if name in body:
            return f"{name}: this parameter was removed in version 2026-10-21"
    choice = body.get("tool_choice")
    if choice is not None and choice.get("type") not in CHOICES:
        return f"tool_choice.type must be one of {', '.join(CHOICES)}"
    if choice is not None and not body.get("tools"):
        return "tool_choice may only be specified while providing tools"
    if body.get("thinking") and choice is not None and choice["type"] in ("any", "tool"):
        return "Thinking may not be enabled when tool_choice forces tool use"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return "messages: at least one message is required"
    return None


def _check_system(system: Json) -> str | None:
    if system is None or isinstance(system, str):
        return None
    for block in system:
        if block.get("type") != "text" or not block.get("text", "").strip():
            return "system: text content blocks must be non-empty"
    return None


def _check_tools(tools: Json) -> str | None:
    names: set[str] = set()
    for at, tool in enumerate(tools or ()):
        name = tool.get("name", "")
        if not _NAME.fullmatch(name):
            return f"tools.{at}.name: {name!r} does not match ^[a-zA-Z0-9_-]{{1,128}}$"
        if name in names:
            return f"tools: Tool names must be unique; {name!r} is there twice"
        names.add(name)
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            return f"tools.{at}.input_schema must be a JSON schema of type object"
    return None


def _check_turns(messages: list[JsonObject]) -> str | None:
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in BLOCKS:
            return f"messages.{at}.role must be user or assistant"
        problem = _check_blocks(message, role)
        if problem:
            return f"messages.{at}: {problem}"
    turns = _join_turns(messages)
    role, last = turns[-1]
    if turns[0][0] != "user":
        return "messages: first message must use the user role"
    if role == "assistant" and not any(block["type"] == "server_tool_use" for block in last):
        return "the conversation must end with a user message; assistant prefill is not supported"
    return _check_calls(turns)


def _join_turns(messages: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Consecutive messages of one role are one turn to the API."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], [*blocks]))
    return turns


def _check_calls(turns: list[tuple[str, list[JsonObject]]]) -> str | None:
    seen: set[str] = set()
    waiting: list[str] = []
    for _, blocks in turns:
        problem = _check_answers(blocks, waiting)
        if problem:
            return f"messages: {problem}"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for id in waiting:
            if id in seen or not _ID.fullmatch(id):
                return f"messages: `tool_use` ids must be unique and match ^[a-zA-Z0-9_-]+$; got {id!r}"
            seen.add(id)
    return None


def _check_blocks(message: JsonObject, role: str) -> str | None:
    content = message.get("content")
    if not content or not isinstance(content, (str, list)):
        return "content must be non-empty"
    if isinstance(content, str):
        return None if content.strip() else "text content must be non-empty"
    for block in content:
        kind = block.get("type")
        if kind not in BLOCKS[role]:
            return f"a block of type {kind!r} cannot stand in a message of the {role}"
        if kind == "text" and not block["text"].strip():
            return "text content blocks must contain non-whitespace text"
        if kind == "thinking" and not block.get("signature"):
            return "thinking.signature: Field required"
        if kind == "tool_use" and not isinstance(block.get("input"), dict):
            return "tool_use.input: Input should be a valid dictionary"
        if role == "user" and block.get("citations"):
            return "text blocks in user messages cannot have citations"
    return None


def _check_answers(blocks: list[JsonObject], waiting: list[str]) -> str | None:
    """Whether the results are those of the calls before, all of them, and in front."""
    answered = [block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"]
    for id in answered:
        if id not in waiting or answered.count(id) > 1:
            return f"unexpected `tool_use_id` {id!r} in a tool_result: no call in the message before has it"
    missing = [id for id in waiting if id not in answered]
    if missing:
        return f"`tool_use` ids were found without `tool_result` blocks right after: {', '.join(missing)}"
    if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
        return "tool_result blocks must come first"
    return None


def _check_marks(body: JsonObject) -> str | None:
    marks = sum(1 for _ in _marks(body))
    if marks <= MAX_MARKS:
        return None
    return f"a maximum of {MAX_MARKS} blocks with cache_control may be provided; found {marks}"


def _marks(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        if value.get("cache_control"):
            yield value
        for item in value.values():
            yield from _marks(item)
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)
