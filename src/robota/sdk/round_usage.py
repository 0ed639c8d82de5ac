"""What each model call of a conversation used, by the replies that it has."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from robota.core.context import read_token_usage
from robota.core.messages import AssistantMessage, HistoryEntry
from robota.sessions.usage.ledger import PICO, UsageLedger

MOST_ROUNDS = 500


class RoundUsage(Struct, frozen=True, kw_only=True, rename="camel"):
    """One model call."""

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = None
    """`None` when no price is known."""


def list_rounds(
    history: Iterable[HistoryEntry], ledger: UsageLedger, model: str = "", most: int = MOST_ROUNDS
) -> list[RoundUsage]:
    """The latest rounds, oldest first; `model` is the one that is asked, where a reply does not name another.
    Those of subagents and summaries are in the sums only, and so is a reply whose service counts nothing."""
    found = []
    for entry in history:
        message: object = entry.data
        if not isinstance(message, AssistantMessage) or (usage := read_token_usage(message)) is None:
            continue
        answered = message.metadata.get("model")
        name = answered if isinstance(answered, str) and answered else model
        rates = ledger.rates(name) or ledger.rates(model)
        found.append(
            RoundUsage(
                model=name,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cost_usd=None if rates is None else rates.cost(usage) / PICO,
            )
        )
    return found[-most:]
