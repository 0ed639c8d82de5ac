"""The dotted event names that plugins and webhooks know, derived from the events of a run.

A name is `ownerType.localName`. The typed event stays the truth; these names and paths are a view of it.
"""

from __future__ import annotations

from robota.core.events import (
    BackgroundTaskChanged,
    Event,
    OwnerPathSegment,
    PromptQueued,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SubagentEvent,
    TextDelta,
    ThinkingChanged,
    ToolEnded,
    ToolInputDelta,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)

_NAMES: dict[type[Event], tuple[str, ...]] = {
    RunStarted: ("user.input", "execution.start"),
    # An interrupted run ends normally; the event itself says that it was interrupted.
    RunInterrupted: ("execution.complete",),
    RunCompleted: ("execution.complete", "agent.completion"),
    RunFailed: ("execution.error",),
    ToolStarted: ("tool.execute_start",),
}
_TASK_NAMES: dict[type[Event], tuple[str, ...]] = {
    # A task is a run handed to a sub-agent.
    RunStarted: ("agent.created", "task.started", "execution.start"),
    RunInterrupted: ("execution.complete", "task.failed"),
    RunCompleted: ("execution.complete", "agent.completion", "task.completed"),
    RunFailed: ("execution.error", "task.failed"),
    ToolStarted: ("tool.execute_start",),
}


NAMED_EVENTS: tuple[type[Event], ...] = (*_NAMES, ToolEnded, SubagentEvent)
"""The types of events that may have such a name; deltas are not among them."""


def plugin_events(event: TurnEvent) -> tuple[str, ...]:
    """The names under which plugins hear of the event, in order; most events have none."""
    table = _NAMES
    if isinstance(event, SubagentEvent):
        event, table = innermost(event), _TASK_NAMES
    if isinstance(event, ToolEnded):
        return ("tool.execute_success" if event.outcome == "success" else "tool.execute_error",)
    return table.get(type(event), ())


def innermost(event: TurnEvent) -> TurnEvent:
    """The event itself, out of the sub-agents that pass it up."""
    while isinstance(event, SubagentEvent):
        event = event.inner
    return event


_ONLY_SHOWN = (TextDelta, ReasoningDelta, ToolInputDelta, ToolProgressed, ThinkingChanged, PromptQueued)
_ONLY_SHOWN_CHANGES = frozenset(("text_delta", "tool_start", "tool_end"))


def is_only_shown(event: TurnEvent) -> bool:
    """Whether what a child or a task tells is shown by its parent under the number before, and kept only in
    the child's own journal, or the task's log."""
    told = innermost(event)
    if isinstance(told, BackgroundTaskChanged):
        return told.change in _ONLY_SHOWN_CHANGES
    return isinstance(told, _ONLY_SHOWN)


def owner_path(event: TurnEvent, agent_id: str) -> tuple[OwnerPathSegment, ...]:
    """Who the event is about, from the outermost agent inwards: agent, execution, sub-agent …, tool."""
    path = [OwnerPathSegment("agent", agent_id)]
    while True:
        if event.execution_id:
            path.append(OwnerPathSegment("execution", event.execution_id))
        if not isinstance(event, SubagentEvent):
            break
        path.append(OwnerPathSegment("agent", event.agent_id))
        event = event.inner
    if isinstance(event, (ToolStarted, ToolProgressed, ToolEnded)):
        path.append(OwnerPathSegment("tool", event.call_id))
    return tuple(path)
