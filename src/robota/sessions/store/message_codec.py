"""Messages and timeline entries as JSON objects in the spelling used on disk, and back.

Writing loses nothing. Reading also takes what the TypeScript original and providers write: calls as
`{"function": {"name", "arguments"}}`, content that is null or a list of parts, missing ids and times. What
has no place in our messages (an unknown role, an unknown kind of part) is refused by name, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from robota.core.errors import ValidationError
from robota.core.jsontext import decode, encode
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Json,
    JsonObject,
    Message,
    Part,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_history_entry,
)
from robota.core.ports import new_uuid, utc_now

_Object: TypeAlias = Mapping[str, Json]
_PARTS = msgspec.json.Decoder(tuple[Part, ...])
_ROLES = ("system", "user", "assistant", "tool")
_MILLISECONDS = 1e11
"""Numbers of seconds from here on would be after the year 5000: they are JavaScript's milliseconds."""


def message_to_record(message: Message) -> JsonObject:
    record: JsonObject = as_json(message)
    return record


def message_from_record(data: _Object, *, id: str = "", timestamp: datetime | None = None) -> Message:
    """The message; `id` and `timestamp` stand in when the record has none (a new id, the present time)."""
    role = text_in(data, "role")
    common: JsonObject = {
        "id": text_in(data, "id") or id or new_uuid(),
        "timestamp": read_time(data.get("timestamp")) or timestamp or utc_now(),
        "metadata": _object(data, "metadata"),
    }
    content, parts = _read_content(data)
    if role == "system":
        return SystemMessage(content, **common)
    if role == "user":
        return UserMessage(content, parts, **common)
    if role == "assistant":
        return AssistantMessage(
            content,
            tuple(_read_call(call) for call in _objects(data, "toolCalls", "tool_calls")),
            "interrupted" if data.get("state") == "interrupted" else "complete",
            tuple(_read_reasoning(block) for block in _objects(data, "reasoning")),
            **common,
        )
    if role == "tool":
        answered = text_in(data, "toolCallId") or text_in(data, "tool_call_id")
        return ToolMessage(content, answered, text_in(data, "name"), parts, **common)
    raise ValidationError(
        f"A message has the role {data.get('role')!r}; known are {', '.join(_ROLES)}. "
        "A newer robota may have written it.",
        field="role",
    )


def history_entry_to_record(entry: HistoryEntry) -> JsonObject:
    return {
        "id": entry.id,
        "timestamp": as_json(entry.timestamp),
        "category": entry.category,
        "type": entry.type,
        "data": as_json(entry.data),
    }


def history_entry_from_record(
    data: _Object, *, id: str = "", timestamp: datetime | None = None
) -> HistoryEntry:
    """The entry. A chat entry gives its own id and time to its message, as it does in the original."""
    category, kind = text_in(data, "category"), text_in(data, "type")
    id = text_in(data, "id") or id
    timestamp = read_time(data.get("timestamp")) or timestamp
    if category == "event":
        known: JsonObject = {"id": id or new_uuid(), "timestamp": timestamp or utc_now()}
        return HistoryEntry(category="event", type=kind, data=data.get("data"), **known)
    if category != "chat":
        raise ValidationError(
            f"A history entry has the category {data.get('category')!r}; known are chat and event.",
            field="category",
        )
    held = data.get("data")
    if not isinstance(held, Mapping):
        raise ValidationError(f"The chat entry {id or '(without id)'} holds no message.", field="data")
    message = message_from_record({"role": kind, **held}, id=id, timestamp=timestamp)
    return message_to_history_entry(
        replace(message, id=id or message.id, timestamp=timestamp or message.timestamp)
    )


def message_record_to_entry_record(message: _Object, *, id: str, timestamp: str) -> JsonObject:
    """The chat entry for a message that stays in its JSON form, whatever else is in it."""
    return {
        "id": text_in(message, "id") or id,
        "timestamp": message.get("timestamp") or timestamp,
        "category": "chat",
        "type": text_in(message, "role"),
        "data": message,
    }


def read_time(value: Json) -> datetime | None:
    """A time stamp as others write it: ISO text, or seconds or milliseconds since the epoch."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= _MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def as_json(value: object) -> Json:
    """The value as a reader of its JSON has it."""
    return decode(encode(value))


def text_in(data: _Object, name: str) -> str:
    """A field's text; empty without one."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _object(data: _Object, name: str) -> JsonObject:
    value = data.get(name)
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    raise _not_readable(name, "an object", value)


def _objects(data: _Object, *names: str) -> Sequence[_Object]:
    for name in names:
        value = data.get(name)
        if value is None:
            continue
        if isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value):
            return value
        raise _not_readable(name, "a list of objects", value)
    return ()


def _not_readable(name: str, wanted: str, value: Json) -> ValidationError:
    return ValidationError(f"A message's {name} is {type(value).__name__}, not {wanted}.", field=name)


def _read_content(data: _Object) -> tuple[str, tuple[Part, ...]]:
    """The text of a message and, when it is more than text, its parts."""
    content = data.get("content")
    parts = _read_parts(_objects(data, "parts"))
    if content is None or isinstance(content, str):
        return content or "", parts
    parts = _read_parts(_objects(data, "content"))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return text, () if all(isinstance(part, TextPart) for part in parts) else parts


def _read_parts(parts: Sequence[_Object]) -> tuple[Part, ...]:
    try:
        return _PARTS.decode(encode(parts))
    except msgspec.ValidationError as error:
        raise ValidationError(
            f"A message has a part that cannot be read: {error}. A newer robota may have written it.",
            field="parts",
        ) from error


def _read_call(call: _Object) -> ToolCall:
    function = call.get("function")
    source = function if isinstance(function, Mapping) else call
    if "name" not in source:
        raise ValidationError("A message holds a tool call without a name.", field="toolCalls")
    arguments = source.get("arguments")
    if arguments is None:
        arguments = "{}"
    elif not isinstance(arguments, str):
        arguments = encode(arguments).decode()
    signature = call.get("signature")
    return ToolCall(
        text_in(call, "id"),
        text_in(source, "name"),
        arguments,
        signature if isinstance(signature, str) else None,
    )


def _read_reasoning(block: _Object) -> ReasoningBlock:
    signature = block.get("signature")
    return ReasoningBlock(
        text_in(block, "text"), signature if isinstance(signature, str) else None, block.get("data")
    )
