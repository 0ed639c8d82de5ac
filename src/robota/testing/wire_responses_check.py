"""What OpenAI's Responses API refuses, so that a request that would fail in production fails in a test.

The rules about items are those that histories break: calls and outputs that have lost each other, reasoning
that nothing follows, ids that are too long or used twice.
"""

from __future__ import annotations

import re

from robota.core.messages import Json, JsonObject
from robota.testing.dialect import read_arguments

FOREIGN_FIELDS = ("messages", "max_tokens", "stop", "response_format", "stream_options", "reasoning_effort")
"""Fields of Chat Completions, which this API does not know."""
CONTENT_TYPES = {
    "user": ("input_text", "input_image", "input_file"),
    "developer": ("input_text",),
    "system": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
MAX_CALL_ID = 64
NOT_REASONING = ("gpt-3", "gpt-4", "chatgpt", "gpt-5-chat")
ENCRYPTED = "reasoning.encrypted_content"


def check_request(body: JsonObject) -> str | None:
    """Why the vendor would refuse this request, or `None`."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return "you must provide a model parameter"
    foreign = next((name for name in FOREIGN_FIELDS if name in body), None)
    if foreign is not None:
        return f"unsupported parameter: {foreign!r}"
    if ENCRYPTED in (body.get("include") or ()) and model.startswith(NOT_REASONING):
        return "encrypted content is not supported with this model"
    given = body.get("input")
    if isinstance(given, str):
        return _check_tools(body.get("tools"))
    if not isinstance(given, list) or not given:
        return "input must be a text or a list with at least one item"
    return _check_items(given) or _check_tools(body.get("tools"))


def _check_items(items: list[Json]) -> str | None:
    called: set[str] = set()
    waiting: set[str] = set()
    for at, item in enumerate(items):
        kind = item.get("type", "message") if isinstance(item, dict) else None
        problem: str | None
        if kind == "message":
            problem = _check_message(item)
        elif kind == "reasoning":
            problem = _check_reasoning(item, items[at + 1 :])
        elif kind == "function_call":
            problem = _check_call(item, called)
            waiting.add(str(item.get("call_id")))
            called.add(str(item.get("call_id")))
        elif kind == "function_call_output":
            known = item.get("call_id") in waiting
            waiting.discard(str(item.get("call_id")))
            problem = _check_content(item.get("output"), "user") if known else "answers no call before it"
        else:
            problem = f"has the unknown type {kind!r}"
        if problem:
            return f"input[{at}] {problem}"
    return f"no tool output found for function call {', '.join(sorted(waiting))}" if waiting else None


def _check_message(item: JsonObject) -> str | None:
    role = item.get("role")
    if role not in CONTENT_TYPES:
        return f"has the role {role!r}; it must be one of {', '.join(CONTENT_TYPES)}"
    return _check_content(item.get("content"), role)


def _check_content(content: Json, role: str) -> str | None:
    if isinstance(content, str):
        return None
    if not isinstance(content, list) or not content:
        return "has neither a text nor a list of parts"
    allowed = CONTENT_TYPES[role]
    wrong = next((part.get("type") for part in content if part.get("type") not in allowed), None)
    return None if wrong is None else f"has a part of type {wrong!r}; supported are {', '.join(allowed)}"


def _check_reasoning(item: JsonObject, rest: list[Json]) -> str | None:
    if not isinstance(item.get("summary"), list):
        return "is reasoning without a summary list"
    if not item.get("encrypted_content"):
        return "is reasoning that was not stored and has no encrypted content"
    following: JsonObject = next((other for other in rest if other.get("type") != "reasoning"), {})
    if following.get("type") == "function_call" or following.get("role") == "assistant":
        return None
    return "is reasoning without its required following item"


def _check_call(item: JsonObject, called: set[str]) -> str | None:
    call_id, arguments = item.get("call_id"), item.get("arguments")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= MAX_CALL_ID or call_id in called:
        return f"needs a call_id of its own with at most {MAX_CALL_ID} characters, not {call_id!r}"
    readable = bool(arguments) and isinstance(read_arguments(arguments), dict)
    return None if readable else f"has arguments that are not the text of a JSON object: {arguments!r}"


def _check_tools(tools: Json) -> str | None:
    for at, tool in enumerate(tools or ()):
        if tool.get("type") != "function":
            continue
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(tool.get("name", ""))):
            return f"tools[{at}] needs a name of at most 64 letters, digits, _ and -"
        parameters = tool.get("parameters") or {}
        if parameters.get("type") != "object":
            return f"tools[{at}].parameters must be a JSON schema of type object"
        if tool.get("strict", True) and not _is_closed(parameters):
            return f"tools[{at}].parameters is not strict: close its objects and require all their fields"
    return None


def _is_closed(schema: Json) -> bool:
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema or schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
            return False
    return all(map(_is_closed, schema.values()))
