from __future__ import annotations

import msgspec
import pytest

from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    chat_entry_to_message,
    get_messages_for_api,
    is_chat_entry,
    message_to_history_entry,
)

MESSAGES = [SystemMessage("s"), UserMessage("u"), AssistantMessage("a"), ToolMessage("t", "call_0", "add")]
TOOL_START = HistoryEntry(category="event", type="tool-start", data={"toolName": "add"})


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.role)
def test_a_message_comes_back_from_its_entry_with_id_and_time(message: Message) -> None:
    entry = message_to_history_entry(message)
    assert (entry.category, entry.type, entry.id, entry.timestamp) == (
        "chat",
        message.role,
        message.id,
        message.timestamp,
    )
    assert chat_entry_to_message(entry) == message


def test_messages_are_the_chat_entries_in_order_without_the_events() -> None:
    chat = [message_to_history_entry(message) for message in MESSAGES]
    timeline = [chat[0], TOOL_START, *chat[1:], TOOL_START]
    assert [is_chat_entry(entry) for entry in timeline] == [True, False, True, True, True, False]
    assert get_messages_for_api(timeline) == MESSAGES


@pytest.mark.parametrize(
    "entry", [TOOL_START, HistoryEntry(category="chat", type="user", id="e-1")], ids=["event", "empty"]
)
def test_an_entry_without_a_message_is_refused_by_name(entry: HistoryEntry) -> None:
    with pytest.raises(ValidationError, match=f"{entry.id}.*{entry.category}/{entry.type}.*no message"):
        chat_entry_to_message(entry)


def test_a_timeline_keeps_events_where_they_happened() -> None:
    store = ConversationStore()
    store.append(MESSAGES[1])
    store.add_entry(TOOL_START)
    store.append(MESSAGES[2])
    assert store.history == [
        message_to_history_entry(MESSAGES[1]),
        TOOL_START,
        message_to_history_entry(MESSAGES[2]),
    ]
    assert store.messages == [MESSAGES[1], MESSAGES[2]]
    assert list(store.messages_for_api()) == [MESSAGES[1], MESSAGES[2]]


def test_a_message_cannot_slip_in_as_a_ready_made_entry() -> None:
    store = ConversationStore()
    with pytest.raises(ValueError, match=r"append\(\)"):
        store.add_entry(message_to_history_entry(MESSAGES[1]))
    assert store.history == []


def test_an_entry_is_plain_json() -> None:
    data = msgspec.json.decode(msgspec.json.encode(message_to_history_entry(MESSAGES[3])))
    assert data["category"] == "chat"
    assert data["data"]["toolCallId"] == "call_0"
