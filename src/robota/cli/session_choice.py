"""Which session a call of the command works in: a new one, the last one here, or the one that was named."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.providers.definitions import find_definition
from robota.sdk.assembly import (
    PermissionHandler,
    PermissionRules,
    Session,
    SessionStore,
    create_project_session_store,
    create_session,
    restore_session,
    working_directory,
)

if TYPE_CHECKING:
    from robota.cli.main import Options
    from robota.providers.choice import ChosenProvider


BY_ADDRESS = ("openai-compatible", "local-server")
"""Types of provider that an address alone leads to."""


class SessionChoice:
    """Where sessions are kept, and the one to go on with, if there is one."""

    __slots__ = ("start", "store")

    def __init__(self, options: Options, on_problem: Callable[[str], None]) -> None:
        self.store = None if options.no_save else create_project_session_store()
        resume = options.resume
        if options.continue_last and resume is None:
            resume = last_session(self.store, working_directory())
        elif resume is not None and self.store is None:
            raise ConfigurationError("A session cannot be resumed with --no-save: leave one of the two out.")
        self.start = None if resume is None else restore_session(self.store, resume, on_problem)

    def settle(self, options: Options) -> Options:
        """The options with the model the session was left with, which counts more than the environment and
        less than the command line."""
        start, typed = self.start, options.typed
        if start is None or not start.model or "model" in typed:
            return options
        by_address = options.provider is None and options.base_url and start.provider in BY_ADDRESS
        if by_address or "base_url" in typed or options.provider == start.provider:
            return replace(options, model=start.model)
        if "provider" in typed or find_definition(start.provider) is None:
            return options
        return replace(options, provider=start.provider, model=start.model, base_url=None)

    def open(
        self,
        options: Options,
        chosen: ChosenProvider,
        *,
        approve: PermissionHandler | None,
    ) -> Session:
        return create_session(
            chosen.provider,
            model=chosen.model,
            rules=PermissionRules(mode=options.mode, allow=options.allow, deny=options.deny),
            approve=approve,
            max_turns=options.max_turns,
            context_window=options.context_window or chosen.context_window,
            store=self.store,
            resume=self.start,
            secrets=chosen.secrets,
            keep_variables=options.pass_env,
            sandbox=options.sandbox,
            auto_allow_bash_if_sandboxed=options.auto_allow,
        )


def last_session(store: SessionStore | None, cwd: str) -> str:
    """The id of the session in this directory that was used last."""
    known = [] if store is None else store.list(cwd=cwd)
    for summary in known:
        if not summary.problem:
            return summary.id
    raise ConfigurationError(f"There is no session to continue in {cwd}: start one without --continue.")
