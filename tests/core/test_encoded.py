from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from robota.core.conversation import ConversationStore
from robota.core.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

DIALECT = "test"


def encode(group: Sequence[Message]) -> bytes:
    return "|".join(f"{message.role}:{message.content}" for message in group).encode()


def from_scratch(store: ConversationStore) -> list[bytes]:
    groups: list[list[Message]] = []
    for message in store.messages_for_api():
        if groups and isinstance(message, ToolMessage) and isinstance(groups[-1][-1], ToolMessage):
            groups[-1].append(message)
        else:
            groups.append([message])
    return [encode(group) for group in groups]


def cached(store: ConversationStore, dialect: str = DIALECT) -> list[bytes]:
    return list(store.encoded.fragments(dialect, len(store.messages_for_api()), encode))


def test_every_group_is_encoded_once_however_often_it_is_sent() -> None:
    store = ConversationStore()
    for round_number in range(50):
        store.append(UserMessage(f"question {round_number}"))
        store.append(AssistantMessage("", (ToolCall("a", "t"), ToolCall("b", "t"))))
        store.append(ToolMessage("1", "a", "t"))
        store.append(ToolMessage("2", "b", "t"))
        assert cached(store) == from_scratch(store)

    assert store.encoded.encodings == 150


def test_a_tool_group_that_grew_after_it_was_sent_is_encoded_again() -> None:
    store = ConversationStore()
    store.append(AssistantMessage("", (ToolCall("a", "t"), ToolCall("b", "t"))))
    store.append(ToolMessage("1", "a", "t"))
    assert cached(store)[-1] == b"tool:1"

    store.append(ToolMessage("2", "b", "t"))

    assert cached(store)[-1] == b"tool:1|tool:2"


def test_another_dialect_starts_over() -> None:
    store = ConversationStore()
    store.append(UserMessage("hello"))
    cached(store, "one")

    assert cached(store, "two") == [b"user:hello"]
    assert store.encoded.encodings == 2


def test_an_earlier_state_of_the_history_is_not_mixed_with_the_present_one() -> None:
    store = ConversationStore()
    store.append(UserMessage("first"))
    store.append(AssistantMessage("", (ToolCall("a", "t"), ToolCall("b", "t"))))
    store.append(ToolMessage("1", "a", "t"))
    earlier = store.messages_for_api()
    store.append(ToolMessage("2", "b", "t"))
    cached(store)

    assert store.encoded.fragments(DIALECT, len(earlier), encode) == [b"user:first", b"assistant:", b"tool:1"]


steps = st.lists(
    st.sampled_from(
        ["user", "assistant", "interrupted", "tools", "system", "compact", "clear", "send", "swap"]
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_the_kept_fragments_always_equal_those_made_from_scratch(script: list[str]) -> None:
    store = ConversationStore()
    dialect = DIALECT
    for number, step in enumerate(script):
        match step:
            case "user":
                store.append(UserMessage(f"u{number}"))
            case "assistant":
                store.append(AssistantMessage(f"a{number}"))
            case "interrupted":
                store.append(AssistantMessage(f"i{number}", state="interrupted"))
            case "tools":
                store.append(AssistantMessage("", (ToolCall("call_0", "t"), ToolCall("call_1", "t"))))
                store.append(ToolMessage(f"r{number}", "call_0", "t"))
                cached(store, dialect)
                store.append(ToolMessage(f"s{number}", "call_1", "t"))
            case "system":
                store.append(SystemMessage(f"sys{number}"))
            case "compact":
                store.mark_compaction(f"summary {number}")
            case "clear":
                store.clear()
            case "swap":
                dialect = f"dialect {number}"
            case _:
                assert cached(store, dialect) == from_scratch(store)
    assert cached(store, dialect) == from_scratch(store)
