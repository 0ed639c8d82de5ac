from __future__ import annotations

import math

import msgspec
import pytest

from robota.core.context import (
    ATTACHMENT_TOKENS,
    ContextTally,
    ContextWindowState,
    estimate_context_tokens_from_messages,
    estimate_serialized_context_tokens,
    normalize_usage,
    read_token_usage,
    window_state,
)
from robota.core.messages import (
    AssistantMessage,
    ImagePart,
    Json,
    Message,
    ReasoningBlock,
    TokenUsage,
    UserMessage,
)


def exchange(words: str, sent: int, received: int) -> list[Message]:
    return [
        UserMessage(words),
        AssistantMessage("ok", metadata={"inputTokens": sent, "outputTokens": received}),
    ]


def test_the_providers_count_is_exact_when_it_is_the_last_word() -> None:  # §20.47
    estimate = estimate_context_tokens_from_messages(exchange("long " * 10_000, 100, 20))
    assert (estimate.tokens, estimate.provider_tokens) == (120, 120)
    assert estimate.serialized_tokens > 10_000


def test_a_message_after_the_count_makes_it_the_largest_of_what_is_known() -> None:  # §20.47
    small, large = exchange("hi", 100_000, 20), exchange("hi", 10, 2)
    assert estimate_context_tokens_from_messages([*small, UserMessage("more")]).tokens == 100_020
    grown = [*large, UserMessage("more " * 10_000)]
    assert estimate_context_tokens_from_messages(grown).tokens == estimate_serialized_context_tokens(grown)


def test_counts_of_earlier_calls_are_never_summed() -> None:  # §20.47
    messages = exchange("a", 1000, 1) + exchange("b", 2000, 2) + exchange("c", 3000, 3)
    assert estimate_context_tokens_from_messages(messages).tokens == 3003


@pytest.mark.parametrize("messages", [exchange("hi", 100, 20), [*exchange("hi", 100, 20), UserMessage("x")]])
def test_the_callers_floor_counts(messages: list[Message]) -> None:
    estimate = estimate_context_tokens_from_messages(messages, usage_floor_tokens=5_000)
    assert (estimate.tokens, estimate.usage_floor_tokens) == (5_000, 5_000)


def test_without_any_count_it_is_a_quarter_of_the_json_text() -> None:
    messages: list[Message] = [UserMessage("hello " * 50), AssistantMessage("ok")]
    assert estimate_serialized_context_tokens(messages) == math.ceil(len(msgspec.json.encode(messages)) / 4)
    assert estimate_context_tokens_from_messages(messages).tokens == estimate_serialized_context_tokens(
        messages
    )
    assert estimate_context_tokens_from_messages([]).tokens == 0


def test_a_tally_grows_to_the_same_estimate_as_counting_anew() -> None:
    messages = [UserMessage("one"), *exchange("two", 50, 5), UserMessage("three " * 100)]
    tally = ContextTally()
    for count, message in enumerate(messages, 1):
        tally.add(message)
        assert tally.estimate(7) == estimate_context_tokens_from_messages(
            messages[:count], usage_floor_tokens=7
        )


def test_an_image_counts_flat_instead_of_by_its_base64_text() -> None:
    estimate = estimate_serialized_context_tokens([UserMessage("look", (ImagePart("A" * 4_000_000),))])
    assert ATTACHMENT_TOKENS <= estimate < ATTACHMENT_TOKENS + 200


def test_counts_that_are_a_sum_over_several_calls_are_no_size_of_the_conversation() -> None:
    first = AssistantMessage("a" * 400, metadata={"inputTokens": 300, "outputTokens": 100})
    searched = AssistantMessage(
        "b" * 400, metadata={"inputTokens": 400_000, "outputTokens": 800, "usageIsSum": True}
    )
    assert 400 <= estimate_context_tokens_from_messages([first, searched]).tokens < 1_000


def test_a_long_signature_counts_flat() -> None:
    signature = "s" * 1_000_000
    drawn = {"images": [{"type": "image_inline", "data": "d" * 1_000_000, "signature": signature}]}
    message = AssistantMessage("", reasoning=(ReasoningBlock("", signature),), metadata=drawn)
    assert estimate_serialized_context_tokens([message]) < 3 * ATTACHMENT_TOKENS + 200


def test_a_picture_that_the_model_made_counts_flat_too() -> None:
    picture = {"type": "image_inline", "data": "A" * 4_000_000, "mimeType": "image/png"}
    linked = {"type": "image_uri", "uri": "https://example.com/cat.png"}
    estimate = estimate_serialized_context_tokens(
        [AssistantMessage("", metadata={"images": [picture, linked]})]
    )
    assert ATTACHMENT_TOKENS <= estimate < ATTACHMENT_TOKENS + 200


@pytest.mark.parametrize(
    "metadata",
    [
        {"inputTokens": 100, "outputTokens": 20},
        {"promptTokens": 100, "completionTokens": 20},
        {"promptTokens": 100, "completionTokens": 20, "totalTokens": 120},
        {"usage": {"inputTokens": 100, "outputTokens": 20}},
        {"usage": {"promptTokens": 100.0, "completionTokens": 20.0, "totalTokens": 120.0}},
        {"usage": '{"promptTokens": 100, "completionTokens": 20}'},
    ],
)
def test_every_spelling_of_usage_is_understood(metadata: dict[str, Json]) -> None:
    assert read_token_usage(AssistantMessage("x", metadata=metadata)) == TokenUsage(100, 20)


def test_cached_and_reasoning_tokens_are_read_too() -> None:
    counts = {"inputTokens": 9, "outputTokens": 8, "reasoningTokens": 5}
    named = {**counts, "cacheReadTokens": 7, "cacheWriteTokens": 6}
    other = {**counts, "cachedTokens": 7, "cacheCreationTokens": 6}
    assert normalize_usage(named) == normalize_usage(other) == TokenUsage(9, 8, 7, 6, 5)


def test_a_total_above_the_sum_is_what_the_provider_counted() -> None:
    usage = normalize_usage({"inputTokens": 100, "outputTokens": 20, "totalTokens": 150})
    assert usage is not None
    assert usage.total_tokens == 150


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"inputTokens": 100},
        {"inputTokens": "100", "outputTokens": "20"},
        {"inputTokens": True, "outputTokens": False},
        {"inputTokens": math.inf, "outputTokens": 1},
        {"inputTokens": math.nan, "outputTokens": 1},
        {"usage": "not json"},
        {"usage": "[1, 2]"},
        {"usage": None},
    ],
)
def test_half_or_broken_figures_are_no_usage(metadata: dict[str, Json]) -> None:
    assert read_token_usage(AssistantMessage("x", metadata=metadata)) is None


@pytest.mark.parametrize(
    ("used", "window", "percentages"),
    [
        (85_000, 200_000, (42.5, 57.5)),
        (0, 200_000, (0.0, 100.0)),
        (1, 30_000, (0.0, 100.0)),
        (1, 3, (33.33, 66.67)),
        (300, 200, (100.0, 0.0)),
        (1, 0, (100.0, 0.0)),
    ],
)
def test_the_state_of_the_window_says_what_is_used_and_what_remains(  # §20.108
    used: int, window: int, percentages: tuple[float, float]
) -> None:
    assert window_state(used, window) == ContextWindowState(window, used, *percentages)


def test_the_state_of_the_window_is_spelled_as_in_the_seeds() -> None:
    assert msgspec.to_builtins(window_state(85_000, 200_000)) == {
        "maxTokens": 200_000,
        "usedTokens": 85_000,
        "usedPercentage": 42.5,
        "remainingPercentage": 57.5,
    }
