"""Which session a call of the command works in: a new one, the last one here, or the one that was named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.providers.definitions import find_definition
from robota.sdk.interactive import InteractiveSession
from robota.sdk.kept_sessions import SessionStore, create_project_session_store, restore_session
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.cli.main import Options
    from robota.core.messages import JsonObject
    from robota.providers.choice import ChosenProvider
    from robota.sdk import PermissionHandler
    from robota.sdk.assembly import MoreOptions


BY_ADDRESS = ("openai-compatible", "local-server")
"""Types of provider that an address alone leads to."""


class SessionChoice:
    """Where sessions are kept, and the one to go on with, if there is one."""

    __slots__ = ("start", "store")

    def __init__(self, options: Options) -> None:
        self.store = None if options.no_save else create_project_session_store()
        resume = options.resume
        if options.continue_last and resume is None:
            resume = last_session(self.store, find_places().cwd)
        elif resume is not None and self.store is None:
            raise ConfigurationError("A session cannot be resumed with --no-save: leave one of the two out.")
        self.start = None if resume is None else restore_session(self.store, resume)

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
        self, options: Options, chosen: ChosenProvider, *, approve: PermissionHandler | None
    ) -> InteractiveSession:
        more: MoreOptions = {
            "max_turns": options.max_turns,
            "secrets": chosen.secrets,
            "settings": as_settings(options),
        }
        if window := options.context_window or chosen.context_window:
            more["context_window"] = window
        if self.start is not None:
            more["start"] = self.start
        return InteractiveSession(
            provider=chosen.provider,
            model=chosen.model,
            permission_mode=options.mode if "mode" in options.typed else None,
            permission_handler=approve,
            session_store=self.store,
            resume_session_id=None if self.start is None else self.start.session_id,
            trust_project=True if options.trust else None,
            **more,
        )


def as_settings(options: Options) -> JsonObject:
    """What the command line says, in the words of settings files."""
    sandbox: JsonObject = {}
    if "sandbox" in options.typed:
        sandbox = {"enabled": options.sandbox != "off", "failIfUnavailable": options.sandbox == "required"}
    if options.auto_allow:
        sandbox["autoAllowBashIfSandboxed"] = True
    settings: JsonObject = {
        "permissions": {"allow": list(options.allow), "deny": list(options.deny)},
        "passEnv": list(options.pass_env),
    }
    return settings | ({"sandbox": sandbox} if sandbox else {})


def last_session(store: SessionStore | None, cwd: str) -> str:
    """The id of the session in this directory that was used last."""
    known = [] if store is None else store.list(cwd=cwd)
    for summary in known:
        if not summary.problem:
            return summary.id
    raise ConfigurationError(f"There is no session to continue in {cwd}: start one without --continue.")
