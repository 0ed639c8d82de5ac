"""A session for a call of the command: who answers, which session it is, and what it may."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from robota.cli.chosen_provider import chosen_provider
from robota.cli.flags import UsageError
from robota.cli.session_choice import SessionChoice
from robota.core.errors import UnknownNameError
from robota.providers.choice import ProviderArguments, find_named
from robota.sdk.auth import KeyStore
from robota.sdk.places import find_places
from robota.sdk.project import find_keys
from robota.sdk.settings import Settings, load_settings

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.cli.questions import Questioner
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession


@asynccontextmanager
async def opened(
    options: Options,
    remark: Callable[[str], None],
    user: Questioner | None = None,
    choice: SessionChoice | None = None,
    **more: Unpack[MoreOptions],
) -> AsyncIterator[InteractiveSession]:
    """A session as the options want it, with its provider, and with `more` than they can say. Behind the
    block the provider is closed; `remark` hears what the user should know, `user` is asked, if there is one.
    """
    choice = choice or SessionChoice(options)
    if choice.note:
        remark(choice.note)
    options = choice.settle(options)
    settings = read_own_settings(os.environ)
    given = provider_arguments(options, settings, remark, user)
    _check_provider(options, given, settings)
    async with chosen_provider(given, settings.profiles) as chosen:
        if chosen.note:
            remark(chosen.note)
        yield choice.open(options, chosen, **more)


def _check_provider(options: Options, given: ProviderArguments, settings: Settings) -> None:
    """A name on the command line that nothing has is a mistake on the command line."""
    name = options.provider
    if name is not None and "provider" in options.typed and name not in settings.profiles.profiles:
        try:
            find_named(given, name)
        except UnknownNameError as error:
            raise UsageError(str(error)) from error


def provider_arguments(
    options: Options, settings: Settings, remark: Callable[[str], None], user: Questioner | None
) -> ProviderArguments:
    """What decides who answers."""
    base_url = options.base_url
    named = settings.profiles.profiles.get(options.provider or "")
    if named and named.base_url and "provider" in options.typed and "base_url" not in options.typed:
        base_url = None  # an address of the environment is not the one of the profile that was asked for
    return ProviderArguments(
        provider=options.provider,
        model=options.model or settings.own_model,
        base_url=base_url,
        environment=os.environ,
        confirm=None if user is None else user.confirm,
        kept=KeyStore(find_places().robota_home).get,
        report=remark,
    )


def read_own_settings(environment: Mapping[str, str]) -> Settings:
    """The user's settings, which choose who answers; what variables and options say is known already."""
    others = {name: value for name, value in environment.items() if not name.startswith("ROBOTA_")}
    places = find_places()
    settings = load_settings(places, sources=("user",), environment=others, trusted=False)
    return replace(settings, profiles=find_keys(places, settings, []))  # the session tells what is wrong
