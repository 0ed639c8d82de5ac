"""The timeline of a conversation: chat entries that hold messages, event entries that hold anything else.

A chat entry's `type` is the message's role and its `data` the whole message, so a message survives the
round trip with its id and time stamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from robota.core.errors import ValidationError
from robota.core.messages import AssistantMessage, Json, Message, SystemMessage, ToolMessage, UserMessage
from robota.core.ports import new_uuid, utc_now


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One entry of a timeline: a message or an event."""

    category: Literal["chat", "event"]
    type: str
    data: Message | Json = None
    id: str = field(default_factory=new_uuid)
    timestamp: datetime = field(default_factory=utc_now)


def is_chat_entry(entry: HistoryEntry) -> bool:
    """Whether an entry is a message."""
    return entry.category == "chat"


def message_to_history_entry(message: Message) -> HistoryEntry:
    """The entry that holds a message."""
    return HistoryEntry(
        category="chat", type=message.role, data=message, id=message.id, timestamp=message.timestamp
    )


def chat_entry_to_message(entry: HistoryEntry) -> Message:
    """The message of a chat entry; an event entry or an empty one is refused by name."""
    data = entry.data
    if entry.category == "chat" and isinstance(
        data, SystemMessage | UserMessage | AssistantMessage | ToolMessage
    ):
        return data
    raise ValidationError(
        f"History entry {entry.id} ({entry.category}/{entry.type}) holds no message; only chat entries do.",
        field="data",
    )


def get_messages_for_api(history: Iterable[HistoryEntry]) -> list[Message]:
    """The messages among the entries, in order."""
    return [chat_entry_to_message(entry) for entry in history if entry.category == "chat"]
