"""The dotted event names that plugins and webhooks know, derived from the events of a run.

A name is `ownerType.localName`. The typed event stays the truth; these names and paths are a view of it.
"""

from __future__ import annotations

from robota.core.events import (
    Event,
    OwnerPathSegment,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SubagentEvent,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)

EXECUTION_START = "execution.start"
EXECUTION_COMPLETE = "execution.complete"
EXECUTION_ERROR = "execution.error"
TOOL_EXECUTE_START = "tool.execute_start"
TOOL_EXECUTE_SUCCESS = "tool.execute_success"
TOOL_EXECUTE_ERROR = "tool.execute_error"
AGENT_CREATED = "agent.created"
AGENT_COMPLETION = "agent.completion"
TASK_STARTED = "task.started"
TASK_COMPLETED = "task.completed"
TASK_FAILED = "task.failed"
USER_INPUT = "user.input"

EXECUTION_EVENTS = (EXECUTION_START, EXECUTION_COMPLETE, EXECUTION_ERROR)
TOOL_EVENTS = (TOOL_EXECUTE_START, TOOL_EXECUTE_SUCCESS, TOOL_EXECUTE_ERROR)
AGENT_EVENTS = (AGENT_CREATED, AGENT_COMPLETION)
TASK_EVENTS = (TASK_STARTED, TASK_COMPLETED, TASK_FAILED)
"""A task is a run handed to a sub-agent."""
USER_EVENTS = (USER_INPUT,)

_NAMES: dict[type[Event], tuple[str, ...]] = {
    RunStarted: (USER_INPUT, EXECUTION_START),
    # An interrupted run ends normally; the event itself says that it was interrupted.
    RunInterrupted: (EXECUTION_COMPLETE,),
    RunCompleted: (EXECUTION_COMPLETE, AGENT_COMPLETION),
    RunFailed: (EXECUTION_ERROR,),
    ToolStarted: (TOOL_EXECUTE_START,),
}
_TASK_NAMES: dict[type[Event], tuple[str, ...]] = {
    RunStarted: (TASK_STARTED, EXECUTION_START),
    RunInterrupted: (EXECUTION_COMPLETE, TASK_FAILED),
    RunCompleted: (EXECUTION_COMPLETE, AGENT_COMPLETION, TASK_COMPLETED),
    RunFailed: (EXECUTION_ERROR, TASK_FAILED),
    ToolStarted: (TOOL_EXECUTE_START,),
}


def plugin_events(event: TurnEvent) -> tuple[str, ...]:
    """The names under which plugins hear of the event, in order; most events have none."""
    if isinstance(event, SubagentEvent):
        return _names(innermost(event), _TASK_NAMES)
    return _names(event, _NAMES)


def innermost(event: TurnEvent) -> TurnEvent:
    """The event itself, out of the sub-agents that pass it up."""
    while isinstance(event, SubagentEvent):
        event = event.inner
    return event


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


def _names(event: TurnEvent, table: dict[type[Event], tuple[str, ...]]) -> tuple[str, ...]:
    if isinstance(event, ToolEnded):
        return (TOOL_EXECUTE_SUCCESS if event.outcome == "success" else TOOL_EXECUTE_ERROR,)
    return table.get(type(event), ())
