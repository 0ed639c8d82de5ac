"""Puts a session together from what was asked for and what the files of the project say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from robota.core.bus import EventBus
from robota.core.errors import ConfigurationError
from robota.core.given import check_count, require_kind, require_texts, suggest
from robota.core.permissions.modes import CLASS_POLICY, PermissionMode
from robota.core.ports import new_uuid
from robota.core.provider import ModelSettings, NativeWebTools, Provider, get_provider_capabilities
from robota.core.retry import RetryingProvider
from robota.core.robota import RunLimits
from robota.core.tool import Tool, Toolset, name_tools
from robota.sdk.agents.subagent import ToolChoice, find_main_agent
from robota.sdk.context.active_references import CONTEXT_REFERENCES
from robota.sdk.context.session_context import LANGUAGE, SessionContext
from robota.sdk.context.system_prompt import build_system_prompt
from robota.sdk.hook_executors import model_executors
from robota.sdk.kept_sessions import require_session, restore_session
from robota.sdk.kit import Kit
from robota.sdk.live_project import LiveProject
from robota.sdk.mcp.found import find_secrets
from robota.sdk.mcp.hook import McpToolExecutor
from robota.sdk.places import Places
from robota.sdk.project import Project, ProjectOptions
from robota.sdk.prompt_parts import add_section, find_parts, find_project_parts
from robota.sdk.settings.model import choose_model
from robota.sdk.settings.settings import Settings
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.parts import check_store
from robota.sessions.questions import Questions
from robota.sessions.redaction import Redactor
from robota.sessions.session import Session
from robota.sessions.store.session_record import check_session_id
from robota.sessions.store.session_store import SessionStore, SessionStorePort
from robota.sessions.usage.budget import Budget

if TYPE_CHECKING:
    from robota.core.plugin import Plugin
    from robota.sdk.background.watchdog import WatchdogLimits
    from robota.sdk.mcp.servers import OpenRelay
    from robota.sessions.start import SessionStart
    from robota.tools.builtins.bash import Terminal
    from robota.tools.files.change import EditorFiles

T = TypeVar("T")
SwitchMode: TypeAlias = Callable[[str | None], Awaitable[None]]

IDLE_SECONDS = 600.0
"""Longer than any model thinks without a word, and than a small machine reads a long prompt."""


class MoreOptions(TypedDict, total=False):
    """What fewer sessions need to say."""

    max_turns: int
    """Model calls per prompt; 0 for no limit."""
    budget: Budget
    tools: Iterable[Tool]
    """Besides the built-in ones."""
    plugins: Sequence[Plugin]
    """Besides those of the settings."""
    builtin_tools: Collection[str]
    """The only built-in tools there are; without it all of them."""
    agent: str
    """The agent that the session itself works as: with its instructions and its tools."""
    agents: Mapping[str, Mapping[str, Any]]
    """Name to what the head of an agent's file says, with its instructions as `prompt`; above all files."""
    skills: Collection[str]
    """The only skills there are; without it all of them."""
    mcp_servers: Mapping[str, Any]
    """MCP servers besides those of files, as `.mcp.json` has them: name to how it is reached."""
    strict_mcp_config: bool
    """Whether those are the only ones."""
    mcp_relay: OpenRelay
    """Reaches the servers of the type `sdk`, which live in the program around the session."""
    plugin_dirs: Sequence[str]
    """Directories of bundle plugins for this session, besides the installed ones."""
    session_id: str
    """The id of the new session, by default a new one."""
    system_prompt: str
    """In the place of the one that is put together from the project's files; empty for none."""
    append_system_prompt: str
    watchdog: WatchdogLimits
    """What ends agents in the background that hang or babble."""
    allow_outside_imports: bool
    """Let instruction files of the project import others from outside it."""
    settings: Mapping[str, Any]
    """Keys of settings files, above all of them, as a command line has them."""
    more_settings: str
    """The same as a text of JSON or the path of a file; `settings` counts more."""
    setting_sources: Iterable[str]
    """`user`, `project`, `local`: the settings files that count; without it all of them."""
    environment: Mapping[str, str]
    """In the place of the process's own: where homes are, and which settings are variables."""
    context_window: int
    """Tokens, for a model of which nothing is known."""
    secrets: tuple[str, ...]
    """Values that must be written nowhere, besides the provider's own keys."""
    editor: EditorFiles
    """Where Read, Edit and Write find texts that are not saved yet."""
    terminal: Terminal
    """Where commands run, in the place of a process of ours."""
    start: SessionStart
    """The session to go on with as `restore_session` found it, so that it is not read again."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What whoever makes a session asks for; what they leave out comes from settings, or is usual."""

    provider: Provider
    places: Places
    session_id: str
    model: str | None = None
    permission_mode: PermissionMode | None = None
    store: SessionStorePort | None = None
    name: str | None = None
    resume: str | None = None
    """The session to go on with, or to fork."""
    fork: bool = False
    trust: bool | None = None
    more: MoreOptions

    def __post_init__(self) -> None:
        """What cannot work is refused where it is given, not at the first prompt."""
        given: Mapping[str, Any] = self.more
        check_store(self.store)
        if self.permission_mode is not None:
            require_mode(self.permission_mode)
        if not isinstance(tools := given.get("tools", ()), Iterator):
            name_tools(tools)
        for name in ("builtin_tools", "plugin_dirs", "secrets", "setting_sources", "skills"):
            if isinstance(given.get(name), str):
                require_texts(name, given[name])
        require_kind("plugins", given.get("plugins", ()), list, tuple)
        require_kind("model", self.model, str, type(None))
        require_kind("settings", given.get("settings") or {}, Mapping)
        check_count("max_turns", given.get("max_turns", 0))
        require_kind("budget", given.get("budget"), Budget, type(None))


class Assembly:
    """Makes one session of what is wanted and what the project's files say."""

    __slots__ = (
        "_events",
        "_kit",
        "_mode_before",
        "_questions",
        "_session",
        "_start",
        "given_name",
        "live",
        "wanted",
    )

    def __init__(self, wanted: Wanted, events: EventBus, questions: Questions) -> None:
        self.wanted = wanted
        self._events = events
        self._questions = questions
        self.live = LiveProject(describe_reading(wanted))
        self._kit: Kit | None = None
        self._mode_before: PermissionMode = "default"
        """What plan mode takes the place of."""
        self._session: Session | None = None
        self._start = wanted.more.get("start")
        self.given_name = wanted.name
        if wanted.resume is not None:
            require_session(wanted.store, wanted.resume)

    @property
    def start(self) -> SessionStart | None:
        """The earlier session to go on with, read when it is first asked for."""
        wanted = self.wanted
        if self._start is None and wanted.resume is not None:
            self._start = restore_session(wanted.store, wanted.resume, fork=wanted.fork)
        return self._start

    @property
    def name(self) -> str | None:
        """What the user calls the session, or called it when it was left."""
        start = self.start if self.given_name is None else None
        return self.given_name if start is None else start.name

    @property
    def project(self) -> Project:
        return require_made(self.live.project)

    @property
    def kit(self) -> Kit:
        return self._kit or require_made(self._kit)

    async def make(self, switch_mode: SwitchMode, tools: Sequence[Tool]) -> Session:
        """Read the files in a thread of their own, so that the loop goes on, and put everything together."""
        project = await asyncio.to_thread(self._read)  # anyio takes a tenth of a start
        session = self._put_together(project, switch_mode, tools)
        if session.agent.plugins:
            from robota.sdk.agent_plugins import Plugins  # noqa: PLC0415 - few have some

            await session.own(Plugins(session.agent))  # first: what is owned later is closed before
        await self.kit.enter(session)
        if self._start is not None:
            from robota.sdk.agents.past import tell_of_cut_agents  # noqa: PLC0415 - for those who go on

            await tell_of_cut_agents(session, self._start)
        for problem in () if self._start is None else self._start.problems:
            session.log.notice(str(problem))
        self.live.bind(session)
        return session

    def _read(self) -> Project:
        assert self.start is None or self.wanted.resume is not None
        return self.live.read()

    def _put_together(self, project: Project, switch_mode: SwitchMode, more_tools: Sequence[Tool]) -> Session:
        wanted, more, start = self.wanted, self.wanted.more, self._start
        agent = find_main_agent(project.agents.definitions, more.get("agent"))
        model = wanted.model or (start and start.model)
        if not model:
            model, problem = choose_model(project.settings, wanted.provider)
            found = () if problem is None else (problem,)
            project = replace(project, problems=(*project.problems, *found))
        plugins = tuple(more.get("plugins", ()))
        if project.settings.get("plugins"):
            from robota.sdk.agent_plugins import make_plugins  # noqa: PLC0415 - few have some

            plugins, unusable = make_plugins(project.settings, wanted.places, plugins)
            project = replace(project, problems=(*project.problems, *unusable))
        mode = check_mode(wanted.permission_mode or project.settings.rules.mode, project.settings)
        self._kit = kit = Kit(project, mode, start, editor=more.get("editor"), terminal=more.get("terminal"))
        kit.watchdog = more.get("watchdog", kit.watchdog)
        kit.relay = more.get("mcp_relay")
        choice = ToolChoice(more.get("builtin_tools"), project.settings.rules.deny, agent)
        kit.servers.accepts = choice.accepts
        tools = choice.pick(
            [*kit.make_tools(switch_mode), *more_tools],
            (*more.get("tools", ()), *kit.bundle_tools.make(project.bundles)),
        )
        settings = self.live.fit(project, {tool.name for tool in tools}).settings
        kit.take(self.project)
        self.live.listeners.append(kit.take)
        kit.skills.reload = self.live.reread
        options = self._gather_options(kit, settings, plugins)
        parts = find_parts(
            self.project,
            tools,
            kit.rules.rules.mode,
            options.native_web_tools,
            options.ports,
            whole=more.get("system_prompt") or (agent.system_prompt if agent else more.get("system_prompt")),
            additions=add_section(more.get("append_system_prompt")),
        )
        session = Session(
            provider=with_retries(wanted.provider),
            model=model,
            tools=tools,
            system_message=build_system_prompt(parts).text or None,
            cwd=wanted.places.cwd,
            store=wanted.store,
            session_id=wanted.session_id,
            start=start,
            options=options,
        )
        if hidden := choice.hide(tools):
            session.agent.toolset = Toolset.of(tools, hidden)
        for field, kept in start.kept.items() if wanted.fork and start is not None else ():
            if field in (CONTEXT_REFERENCES, LANGUAGE):
                session.kept.put(field, kept)
        self._session = session
        self.live.listeners.append(lambda new: kit.bundle_tools.renew(new.bundles, session.agent))
        kit.context = SessionContext(session, self.project.context, parts)
        self.live.listeners.append(lambda new: kit.context.reload(new.context, **find_project_parts(new)))
        return session

    def _gather_options(self, kit: Kit, settings: Settings, plugins: tuple[Plugin, ...]) -> SessionOptions:
        more = self.wanted.more
        return SessionOptions(
            permissions=PermissionOptions(
                rules=kit.rules,
                guard=kit.workspace,
                save_rule=self.live.save_rule,
                refresh=self.live.refresh,
                run_tool=kit.run_tool,
            ),
            hooks=HookOptions(
                config=settings.hooks,
                keep_variables=lambda: self.project.settings.keep_variables,
                executors=(
                    *model_executors(lambda: require_made(self._session)),
                    McpToolExecutor(lambda: kit.servers),
                ),
            ),
            limits=RunLimits(idle_timeout=IDLE_SECONDS),
            max_rounds=more.get("max_turns", 0),
            native_web_tools=find_web_tools(self.wanted.provider),
            settings=ModelSettings(effort=settings.effort),
            plugins=plugins,
            compaction=CompactionOptions(
                threshold=settings.auto_compact_threshold,
                instructions=self.project.context.compact_instructions,
                sections=kit.kept_sections,
            ),
            context_window=more.get("context_window"),
            journal=JournalOptions(
                redactor=Redactor(
                    (
                        *settings.secrets(),
                        *find_secrets(self.project.servers, *self.project.agent_servers.values()),
                        *more.get("secrets", ()),
                    )
                )
            ),
            budget=more.get("budget") or settings.budget,
            questions=self._questions,
            events=self._events,
            name=self.name,
        )

    def switch_mode(self, session: Session, mode: str | None) -> None:
        """Enter plan mode, or leave it for a mode, by default the one before."""
        after = check_mode(require_mode(self._mode_before if mode is None else mode), self.project.settings)
        if session.permission_mode != "plan":
            self._mode_before = session.permission_mode
        session.permission_mode = after
        self.kit.plan.active = after == "plan"


def describe_reading(wanted: Wanted) -> ProjectOptions:
    """How the files of the project are read for this session."""
    more = wanted.more
    sources = more.get("setting_sources")
    return ProjectOptions(
        places=wanted.places,
        trust=wanted.trust,
        sources=None if sources is None else tuple(sources),
        flags=more.get("settings"),
        given=more.get("more_settings", ""),
        agents=more.get("agents", {}),
        skills=more.get("skills"),
        servers=more.get("mcp_servers"),
        only_those_servers=more.get("strict_mcp_config", False),
        plugin_dirs=tuple(more.get("plugin_dirs", ())),
        environment=more.get("environment", os.environ),
        imports_allowed=more.get("allow_outside_imports", False),
    )


def choose_id(store: SessionStorePort | None, resume: str | None, fork: bool, given: str | None) -> str:
    """The id of the session: that of the one it goes on with, the one that was `given`, or a new one."""
    if resume is not None and not fork:
        if given not in (None, resume):
            raise ConfigurationError(
                f"Session {resume} keeps its id when it is resumed: fork it to have the id {given}."
            )
        return resume
    if given is None:
        return new_uuid()
    check_session_id(given)
    if isinstance(store, SessionStore) and store.exists(given):
        raise ConfigurationError(f"There is a session {given} already: resume it, or choose another id.")
    return given


def require_mode(mode: str) -> PermissionMode:
    if mode not in CLASS_POLICY:
        raise ConfigurationError(f"There is no permission mode {mode!r}; {suggest(mode, CLASS_POLICY)}")
    return mode


def check_mode(mode: PermissionMode, settings: Settings) -> PermissionMode:
    """The mode, if the settings do not forbid it."""
    if mode == "bypassPermissions" and settings.bypass_is_disabled:
        source = settings.origins["permissions.disableBypassPermissionsMode"][0]
        raise ConfigurationError(f"The mode bypassPermissions is disabled by {source}: choose another.")
    return mode


def require_made(part: T | None) -> T:
    if part is None:
        raise ConfigurationError("InteractiveSession not initialized: await session.ready() first.")
    return part


def with_retries(provider: Provider) -> Provider:
    """The provider, asked again when its service fails for a moment."""
    return provider if isinstance(provider, RetryingProvider) else RetryingProvider(provider)


def find_web_tools(provider: Provider) -> NativeWebTools | None:
    """The web tools that the model's own service runs, all that it offers."""
    offered = get_provider_capabilities(provider)
    search, fetch = (tool.supported and tool.enabled for tool in (offered.web_search, offered.web_fetch))
    return NativeWebTools(web_search=search, web_fetch=fetch) if search or fetch else None
