from __future__ import annotations

import math
from typing import Any

import pytest

from robota.core.context import estimate_context_tokens_from_messages
from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import AssistantMessage, SystemMessage, UserMessage
from robota.sessions.context_window_tracker import ContextWindowTracker

REFUSAL = "autoCompactThreshold must be a number greater than 0 and at most 1."


def conversation_of(tokens: int, answer: str = "ok") -> ConversationStore:
    """A conversation whose last answer came with the provider's own count."""
    store = ConversationStore()
    store.append(SystemMessage("Be brief."))
    store.append(UserMessage("hi"))
    store.append(AssistantMessage(answer, metadata={"inputTokens": tokens - 1, "outputTokens": 1}))
    return store


def test_the_state_has_used_and_remaining_percentage() -> None:  # §20.108
    tracker = ContextWindowTracker(conversation_of(85_000), 200_000)
    state = tracker.state
    assert (state.max_tokens, state.used_tokens) == (200_000, 85_000)
    assert (state.used_percentage, state.remaining_percentage) == (42.5, 57.5)
    assert tracker.state == state


@pytest.mark.parametrize("tokens", [100, 9_000], ids=["more than was counted", "less"])
@pytest.mark.parametrize("begun", [True, False], ids=["in a conversation", "as its beginning"])
def test_a_message_about_to_be_recorded_is_counted_as_if_it_were(tokens: int, begun: bool) -> None:
    store = conversation_of(tokens) if begun else ConversationStore()
    tracker = ContextWindowTracker(store, 10_000)
    coming = UserMessage("and now " * 500)
    foreseen = tracker.measure(coming)
    assert tracker.state.used_tokens == (tokens if begun else 0)
    store.append(coming)
    assert foreseen == tracker.state
    assert foreseen.used_tokens == estimate_context_tokens_from_messages(store.messages).tokens


@pytest.mark.parametrize(
    ("used", "threshold", "due"),
    [
        (800, 0.835, False),
        (834, 0.835, False),
        (835, 0.835, True),
        (950, 0.835, True),
        (999, 1, False),
        (1_000, 1, True),
        (950, False, False),
    ],
)
def test_compaction_is_due_at_the_threshold(used: int, threshold: Any, due: bool) -> None:
    tracker = ContextWindowTracker(conversation_of(used), 1_000, threshold)
    assert tracker.should_auto_compact is due


def test_the_threshold_is_83_5_percent_unless_told_otherwise() -> None:
    assert ContextWindowTracker(ConversationStore(), 1_000).threshold == 0.835


@pytest.mark.parametrize("value", [0, -0.1, 1.01, math.nan, math.inf, True, "0.8", None])
def test_a_threshold_outside_0_to_1_is_refused(value: Any) -> None:  # §20.82
    with pytest.raises(ValidationError) as refusal:
        ContextWindowTracker(ConversationStore(), 1_000, value)
    assert (str(refusal.value), refusal.value.field) == (REFUSAL, "autoCompactThreshold")


def test_the_threshold_can_be_changed_while_running() -> None:  # §20.82
    tracker = ContextWindowTracker(conversation_of(600), 1_000)
    tracker.threshold = 0.5
    assert tracker.should_auto_compact
    tracker.threshold = False
    assert not tracker.should_auto_compact
    with pytest.raises(ValidationError, match=REFUSAL):
        tracker.threshold = 2
    assert tracker.threshold is False


def test_another_models_window_counts_at_once() -> None:
    tracker = ContextWindowTracker(conversation_of(500), 1_000)
    tracker.max_tokens = 550
    assert tracker.should_auto_compact


def marked(size: int) -> tuple[ConversationStore, ContextWindowTracker]:
    """A window of 10,000 tokens after a compaction that left about `size`."""
    store = ConversationStore()
    store.append(UserMessage("hi"))
    store.mark_compaction("x" * (size * 4 - 200))
    tracker = ContextWindowTracker(store, 10_000)
    tracker.note_compaction()
    return store, tracker


def grow(store: ConversationStore, tokens: int) -> None:
    store.append(UserMessage("y" * (tokens * 4 - 200)))


def test_a_compaction_that_freed_too_little_is_not_repeated_at_once() -> None:
    store, tracker = marked(8_600)
    assert tracker.state.used_tokens > 8_350
    assert not tracker.should_auto_compact
    grow(store, 300)
    assert not tracker.should_auto_compact
    grow(store, 300)
    assert tracker.should_auto_compact


def test_before_a_request_is_refused_even_a_little_room_is_worth_a_compaction() -> None:
    store, tracker = marked(9_300)
    grow(store, 100)
    assert not tracker.should_auto_compact
    grow(store, 200)
    assert tracker.should_auto_compact


def test_a_cleared_conversation_forgets_the_last_compaction() -> None:
    store, tracker = marked(8_600)
    store.clear()
    grow(store, 8_400)
    assert tracker.should_auto_compact
