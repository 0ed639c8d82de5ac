from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.history import assert_valid_for_a_request

from robota.core.conversation import INTERRUPTION_NOTE, SUMMARY_HEADING, ConversationStore
from robota.core.messages import (
    AssistantMessage,
    Message,
    ReasoningBlock,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.testing import fixed_ports


@pytest.fixture
def store() -> ConversationStore:
    return ConversationStore()


def answer(store: ConversationStore, *ids: str) -> None:
    """An assistant turn that makes these calls, and their results."""
    store.append(AssistantMessage("", tuple(ToolCall(id, "add") for id in ids)))
    for id in ids:
        store.append(ToolMessage(f"result of {id}", id, "add"))


def sent(store: ConversationStore) -> list[Message]:
    return list(store.messages_for_api())


# --- the answer being streamed -----------------------------------------------------------------------


def test_an_answer_is_open_from_the_beginning_and_empty_until_something_streams(
    store: ConversationStore,
) -> None:
    assert (store.has_pending_assistant, store.pending_content) == (False, "")
    store.begin_assistant()
    assert (store.has_pending_assistant, store.pending_content) == (True, "")
    store.append_streaming("Hel")
    store.begin_assistant()
    store.append_streaming("lo")
    assert store.pending_content == "Hello"
    assert store.messages == []


def test_streaming_opens_the_buffer_when_nobody_did(store: ConversationStore) -> None:
    store.append_streaming("Hello")
    message = store.commit_assistant("complete")
    assert message is not None
    assert store.messages == [message]
    assert not store.has_pending_assistant


def test_an_aborted_answer_is_committed_even_when_it_is_empty(store: ConversationStore) -> None:  # §20.61
    store.begin_assistant()
    message = store.commit_assistant("interrupted")
    assert message is not None
    assert (message.content, message.state, store.messages) == ("", "interrupted", [message])


def test_a_call_id_counts_once_in_one_answer_and_again_in_the_next(
    store: ConversationStore,
) -> None:  # §20.63
    for _ in range(2):
        store.append_tool_call(ToolCall("call_0", "add", '{"a":1}'))
        store.append_tool_call(ToolCall("call_0", "add", '{"a":1}'))
        store.append_tool_call(ToolCall("call_1", "add", '{"a":2}'))
        message = store.commit_assistant("complete")
        assert message is not None
        assert [call.id for call in message.tool_calls] == ["call_0", "call_1"]


def test_text_and_reasoning_are_kept_when_there_are_calls(store: ConversationStore) -> None:  # §20.64
    store.append_streaming("Let me add.")
    store.append_reasoning(ReasoningBlock("hm"))
    store.append_tool_call(ToolCall("call_0", "add"))
    message = store.commit_assistant("complete", {"inputTokens": 1})
    assert message is not None
    assert (message.content, message.reasoning, len(message.tool_calls), message.metadata) == (
        "Let me add.",
        (ReasoningBlock("hm"),),
        1,
        {"inputTokens": 1},
    )


def test_a_discarded_answer_leaves_nothing_to_commit(store: ConversationStore) -> None:
    store.append_streaming("never mind")
    store.discard_pending()
    assert store.commit_assistant("complete") is None
    assert store.messages == []


def test_ids_and_times_of_an_answer_come_from_the_ports() -> None:
    store = ConversationStore(fixed_ports(start=1000.0))
    store.append_streaming("Hello")
    message = store.commit_assistant("complete")
    assert message is not None
    assert (message.id, message.timestamp.timestamp()) == ("00000000-0000-4000-8000-000000000001", 1000.0)


# --- what the model sees -----------------------------------------------------------------------------


def test_an_interrupted_answer_says_so_to_the_model_and_nowhere_else(
    store: ConversationStore,
) -> None:  # §20.65
    store.append(UserMessage("Tell me."))
    store.append_streaming("Once upon")
    store.commit_assistant("interrupted")
    assert sent(store)[1].content == "Once upon\n\n[This response was interrupted by the user]"
    assert store.messages[1].content == "Once upon"
    assert INTERRUPTION_NOTE not in msgspec.json.encode(store.history).decode()


def test_a_provider_may_reuse_an_id_and_history_keeps_it(store: ConversationStore) -> None:  # §20.66
    for _ in range(3):
        answer(store, "call_0", "call_1")
    kept = [call.id for message in store.messages for call in getattr(message, "tool_calls", ())]
    assert kept == ["call_0", "call_1"] * 3
    assert_valid_for_a_request(sent(store))


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "a_2", "a_3", "a_2_2", "b", ""]), unique=True, max_size=4), max_size=6
    )
)
def test_whatever_ids_a_provider_uses_each_result_finds_its_own_call(turns: list[list[str]]) -> None:
    store = ConversationStore()
    for ids in turns:
        store.append(UserMessage("go"))
        answer(store, *ids)
    assert_valid_for_a_request(sent(store))
    shown_ids = [call.id for message in sent(store) for call in getattr(message, "tool_calls", ())]
    assert len(set(shown_ids)) == len(shown_ids)
    stored = [message for message in store.messages if isinstance(message, ToolMessage)]
    shown = [message for message in sent(store) if isinstance(message, ToolMessage)]
    assert [message.content for message in shown] == [message.content for message in stored]


def test_a_view_taken_earlier_does_not_grow(store: ConversationStore) -> None:
    store.append(UserMessage("one"))
    view = store.messages_for_api()
    store.append(UserMessage("two"))
    assert [message.content for message in view] == ["one"]


def test_the_model_sees_one_system_message_the_latest_and_first(store: ConversationStore) -> None:
    store.append(UserMessage("hi"))
    store.append(SystemMessage("Be brief."))
    answer(store, "call_0")
    store.append(SystemMessage("Be long."))
    answer(store, "call_0")
    assert store.system is not None
    assert [m.content for m in sent(store) if isinstance(m, SystemMessage)] == ["Be long."]
    assert sent(store)[0].content == "Be long."
    assert [m.content for m in store.messages if isinstance(m, SystemMessage)] == ["Be brief.", "Be long."]
    assert_valid_for_a_request(sent(store))


# --- append-only -----------------------------------------------------------------------------------------


def test_what_a_reader_does_to_a_copy_does_not_reach_the_conversation(store: ConversationStore) -> None:
    store.append(UserMessage("hi"))
    store.messages.clear()
    store.history.clear()
    assert (len(store), len(store.messages), len(store.history)) == (1, 1, 1)


def test_compaction_begins_the_models_view_again_and_deletes_nothing(store: ConversationStore) -> None:
    store.append(SystemMessage("Be brief."))
    store.append(UserMessage("long story"))
    answer(store, "call_0")
    before, epoch = store.messages, store.epoch
    summary = store.mark_compaction("They told a story.")
    assert [m.content for m in sent(store)] == ["Be brief.", f"{SUMMARY_HEADING}\nThey told a story."]
    assert isinstance(summary, AssistantMessage)
    assert store.messages == [*before, summary]
    assert store.epoch > epoch
    answer(store, "call_0")
    assert sent(store)[2].tool_calls[0].id == "call_0"  # type: ignore[union-attr]  # an assistant message


def test_open_calls_are_those_of_the_last_answer_without_a_result(store: ConversationStore) -> None:
    calls = (ToolCall("call_0", "add"), ToolCall("call_1", "add"))
    store.append(AssistantMessage("", calls))
    assert tuple(store.open_calls) == calls
    store.append(ToolMessage("3", "call_0", "add"))
    assert tuple(store.open_calls) == calls[1:]
    store.append(ToolMessage("3", "call_1", "add"))
    assert tuple(store.open_calls) == ()


def test_clearing_keeps_the_system_message_and_forgets_the_token_count(store: ConversationStore) -> None:
    system = SystemMessage("Be brief.")
    store.append(system)
    fresh = store.tally.estimate()
    store.append(UserMessage("hi " * 1000))
    store.append(AssistantMessage("x", metadata={"inputTokens": 900, "outputTokens": 9}))
    store.begin_assistant()
    store.clear()
    assert (store.messages, sent(store), store.has_pending_assistant) == ([system], [system], False)
    assert store.tally.estimate() == fresh


@pytest.mark.parametrize("text", ["half a character: \ud83d", "undecodable name: caf\udce9"])
def test_text_that_is_no_unicode_can_be_recorded(store: ConversationStore, text: str) -> None:
    store.append(UserMessage(text))
    store.append(ToolMessage(text, "call_0", "ls"))
    assert [message.content for message in sent(store)] == [text, text]
    assert store.tally.estimate().tokens > 0
