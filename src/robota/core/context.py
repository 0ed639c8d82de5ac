"""How much of the context window a conversation fills: one estimator for every guard, meter and compaction.

A provider's own count is exact for the conversation that ends with its reply. Once something follows that
reply, the estimate is the largest of the serialised size, that last count and what the caller knows at least.
Counts of earlier calls are never summed: each already contains the ones before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Json,
    Message,
    Part,
    ReasoningBlock,
    TokenUsage,
)

CONTEXT_HARD_BLOCK_THRESHOLD = 0.95
TOOL_RESULT_BUDGET_THRESHOLD = 0.80
BYTES_PER_TOKEN = 4
"""Of the JSON text in UTF-8: right for English and code, and counts a CJK character as most of a token."""
ATTACHMENT_TOKENS = 1_600
"""What an inline image or file counts as; its base64 text would say a hundred times more."""

USAGE_IS_SUM = "usageIsSum"
"""Metadata of an answer for which the service called its model several times: the counts are right for the
bill, but no size of the conversation.
"""


class ContextWindowState(Struct, frozen=True, rename="camel"):
    """How much of the context window is used."""

    max_tokens: int
    used_tokens: int
    used_percentage: float
    remaining_percentage: float


class ContextEstimate(Struct, frozen=True, kw_only=True):
    """The effective estimate and the candidates it was chosen from."""

    tokens: int
    serialized_tokens: int
    provider_tokens: int
    usage_floor_tokens: int


def window_state(used_tokens: int, max_tokens: int) -> ContextWindowState:
    """How full a window of that size is."""
    used = min(100.0, round(used_tokens / max_tokens * 100, 2)) if max_tokens > 0 else 100.0
    return ContextWindowState(max_tokens, used_tokens, used, round(100.0 - used, 2))


def serialized_size(message: Message) -> int:
    """Bytes of the message's JSON text, attachments and pictures that a model made counted flat."""
    parts: tuple[Part, ...] = getattr(message, "parts", ())
    made = message.metadata.get("images")
    thoughts: tuple[ReasoningBlock, ...] = getattr(message, "reasoning", ())
    if not parts and not made and not thoughts:
        return len(encode(message))
    bulky = [len(part.data) for part in parts if isinstance(part, ImagePart | FilePart)]
    signatures: list[Json] = [thought.signature for thought in thoughts]
    if isinstance(made, list | tuple):
        images = [image for image in made if isinstance(image, dict)]
        bulky += [len(data) for image in images if isinstance(data := image.get("data"), str)]
        signatures += [image.get("signature") for image in images]
    flat = ATTACHMENT_TOKENS * BYTES_PER_TOKEN  # a drawing is signed with as many bytes as it has itself
    bulky += [len(sign) for sign in signatures if isinstance(sign, str) and len(sign) > flat]
    return len(encode(message)) - sum(bulky) + len(bulky) * flat


class ContextTally(Struct, eq=False, gc=False):
    """The running state of the estimator over a growing list of messages; every question is O(1)."""

    _bytes: int = 2  # the brackets of the list
    _count: int = 0
    _provider_tokens: int = 0
    _usage_at: int = 0

    @classmethod
    def of(cls, messages: Iterable[Message]) -> ContextTally:
        tally = cls()
        for message in messages:
            tally.add(message)
        return tally

    def add(self, message: Message) -> None:
        self._bytes += serialized_size(message) + (1 if self._count else 0)
        self._count += 1
        size = read_context_size(message)
        if size is not None:
            self._provider_tokens = size
            self._usage_at = self._count

    def tokens(self, floor: int = 0, *, extra: Iterable[Message] = ()) -> int:
        """The effective estimate alone; with messages that are about to be added."""
        count, size, known = self._count, self._bytes, max(self._provider_tokens, floor)
        for message in extra:
            size += serialized_size(message) + (1 if count else 0)
            count += 1
        exact = self._usage_at == count
        return known if exact or not count else max(-(-size // BYTES_PER_TOKEN), known)

    def estimate(self, usage_floor_tokens: int = 0) -> ContextEstimate:
        return ContextEstimate(
            tokens=self.tokens(usage_floor_tokens),
            serialized_tokens=-(-self._bytes // BYTES_PER_TOKEN) if self._count else 0,
            provider_tokens=self._provider_tokens,
            usage_floor_tokens=usage_floor_tokens,
        )


def estimate_context_tokens_from_messages(
    messages: Iterable[Message], *, usage_floor_tokens: int = 0
) -> ContextEstimate:
    """Roughly how many tokens messages take in a request."""
    return ContextTally.of(messages).estimate(usage_floor_tokens)


def estimate_serialized_context_tokens(messages: Iterable[Message]) -> int:
    """Roughly how many tokens a text takes in a request."""
    return ContextTally.of(messages).estimate().serialized_tokens


def read_context_size(message: Message) -> int | None:
    """The provider's count of the conversation up to this answer, if it is one."""
    # What a tool says about its own tokens is not the size of this conversation.
    if not isinstance(message, AssistantMessage) or message.metadata.get(USAGE_IS_SUM):
        return None
    usage = read_token_usage(message)
    return None if usage is None else usage.total_tokens


def read_token_usage(message: Message) -> TokenUsage | None:
    """The provider's count kept with a message, whichever of the accepted spellings it has."""
    metadata = message.metadata
    return None if not metadata else normalize_usage(metadata)


_CANONICAL = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")
_OWN = frozenset(_CANONICAL[:2])
_OTHER = frozenset(("totalTokens", "cachedTokens", "cacheCreationTokens"))


def normalize_usage(record: Mapping[str, Json]) -> TokenUsage | None:
    """Canonical counts from `inputTokens/outputTokens`, `promptTokens/completionTokens` or `usage`."""
    # Our own spelling is asked for all the time.
    if record.keys() >= _OWN and not record.keys() & _OTHER:
        counts = [record.get(name, 0) for name in _CANONICAL]
        if set(map(type, counts)) == {int}:
            return TokenUsage(*counts)
    sent = _number(record, "inputTokens", "promptTokens")
    received = _number(record, "outputTokens", "completionTokens")
    if sent is not None and received is not None:
        total = _number(record, "totalTokens")
        more = max(0, int(total - sent - received)) if total is not None else 0
        return TokenUsage(
            int(sent),
            int(received) + more,  # a total above the sum is what the provider really counted
            int(_number(record, "cacheReadTokens", "cachedTokens") or 0),
            int(_number(record, "cacheWriteTokens", "cacheCreationTokens") or 0),
            int(_number(record, "reasoningTokens") or 0),
        )
    nested = record.get("usage")
    if isinstance(nested, str):
        try:
            nested = msgspec.json.decode(nested)
        except msgspec.DecodeError:
            return None
    return normalize_usage(nested) if isinstance(nested, Mapping) else None


def _number(record: Mapping[str, Json], *keys: str) -> float | None:
    for key in keys:
        value = record.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return value
    return None
