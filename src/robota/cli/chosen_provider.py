"""The provider of one call of the command: the one that was chosen, else the scripted offline model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from robota.providers.choice import NOTHING, ChosenProvider, ProviderArguments, find_choice, open_choice

OFFLINE_NOTE = (
    "No key, no base URL and no local model: this is the scripted offline model, which shows a turn but "
    f"cannot think.\n{NOTHING}"
)


@asynccontextmanager
async def chosen_provider(given: ProviderArguments) -> AsyncIterator[ChosenProvider]:
    """The provider for this call, open while the block runs."""
    choice = await find_choice(given)
    async with AsyncExitStack() as stack:
        if choice is None or choice.definition.type == "scripted":
            yield await stack.enter_async_context(_offline(given, None if choice else OFFLINE_NOTE))
            return
        chosen = await open_choice(choice, given)
        if isinstance(chosen.provider, AbstractAsyncContextManager):
            await stack.enter_async_context(chosen.provider)
        yield chosen


@asynccontextmanager
async def _offline(given: ProviderArguments, note: str | None) -> AsyncIterator[ChosenProvider]:
    from robota.cli.offline import CONTEXT_WINDOW, MODEL, offline_model  # noqa: PLC0415 - a server nobody else needs
    from robota.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    async with (
        offline_model() as url,
        OpenAICompatibleProvider(base_url=url, model=MODEL, name="offline") as provider,
    ):
        yield ChosenProvider(provider, MODEL, note, CONTEXT_WINDOW, given.secrets())
