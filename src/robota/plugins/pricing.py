"""What tokens cost, for plugins that count money."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, TokenUsage
from robota.core.models import ModelPrice, find_model_price

MILLION = 1_000_000


def read_rates(plugin: str, rates: Mapping[str, Json] | None) -> dict[str, ModelPrice]:
    """Model to its prices per million tokens, as values or as objects of a settings file."""
    try:
        return {model: msgspec.convert(rate, ModelPrice) for model, rate in (rates or {}).items()}
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"The rates of the plugin {plugin!r} are model to {{'input': dollars, 'output': dollars}} per "
            f"million tokens: {error}."
        ) from error


def find_cost(usage: TokenUsage, model: str, rates: Mapping[str, ModelPrice]) -> float | None:
    """US dollars, `None` for a model whose prices nobody knows."""
    price = rates.get(model) or find_model_price(model)
    if price is None:
        return None
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    fresh = max(0, usage.input_tokens - read - written)
    read_price = price.input if price.cache_read is None else price.cache_read
    write_price = price.input if price.cache_write is None else price.cache_write
    sent = fresh * price.input + read * read_price + written * write_price
    return (sent + usage.output_tokens * price.output) / MILLION
