"""Which session a call of the command works in: a new one, the last one here, or the one that was named."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from robota.core.errors import SessionNotFoundError
from robota.providers.definitions import find_definition
from robota.sdk.assembly import require_mode
from robota.sdk.interactive import InteractiveSession
from robota.sdk.kept_sessions import (
    SessionStore,
    create_project_session_store,
    find_last_session,
    find_session,
    restore_session,
)
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.core.messages import JsonObject
    from robota.core.permissions import PermissionMode
    from robota.providers.choice import ChosenProvider
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.places import Places
    from robota.sdk.project import ProjectOptions
    from robota.transports.session_maker import SessionWish

BY_ADDRESS = ("openai-compatible", "local-server")
"""Types of provider that an address alone leads to."""


class SessionChoice:
    """Where sessions are kept, and the one to go on with, if there is one."""

    __slots__ = ("chosen", "note", "resumed", "start", "store")

    def __init__(self, options: Options) -> None:
        self.store = None if options.no_save else create_project_session_store()
        self.chosen: ChosenProvider | None = None
        """Who answers, once the session is open."""
        self.note = ""
        """What the user should know about the choice."""
        self.resumed = None if self.store is None else self._choose(options, self.store)
        """The id of the session to go on with."""
        self.start = None
        if self.resumed is not None:
            self.start = restore_session(self.store, self.resumed, fork=options.fork)

    def _choose(self, options: Options, store: SessionStore) -> str | None:
        places = find_places()
        if options.resume:
            return find_session_or_transcript(store, options.resume, places)
        last = find_last_session(store, places.cwd) if options.continue_last else None
        if options.continue_last and last is None:
            self.note = f"There is no session to continue in {places.cwd}: this is a new one."
        return last

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
        cwd: str | None = None,
        mode: PermissionMode | None = None,
        **more: Unpack[MoreOptions],
    ) -> InteractiveSession:
        """The session, by default in the working directory, with `more` than a command line can say."""
        self.chosen = chosen
        given = gather_more(options, chosen)
        if self.start is not None:
            given["start"] = self.start
        servers = {**given.get("mcp_servers", {}), **more.get("mcp_servers", {})}
        agents = {**given.get("agents", {}), **more.get("agents", {})}
        plugin_dirs = (*given.get("plugin_dirs", ()), *more.get("plugin_dirs", ()))
        given.update(more)
        given.update({"mcp_servers": servers, "agents": agents, "plugin_dirs": plugin_dirs})
        session = InteractiveSession(
            provider=chosen.provider,
            cwd=cwd,
            model=chosen.model,
            permission_mode=mode,
            session_store=self.store,
            session_name=options.name,
            resume_session_id=self.resumed,
            fork_session=options.fork and self.resumed is not None,
            trust_project=True if options.trust else None,
            **given,
        )
        asked = options.permission_prompt_tool
        if asked not in (None, "stdio") and options.mode != "dontAsk":
            from robota.sdk.mcp.permission_tool import PermissionTool  # noqa: PLC0415 - few name one

            PermissionTool(session, asked)
        return session


async def open_another(
    options: Options, chosen: ChosenProvider, wish: SessionWish, **more: Unpack[MoreOptions]
) -> InteractiveSession:
    """A session as somebody wishes, that the same provider answers in."""
    mode = None if wish.permission_mode is None else require_mode(wish.permission_mode)
    options = replace(
        options,
        resume=wish.resume,
        continue_last=False,
        fork=wish.fork,
        name=wish.name,
        session_id=None,
        add_dirs=(*options.add_dirs, *wish.add_dirs),
    )
    choice = await asyncio.to_thread(SessionChoice, options)
    start = choice.start
    known = start.model if start is not None and start.provider == chosen.provider.name else None
    chosen = replace(chosen, model=wish.model or known or chosen.model)
    cwd = wish.cwd or (None if start is None else start.cwd) or None
    return choice.open(options, chosen, cwd, mode, **more)


def find_session_or_transcript(store: SessionStore, wanted: str, places: Places) -> str:
    """The id of a session; one that Claude Code kept for this directory is taken into the store first."""
    try:
        return find_session(store, wanted, places.cwd)
    except SessionNotFoundError:
        from robota.sdk.session_import import adopt_transcript  # noqa: PLC0415 - rare

        if not adopt_transcript(store, places, wanted):
            raise
        return wanted


def gather_more(options: Options, chosen: ChosenProvider) -> MoreOptions:
    """What the command line says, in the words of the SDK."""
    more: MoreOptions = {
        "max_turns": options.max_turns,
        "secrets": chosen.secrets,
        "settings": as_settings(options),
        "agents": options.agents,
        "plugin_dirs": options.plugin_dirs,
        "more_settings": options.settings,
        "mcp_servers": options.servers,
        "strict_mcp_config": options.strict_mcp,
    }
    if window := options.context_window or chosen.context_window:
        more["context_window"] = window
    if options.session_id is not None:
        more["session_id"] = options.session_id
    if options.setting_sources is not None:
        more["setting_sources"] = options.setting_sources
    if options.tools is not None:
        more["builtin_tools"] = options.tools
    if options.agent is not None:
        more["agent"] = options.agent
    if options.system_prompt is not None:
        more["system_prompt"] = options.system_prompt
    if options.append_system_prompt is not None:
        more["append_system_prompt"] = options.append_system_prompt
    return more


def describe_checkout(options: Options, places: Places) -> ProjectOptions:
    """How the files of a directory are read for what comes before a session there."""
    from robota.sdk.project import ProjectOptions  # noqa: PLC0415 - a session reads them itself

    return ProjectOptions(
        places=places,
        trust=options.trust or None,
        sources=options.setting_sources,
        flags=as_settings(options),
        given=options.settings,
    )


def as_settings(options: Options) -> JsonObject:
    """What the command line says, in the words of settings files."""
    permissions: JsonObject = {
        "allow": list(options.allow),
        "deny": list(options.deny),
        "defaultMode": options.mode,
        "additionalDirectories": list(options.add_dirs),
    }
    sandbox: JsonObject = {}
    if options.sandbox is not None:
        sandbox = {"enabled": options.sandbox != "off", "failIfUnavailable": options.sandbox == "required"}
    if options.auto_allow:
        sandbox["autoAllowBashIfSandboxed"] = True
    settings: JsonObject = {
        "permissions": _given(permissions),
        "passEnv": list(options.pass_env),
        "sandbox": sandbox,
        "effortLevel": options.effort,
        "language": options.language,
    }
    if options.max_budget_usd is not None:
        settings["budget"] = {"maxCostUsd": options.max_budget_usd}
    return _given(settings)


def _given(settings: JsonObject) -> JsonObject:
    """What somebody has said: the rest would be shown as a setting of the command line."""
    return {name: value for name, value in settings.items() if value not in (None, [], {})}
