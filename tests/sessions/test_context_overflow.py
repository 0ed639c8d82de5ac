from __future__ import annotations

import pytest

from robota.core.errors import (
    AuthenticationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    wrap_provider_error,
)
from robota.providers.wire.errors import Refusal, describe_refusal
from robota.sessions.compaction.summarizer import is_context_overflow

SAID = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9100 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "Please reduce the length of the messages or completion.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "the request exceeds the available context size, try increasing it",
    "request (5012 tokens) exceeds the available context size (4096 tokens)",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "Trying to keep the first 9000 tokens when context the overflows (n_ctx: 4096)",
    "the input length exceeds the context length",
    "prompt too long; exceeded max context length by 1200 tokens",
    "The decoder prompt (length 40000) is longer than the maximum model length of 32768.",
    "The input (70000 tokens) is longer than the model's context length (65536 tokens).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "prompt token count of 130000 exceeds the limit of 128000",
    "Your request exceeded model token limit: 262144 (requested: 566084)",
    "invalid params, context window exceeds limit",
    "Prompt contains 150000 tokens, too large for model with 131072 maximum context length",
    "Prompt exceeds max length",
    "Range of input length should be [1, 98304]",
    "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
]


def refusal(status: int, error: str) -> Refusal:
    return Refusal(status, {}, error.encode(), "m", "http://127.0.0.1/v1/chat/completions")


@pytest.mark.parametrize("said", SAID)
def test_the_words_of_a_service_for_a_request_that_is_too_long_are_known(said: str) -> None:
    body = f'{{"error":{{"message":"{said}","type":"invalid_request_error"}}}}'
    assert is_context_overflow(describe_refusal(refusal(400, body), "acme", ()))


@pytest.mark.parametrize(
    "body",
    ['{"error":{"code":"context_length_exceeded","message":"Zu lang."}}', '{"error":{"code":"context"}}'],
)
def test_a_code_is_enough(body: str) -> None:
    assert is_context_overflow(describe_refusal(refusal(400, body), "acme", ()))


def test_a_request_too_large_for_the_wire_is_one_too() -> None:
    assert is_context_overflow(describe_refusal(refusal(413, ""), "acme", ()))


def test_an_overflow_told_in_the_middle_of_a_reply_or_by_foreign_code_is_one_too() -> None:
    assert is_context_overflow(ProviderError("acme broke off its reply (prompt is too long); try again."))
    assert is_context_overflow(wrap_provider_error(ValueError("prompt is too long"), "acme"))
    assert is_context_overflow(ValueError("Prompt is too long"))


@pytest.mark.parametrize(
    "error",
    [
        None,
        ProviderError("acme rejected the request (400: max_tokens is too large)", status=400),
        ProviderError("acme failed (503: overloaded)", status=503),
        RateLimitError("Request too large: maximum context length counted per minute", status=429),
        AuthenticationError("The key may not send more than the maximum context length", status=403),
        NetworkError("The connection broke while sending n_ctx"),
        RuntimeError("no"),
    ],
)
def test_other_failures_are_not(error: Exception | None) -> None:
    assert not is_context_overflow(error)
