"""The provider of one call of the command: the one that was chosen, else the scripted offline model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from robota.core.provider_definition import ProviderConfig, ProviderDefinition
from robota.providers.catalog import find_owner
from robota.providers.choice import (
    NOTHING,
    Choice,
    ChosenProvider,
    ProviderArguments,
    find_choice,
    find_named,
    make_profile,
    open_choice,
)
from robota.providers.definitions import all_definitions, find_definition
from robota.sdk.provider_profiles import ProviderProfiles, prepare_profile

OFFLINE_NOTE = (
    "No key, no base URL and no local model: this is the scripted offline model, which shows a turn but "
    f"cannot think.\n{NOTHING}"
)


@asynccontextmanager
async def chosen_provider(
    given: ProviderArguments, profiles: ProviderProfiles | None = None
) -> AsyncIterator[ChosenProvider]:
    """The provider for this call, open while the block runs; a profile of the settings comes first."""
    choice = None if profiles is None else find_profile(given, profiles)
    choice = await find_choice(given) if choice is None else choice
    async with AsyncExitStack() as stack:
        if choice is None or choice.definition.type == "scripted":
            yield await stack.enter_async_context(_offline(given, None if choice else OFFLINE_NOTE))
            return
        chosen = await open_choice(choice, given)
        if isinstance(chosen.provider, AbstractAsyncContextManager):
            await stack.enter_async_context(chosen.provider)
        yield chosen


def find_profile(given: ProviderArguments, profiles: ProviderProfiles) -> Choice | None:
    """The profile that was named, by its name or its type, else the current one if nothing speaks against it:
    an address, another provider, or a model that another service is known for."""
    name = profiles.current
    if given.base_url:
        named = given.provider or ""
        if named not in profiles.profiles or find_definition(named) is not None:
            return None
        profiles = profiles.update(named, "flags", base_url=given.base_url)
    if given.provider in profiles.profiles:
        name = given.provider
    elif given.provider is not None and (name is None or profiles.get(name).type != given.provider):
        return None
    if name is None:
        return None
    definition, config = prepare_profile(profiles, all_definitions(), name)
    if given.model:
        if given.provider is None and find_owner(given.model) not in (None, definition.type):
            return None
        config = replace(config, model=given.model)
    return Choice(definition, config)


def find_service(
    given: ProviderArguments, profiles: ProviderProfiles, name: str, *, timeout: float
) -> tuple[ProviderDefinition, ProviderConfig]:
    """What makes the service of that name, a profile or a type, and what it is made of."""
    choice = find_profile(replace(given, provider=name), profiles) if name in profiles.profiles else None
    if choice is not None:
        return choice.definition, replace(choice.config, timeout=timeout)
    definition = find_named(given, name)
    return definition, make_profile(given, definition, timeout=timeout)


@asynccontextmanager
async def _offline(given: ProviderArguments, note: str | None) -> AsyncIterator[ChosenProvider]:
    from robota.cli.offline import CONTEXT_WINDOW, MODEL, offline_model  # noqa: PLC0415 - a server nobody else needs
    from robota.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    async with (
        offline_model() as url,
        OpenAICompatibleProvider(base_url=url, model=MODEL, name="offline") as provider,
    ):
        yield ChosenProvider(provider, MODEL, note, CONTEXT_WINDOW, given.secrets())
