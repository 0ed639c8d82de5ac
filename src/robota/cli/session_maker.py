"""Sessions for whoever holds several, a transport or a server: one provider answers in all of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from robota.cli.chosen_provider import chosen_provider
from robota.cli.opening import provider_arguments, read_own_settings
from robota.cli.session_choice import open_another
from robota.core.provider_definition import selectable_models
from robota.providers.definitions import find_definition
from robota.sdk.kept_sessions import create_project_session_store
from robota.transports.held import Held
from robota.transports.session_maker import OfferedModel

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.providers.choice import ChosenProvider
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore
    from robota.transports.session_maker import SessionWish


class CommandSessions:
    """The `SessionMaker` of a command line. The provider is chosen with the first session."""

    def __init__(self, options: Options, remark: Callable[[str], None]) -> None:
        self._options = options
        self._remark = remark
        self._held = [Held(self._choose)]
        """Who answers, behind those who did."""
        self.store: SessionStore | None = None if options.no_save else create_project_session_store()

    @asynccontextmanager
    async def _choose(self) -> AsyncIterator[ChosenProvider]:
        settings = read_own_settings(os.environ)
        given = provider_arguments(self._options, settings, self._remark, None)
        async with chosen_provider(given, settings.profiles) as chosen:
            if chosen.note:
                self._remark(chosen.note)
            yield chosen

    async def chosen(self) -> ChosenProvider:
        """Who answers, chosen if nobody has yet."""
        return await self._held[-1].get()

    async def open(self, wish: SessionWish, /, **more: Unpack[MoreOptions]) -> InteractiveSession:
        return await open_another(self._options, await self.chosen(), wish, **more)

    def models(self) -> Sequence[OfferedModel]:
        chosen = self._held[-1].now
        if chosen is None:
            return ()
        definition = find_definition(chosen.provider.name)
        entries = () if definition is None else selectable_models(definition.model_catalog)
        titles = {chosen.model: "", **{entry.id: entry.display_name or "" for entry in entries}}
        return [OfferedModel(id, title) for id, title in titles.items()]

    async def choose_provider_again(self) -> None:
        self._held.append(Held(self._choose))
        await self._held[-1].get()

    async def aclose(self) -> None:
        """Let go of the providers, when all sessions are over."""
        for held in reversed(self._held):
            await held.close()
