"""How a tool's result and the message made of it share one record: what the message repeats is left out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import to_builtins

from robota.core.events import ToolEnded
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject, ToolMessage
from robota.core.tool import ToolResult


def parse_arguments(arguments: str) -> Json:
    """The arguments of a call as values; `None` for what is no JSON."""
    try:
        return decode(arguments)
    except ValueError:
        return None


def result_fields(event: ToolEnded) -> JsonObject:
    """The fields of a `tool_result` record; what has its ordinary value is left out."""
    return {
        "toolName": event.tool_name,
        "outcome": None if event.outcome == "success" else event.outcome,
        "content": event.content or None,
        "error": event.error,
        "errorCode": event.error_code,
        "metadata": event.metadata or None,
        "duration": event.duration or None,
    }


def message_text(content: str, error: str | None, outcome: str) -> str:
    """What the model is told of such a result."""
    return ToolResult(content=content, ok=outcome == "success", error=error).text


def message_metadata(
    result: Mapping[str, Json], tool_name: str, outcome: str, error: str | None, round_number: int
) -> JsonObject:
    """The metadata the engine gives to the message of such a result."""
    metadata = {**result, "success": outcome == "success", "toolName": tool_name, "round": round_number}
    return metadata if outcome == "success" else {**metadata, "error": error}


def tool_message_fields(message: ToolMessage, result: ToolEnded) -> JsonObject:
    """The message without what its result says already."""
    fields: JsonObject = {"id": message.id, "timestamp": to_builtins(message.timestamp)}
    if message.tool_call_id != result.tool_call_id or message.name != result.tool_name:
        fields |= {"toolCallId": message.tool_call_id, "name": message.name}
    if message.content != message_text(result.content, result.error, result.outcome):
        fields["content"] = message.content
    failure = result.error_code or result.error
    derived = message_metadata(result.metadata, result.tool_name, result.outcome, failure, result.round)
    if message.metadata != derived:
        fields["metadata"] = to_builtins(message.metadata)
    if message.parts:
        fields["parts"] = to_builtins(message.parts)
    return fields
