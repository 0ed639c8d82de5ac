"""A session below another: with at most the rights of its parent, out of its budget, in its own journal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.core.event_names import is_only_shown
from robota.core.events import (
    RunCompleted,
    RunInterrupted,
    SessionShutdown,
    SubagentEvent,
    ToolEnded,
    TurnEvent,
)
from robota.core.plugin import plugins_for_child
from robota.sessions.hooks import LiveHooks
from robota.sessions.options import HookOptions, JournalOptions, SessionOptions, permission_options

if TYPE_CHECKING:
    from robota.core.hooks import HookOutcome, HooksConfig
    from robota.core.hooks.runner import MatchesRule
    from robota.core.messages import Json, JsonObject
    from robota.core.plugin import Plugin
    from robota.core.provider import ModelSettings
    from robota.core.robota import Robota
    from robota.core.run import RunResult
    from robota.core.tool import Tool
    from robota.sessions.hooks import HookPort
    from robota.sessions.permissions.judgement import WorkspaceGuard
    from robota.sessions.permissions.live_rules import PermissionRules
    from robota.sessions.session import Session

RESULT_KEPT = 2_000
"""Characters of a text that the parent's stream carries; the child's own has all of it."""
_HOOK_NAMES = {"Stop": "SubagentStop", "SessionStart": "SubagentStart"}
_SILENT = frozenset(("SessionEnd", "UserPromptSubmit"))
"""Hooks about the session as a whole."""


class ChildOptions(TypedDict, total=False):
    """What a child has of its own; the rest it has from its parent."""

    tools: Iterable[Tool]
    system_message: str
    model: str
    rules: PermissionRules | None
    """Which count besides the parent's: the stricter verdict decides."""
    max_rounds: int
    settings: ModelSettings
    hooks: HooksConfig
    """Which run besides the parent's, as long as the child works."""
    agent_type: str
    """What hooks know the kind of agent by."""
    cwd: str
    guard: WorkspaceGuard | None
    """Knows which files lie outside `cwd`, where that is not the parent's."""


def make_child(
    parent: Session,
    agent_id: str,
    *,
    tools: Iterable[Tool] | None = None,
    system_message: str | None = None,
    model: str | None = None,
    rules: PermissionRules | None = None,
    max_rounds: int | None = None,
    settings: ModelSettings | None = None,
    hooks: HooksConfig | None = None,
    agent_type: str = "",
    cwd: str | None = None,
    guard: WorkspaceGuard | None = None,
    worker: Robota | None = None,
) -> Session:
    """`worker`: an agent whose provider, settings, limits and plugins the child has, not its parent's."""
    _check_name(parent, agent_id)
    options, agent = parent.options, parent.agent
    given = permission_options(options.permissions)
    base = parent.cwd if cwd not in (None, parent.cwd) else ""
    permissions = replace(given, rules=parent.rules.narrowed(rules, base), guard=guard or given.guard)
    own = _ChildHooks(_join_hooks(parent.hooks, hooks), agent_id, agent_type or agent_id)
    if settings is None:
        settings = options.settings if worker is None else worker.settings
    child = type(parent)(
        provider=parent.admission.admit(agent.provider if worker is None else worker.provider),
        model=model or agent.model,
        tools=agent.tools if tools is None else tools,
        system_message=system_message,
        cwd=parent.cwd if cwd is None else cwd,
        store=parent.store,
        session_id=parent.session_id,
        options=SessionOptions(
            permissions=permissions,
            hooks=HookOptions(port=own),
            limits=options.limits if worker is None else worker.limits,
            max_rounds=options.max_rounds if max_rounds is None else max_rounds,
            settings=settings,
            plugins=_find_plugins(agent, agent_id, worker),
            context_window=None if model else options.context_window,
            compaction=replace(options.compaction, sections=None),  # they are of the parent's conversation
            journal=JournalOptions(
                durable=options.journal.durable,
                redactor=parent.log.secrets.redactor,
                logger=options.journal.logger,
            ),
            ledger=parent.usage.child(agent_id),
            questions=parent.questions,
            deps=options.deps,
            agent_id=agent_id,
            name=agent_type or None,
            ports=options.ports,
        ),
    )
    own.child = child
    _pass_events_on(parent, child, agent_id)
    return child


def _find_plugins(agent: Robota, agent_id: str, worker: Robota | None) -> tuple[Plugin, ...]:
    """Those of the worker, and those by which the parent's watch a child."""
    own = () if worker is None else worker.plugins
    return (*own, *plugins_for_child(agent.plugins, agent_id))


def _check_name(parent: Session, agent_id: str) -> None:
    parent.log.require_open()
    if not agent_id:
        raise ConfigurationError("A child session needs a name of its own, such as child('researcher').")
    if agent_id in parent.resources.children:
        raise ConfigurationError(f"This session has a child {agent_id!r} already: choose another name.")


def _pass_events_on(parent: Session, child: Session, agent_id: str) -> None:
    """Let the parent tell what its child does, and own it until that ends."""
    parent.resources.children[agent_id] = child
    events = parent.events

    def pass_on(event: TurnEvent) -> None:
        seq = events.seq if is_only_shown(event) else events.next_seq()
        events.emit(SubagentEvent(agent_id=agent_id, inner=_shorten(event), seq=seq))  # type: ignore[arg-type]

    child.events.on(TurnEvent, pass_on)
    child.events.on(SessionShutdown, lambda _: parent.resources.children.pop(agent_id, None))


async def run_child(parent: Session, worker: Robota, agent_id: str, task: str) -> RunResult:
    """Let an agent do something as a child of this session."""
    child = make_child(
        parent,
        agent_id,
        tools=worker.tools,
        system_message=worker.system_message or "",
        model=worker.model,
        max_rounds=worker.max_rounds,
        worker=worker,
    )
    async with child:
        return await child.submit(task)


def _shorten(event: TurnEvent) -> TurnEvent:
    if isinstance(event, ToolEnded) and len(event.content) > RESULT_KEPT:
        return replace(event, content=event.content[:RESULT_KEPT])
    if isinstance(event, RunCompleted | RunInterrupted) and len(event.text) > RESULT_KEPT:
        return replace(event, text=event.text[:RESULT_KEPT])
    return event


def _join_hooks(port: HookPort, own: HooksConfig | None) -> HookPort:
    if not own:
        return port
    if not isinstance(port, LiveHooks):
        raise ConfigurationError("This session was given somebody who runs its hooks; a child can add none.")
    from robota.core.hooks import merge_hooks  # noqa: PLC0415 - few have some

    return port.plus(merge_hooks(*({_HOOK_NAMES.get(event, event): own[event]} for event in own)))


class _ChildHooks:
    """The hooks of the parent, by the names that they have for a sub-agent."""

    def __init__(self, port: HookPort, agent_id: str, agent_type: str) -> None:
        self._port = port
        self._agent_id = agent_id
        self._who: JsonObject = {"agent_id": agent_id, "agent_type": agent_type}
        self.child: Session | None = None

    def has(self, event: str) -> bool:
        return event not in _SILENT and self._port.has(_HOOK_NAMES.get(event, event))

    async def fire(
        self,
        event: str,
        hook_input: Mapping[str, Json],
        *,
        call_id: str = "",
        matches_rule: MatchesRule | None = None,
    ) -> HookOutcome:
        if event in _SILENT:
            from robota.core.hooks.outcome import HookOutcome  # noqa: PLC0415 - see the layer below

            return HookOutcome(event=event)
        told: JsonObject = {**hook_input, **self._who}
        if self.child is not None:
            told["cwd"] = self.child.cwd
        if event == "Stop" and self.child is not None:
            told["agent_transcript_path"] = self.child.log.path
        name = _HOOK_NAMES.get(event, event)
        about = call_id or self._agent_id  # else it would pass for something of the parent's own run
        return await self._port.fire(name, told, call_id=about, matches_rule=matches_rule)
