"""The tools of one session, and what they work on: rules, todos, the plan, processes, background tasks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.background import TaskKind
from robota.core.messages import Message, Prompt, prompt_text
from robota.core.permissions.modes import PermissionMode
from robota.core.tool import Tool
from robota.sdk.agents.runner import SubagentOptions, Subagents
from robota.sdk.agents.subagent import ProjectInstructions, has_server_tool
from robota.sdk.agents.tool import SubagentTool
from robota.sdk.background.live_task import Runner
from robota.sdk.background.runners import agent_runner, scheduled_runner, start_agent, take_in
from robota.sdk.background.tasks import BackgroundTasks
from robota.sdk.background.watchdog import WatchdogLimits
from robota.sdk.bundle.assembly import BundleTools
from robota.sdk.mcp.deferral import read_policy, recall_found
from robota.sdk.mcp.elicitation import fill_in
from robota.sdk.mcp.reaching import make_opener
from robota.sdk.mcp.resources import add_resources, find_resources
from robota.sdk.mcp.sampling import answer_server
from robota.sdk.mcp.servers import McpServers, OpenRelay
from robota.sdk.sandbox import make_configured_sandbox
from robota.sdk.skills.calls import SkillCalls
from robota.sdk.skills.fork import fork_with
from robota.sdk.skills.offers import SkillOffers
from robota.sdk.skills.tool import recall_skills, skill_tool
from robota.sdk.undo import HAS_UNDO, open_undo, remove_unused_stores, run_with_undo
from robota.sdk.workspace import Workspace
from robota.sessions.compaction.kept_state import OPEN_TODOS, CompactionSection
from robota.sessions.hooks import LiveHooks
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules
from robota.tools.builtins.ask_user import ask_user_tool
from robota.tools.builtins.background import bash_output_tool, kill_bash_tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import edit_tool, read_tool, write_tool
from robota.tools.builtins.plan import PlanState, TodoList, plan_tools, todo_tool
from robota.tools.builtins.search import glob_tool, grep_tool
from robota.tools.builtins.web import web_fetch_tool, web_search_tool
from robota.tools.processes import ProcessTable

if TYPE_CHECKING:
    from robota.core.hooks import HooksConfig
    from robota.sdk.agents.definition import AgentDefinition
    from robota.sdk.checkpoints import Checkpoints
    from robota.sdk.context.session_context import SessionContext
    from robota.sdk.memory.memory import Memory
    from robota.sdk.project import Project
    from robota.sdk.settings.settings import Settings
    from robota.sessions.session import Session
    from robota.sessions.start import SessionStart
    from robota.tools.builtins.bash import Terminal
    from robota.tools.files.change import EditorFiles
    from robota.tools.undo.store import UndoStore

CONFIGURATION = (".agents", ".claude", ".robota")
ALWAYS_ALLOWED = tuple(f"{tool}({folder}/**)" for tool in ("Read", "Glob") for folder in CONFIGURATION)
"""The files that shape a session may be looked at without a question."""


def add_own_rules(settings: Settings, mode: PermissionMode) -> PermissionRules:
    """The rules of the settings with those that every session has, in a mode that they allow."""
    if mode == "bypassPermissions" and settings.bypass_is_disabled:
        mode = "default"
    return replace(settings.rules, mode=mode, allow=(*ALWAYS_ALLOWED, *settings.rules.allow))


def renew_rules(known: PermissionRules, before: Settings, after: Settings) -> PermissionRules:
    """The rules when settings change; what a front end denied or wants to be asked about besides stays."""
    new = add_own_rules(after, known.mode)
    written = before.rules
    deny = [rule for rule in known.deny if rule not in written.deny and rule not in new.deny]
    ask = [rule for rule in known.ask if rule not in written.ask and rule not in new.ask]
    return replace(new, deny=(*new.deny, *deny), ask=(*new.ask, *ask)) if deny or ask else new


class Kit:
    """Made for one session and closed with it."""

    context: SessionContext
    """What the session knows of the project; there as soon as the session is."""

    def __init__(
        self,
        project: Project,
        mode: PermissionMode,
        start: SessionStart | None,
        *,
        editor: EditorFiles | None = None,
        terminal: Terminal | None = None,
    ) -> None:
        self.project = project
        self._editor = editor
        self.rules = LiveRules(PermissionRules(mode=mode), home=project.places.home)
        self.workspace = Workspace(project.places.cwd, self.rules)
        self.todos = TodoList() if start is None else recall_todos(start.messages)
        self.plan = PlanState(active=mode == "plan")
        self.processes = ProcessTable()
        settings = project.settings
        self.bash = bash_tool(
            table=self.processes,
            variables=self._find_variables,
            sandbox=make_configured_sandbox(settings.sandbox, self.rules) or "off",
            auto_allow_bash_if_sandboxed=settings.sandbox.auto_allow_bash,
            terminal=terminal,
        )
        self.subagents = Subagents(
            project.agents.definitions,
            instructions=ProjectInstructions.of(project.context.files),
            options=SubagentOptions.of(project.settings),
            read_skills=lambda agent: self.skills.preload(agent.skills, agent.plugin),
            read_notes=self._read_notes,
            bring_servers=self._bring_servers,
        )
        self.skills = SkillCalls(project.skills, project.places, fork=fork_with(self.subagents))
        self.relay: OpenRelay | None = None
        """Reaches servers inside the program around the session."""
        self._open_server = make_opener(project.places, lambda: self.relay)
        self.servers = McpServers(
            set() if start is None else recall_found(start.messages),
            self._open_server,
            sample=lambda server, asked, context: answer_server(self.skills.session, server, asked, context),
            fill_in=lambda form, asked, context: fill_in(self.skills.session, form, asked, context),
        )
        self.bundle_tools = BundleTools(lambda: self.project.settings.keep_variables)
        self.watchdog = WatchdogLimits()
        self._background: BackgroundTasks | None = None
        self._session: Session | None = None
        self.run_tool = run_with_undo(
            lambda: self.undo,
            enabled=lambda: bool(self.project.settings.get("fileCheckpointingEnabled")),
            workspace=lambda: (project.places.cwd, *self.rules.additional_dirs),
            redact=self._redact,
        )
        """What carries calls out, and saves the files that they may change before."""

    @cached_property
    def undo(self) -> UndoStore | None:
        """What was there before each call; opened with the first that changes a file."""
        return open_undo(self.project.places)

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Where the session can go back to."""
        from robota.sdk.checkpoints import Checkpoints  # noqa: PLC0415 - with the first look at them

        return Checkpoints(self.skills.session, lambda: self.undo, self._recall)

    @cached_property
    def memory(self) -> Memory:
        """What the project's sessions remember."""
        from robota.sdk.memory.memory import Memory  # noqa: PLC0415 - for projects that have one

        return Memory(self.skills.session, lambda: self.project)

    @property
    def background(self) -> BackgroundTasks:
        """What works beside the conversation; from `enter` on."""
        assert self._background is not None, "the session is not made yet"
        return self._background

    def take(self, project: Project) -> None:
        """Obey what the files of the project say now; the mode is the user's choice and stays."""
        before, settings = self.project.settings, project.settings
        self.project = project
        if settings.sandbox != before.sandbox:
            self.bash.sandbox = make_configured_sandbox(settings.sandbox, self.rules)
            self.bash.auto_allow_bash_if_sandboxed = settings.sandbox.auto_allow_bash
        self.subagents.take(
            project.agents.definitions,
            ProjectInstructions.of(project.context.files),
            SubagentOptions.of(project.settings),
        )
        if self._background is not None:
            self._background.slots.resize(self.subagents.options.max_parallel)
        self.skills.skills = project.skills
        self.servers.policy = read_policy(settings.get("toolSearch"), project.variables)
        self.servers.take(project.servers, frozenset(settings.get("disabledMcpjsonServers") or ()))
        self.skills.runs_commands = not settings.get("disableSkillShellExecution")
        rules = renew_rules(self.rules.rules, before, settings)
        known = self.rules.additional_dirs
        added = [path for path in known if path not in before.additional_dirs]  # by a front end
        self.rules.replace(rules, additional_dirs=(*settings.additional_dirs, *added))

    def _find_variables(self) -> dict[str, str]:
        """Those of a command besides the plain ones of the environment, as settings are now."""
        settings = self.project.settings
        kept = {name: os.environ[name] for name in settings.keep_variables if name in os.environ}
        return {**kept, **settings.env}

    def make_tools(self, switch_mode: Callable[[str | None], Awaitable[None]]) -> list[Tool]:
        """The built-in tools, all under the same rules and on the same state."""
        processes = self.processes
        return [
            read_tool(editor=self._editor),
            write_tool(editor=self._editor),
            edit_tool(editor=self._editor),
            glob_tool(),
            grep_tool(),
            self.bash,
            bash_output_tool(processes),
            kill_bash_tool(processes),
            web_fetch_tool(),
            web_search_tool(),
            todo_tool(self.todos),
            ask_user_tool(),
            *plan_tools(self.plan, switch_mode),
            *([] if self.subagents.options.policy == "never" else [self._agent_tool()]),
            skill_tool(self.skills),
        ]

    def _agent_tool(self) -> SubagentTool:
        return SubagentTool(self.subagents, lambda task: start_agent(self.background, task))

    def kept_sections(self) -> tuple[CompactionSection, ...]:
        """What survives a compaction word for word."""
        return (
            CompactionSection(OPEN_TODOS, self.todos.open_text),
            recall_skills(self.skills.session.messages),
            *self.context.references.sections(),
        )

    async def enter(self, session: Session) -> None:
        """Have what lives as long as the session opened by it, and closed in reverse order."""
        self._session = session
        self.subagents.attach(session)
        self.skills.attach(session)
        SkillOffers(session, lambda: self.skills.skills)
        await session.own(self.processes)
        work = agent_runner(self.subagents)
        runners: dict[TaskKind, Runner] = {"agent": work, "scheduled": scheduled_runner(work)}
        at_once = self.subagents.options.max_parallel
        tasks = BackgroundTasks(session, runners, max_concurrent=at_once, limits=self.watchdog)
        self._background = await session.own(tasks)
        self.processes.on_start = partial(take_in, tasks)
        self.servers.attach(session)
        await session.own(self.servers)
        if HAS_UNDO:
            await asyncio.to_thread(remove_unused_stores, self.project.places)

    def _read_notes(self, agent: AgentDefinition) -> str:
        from robota.sdk.agents.notes import read_notes  # noqa: PLC0415 - with the first subagent

        return read_notes(agent, self.project.places)

    async def _bring_servers(self, agent: AgentDefinition, child: Session) -> list[str]:
        """Those of an agent's definition, for the session that it works in."""
        from robota.sdk.mcp.of_agents import bring_servers  # noqa: PLC0415 - few agents have some

        own = McpServers(
            set(),
            self._open_server,
            sample=partial(answer_server, child),
            fill_in=partial(fill_in, child),
            accepts=partial(has_server_tool, agent),
        )
        definitions = self.project.agent_servers.get(agent.name, {})
        return await bring_servers(agent, child, self.servers, own, definitions)

    async def prepare(self, words: str) -> None:
        """Before a prompt: what is remembered of it, files that have changed, servers that come and go."""
        remembers = self.project.settings.get("memory.enabled")
        self.context.refresh(await self.memory.prepare(words) if remembers else "")
        self.servers.prepare()

    async def expand(self, prompt: Prompt, *, lenient: bool) -> Prompt:
        """The prompt with the files and resources that it names."""
        others = tuple(f"{name}:" for name in self.servers.connections)
        expanded = await self.context.expand(prompt, lenient=lenient, others=others)
        named = () if lenient else find_resources(prompt_text(prompt), self.servers)
        return await add_resources(expanded, named, self.servers) if named else expanded

    def add_hooks(self, config: HooksConfig) -> None:
        """Hooks of the program around the session, besides those of files, till its end."""
        assert self._session is not None, "the session is not made yet"
        if isinstance(self._session.hooks, LiveHooks):
            self._session.hooks.add(config)

    def _recall(self) -> None:
        """The conversation is another one: so is the list of things to do."""
        if self._session is not None:
            self.todos.items = recall_todos(self._session.messages).items

    def _redact(self, text: str) -> str:
        return text if self._session is None else self._session.log.secrets.redactor.text(text)


def recall_todos(messages: Sequence[Message]) -> TodoList:
    """The list as a conversation left it."""
    from robota.sessions.compaction.kept_state import find_todos  # noqa: PLC0415 - for those who go on

    try:
        return TodoList.from_json(find_todos(messages))
    except ValueError:  # that of another tool
        return TodoList()
