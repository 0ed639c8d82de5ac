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
from robota.sessions.options import HookOptions, JournalOptions, SessionOptions, permission_options

if TYPE_CHECKING:
    from robota.core.hooks import HookOutcome
    from robota.core.hooks.matching import MatchesRule
    from robota.core.messages import Json
    from robota.core.robota import Robota
    from robota.core.run import RunResult
    from robota.core.tool import Tool
    from robota.sessions.hooks import HookPort
    from robota.sessions.permissions.live_rules import PermissionRules
    from robota.sessions.session import Session

RESULT_KEPT = 2_000
"""Characters of a text that the parent's stream carries; the child's own has all of it."""
_HOOK_NAMES = {"Stop": "SubagentStop"}
_SILENT = frozenset(("SessionStart", "SessionEnd", "UserPromptSubmit"))
"""Hooks about the session as a whole."""


class ChildOptions(TypedDict, total=False):
    """What a child has of its own; the rest it has from its parent."""

    tools: Iterable[Tool]
    system_message: str
    model: str
    rules: PermissionRules
    """Which count besides the parent's: the stricter verdict decides."""
    max_rounds: int


def make_child(
    parent: Session,
    agent_id: str,
    *,
    tools: Iterable[Tool] | None = None,
    system_message: str | None = None,
    model: str | None = None,
    rules: PermissionRules | None = None,
    max_rounds: int | None = None,
    worker: Robota | None = None,
) -> Session:
    """`worker`: an agent whose provider, settings, limits and plugins the child has, not its parent's."""
    parent.log.require_open()
    if not agent_id:
        raise ConfigurationError("A child session needs a name of its own, such as child('researcher').")
    if agent_id in parent.resources.children:
        raise ConfigurationError(f"This session has a child {agent_id!r} already: choose another name.")
    options, agent = parent.options, parent.agent
    permissions = replace(permission_options(options.permissions), rules=parent.rules.narrowed(rules))
    child = type(parent)(
        provider=parent.admission.admit(agent.provider if worker is None else worker.provider),
        model=model or agent.model,
        tools=agent.tools if tools is None else tools,
        system_message=system_message,
        cwd=parent.cwd,
        store=parent.store,
        session_id=parent.session_id,
        options=SessionOptions(
            permissions=permissions,
            hooks=HookOptions(port=_ChildHooks(parent.hooks, agent_id)),
            limits=options.limits if worker is None else worker.limits,
            max_rounds=options.max_rounds if max_rounds is None else max_rounds,
            settings=options.settings if worker is None else worker.settings,
            plugins=() if worker is None else worker.plugins,
            context_window=options.context_window if model is None else None,
            compaction=options.compaction,
            journal=JournalOptions(
                durable=options.journal.durable,
                redactor=parent.log.secrets.redactor,
                logger=options.journal.logger,
            ),
            ledger=parent.usage.child(agent_id),
            questions=parent.questions,
            deps=options.deps,
            agent_id=agent_id,
            ports=options.ports,
        ),
    )
    parent.resources.children[agent_id] = child
    events = parent.events

    def pass_on(event: TurnEvent) -> None:
        seq = events.seq if is_only_shown(event) else events.next_seq()
        events.emit(SubagentEvent(agent_id=agent_id, inner=_shorten(event), seq=seq))  # type: ignore[arg-type]

    child.events.on(TurnEvent, pass_on)
    child.events.on(SessionShutdown, lambda _: parent.resources.children.pop(agent_id, None))
    return child


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


class _ChildHooks:
    """The hooks of the parent, by the names that they have for a sub-agent."""

    def __init__(self, port: HookPort, agent_id: str) -> None:
        self._port = port
        self._agent_id = agent_id

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
        told = {**hook_input, "agent_id": self._agent_id}
        name = _HOOK_NAMES.get(event, event)
        return await self._port.fire(name, told, call_id=call_id, matches_rule=matches_rule)
