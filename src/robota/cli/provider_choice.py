"""Which model answers: the one that was named, the one a key is there for, else the scripted offline model.

Never a silent substitute: `note` says which one it is when nobody chose it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.providers.openai_compatible import OpenAICompatibleProvider

OPENAI_URL = "https://api.openai.com/v1"
OFFLINE_NOTE = (
    "No key and no base URL: this is the scripted offline model, which shows a turn but cannot think.\n"
    "Set OPENAI_API_KEY and --model, or name a service with --base-url and --model."
)


class ChosenProvider(Struct, frozen=True):
    provider: Provider
    model: str
    note: str | None = None
    context_window: int | None = None
    """Where the shipped facts know nothing of the model."""


@asynccontextmanager
async def chosen_provider(
    *, model: str | None, base_url: str | None, environment: Mapping[str, str]
) -> AsyncIterator[ChosenProvider]:
    """The provider for this call, open while the block runs."""
    key = environment.get("OPENAI_API_KEY", "").strip() or None
    named = (base_url or environment.get("OPENAI_BASE_URL") or "").strip()
    url = named or (OPENAI_URL if key else None)
    if url is None and model:
        raise ConfigurationError(
            f"There is no service to ask for the model {model!r}: set OPENAI_API_KEY or give --base-url."
        )
    if url is None:
        from robota.cli.offline import CONTEXT_WINDOW, MODEL, offline_model  # noqa: PLC0415 - a server nobody else needs

        async with (
            offline_model() as offline_url,
            OpenAICompatibleProvider(base_url=offline_url, model=MODEL, name="offline") as provider,
        ):
            yield ChosenProvider(provider, MODEL, OFFLINE_NOTE, CONTEXT_WINDOW)
        return
    if not model:
        raise ConfigurationError(f"No model is named for {url}: give one with --model or ROBOTA_MODEL.")
    async with OpenAICompatibleProvider(api_key=key, base_url=url, model=model) as provider:
        yield ChosenProvider(provider, model)
