"""Events as those know them who know no classes: by dotted names and owner paths, and as JSON objects.

A name is `ownerType.localName`, for plugins and webhooks. The typed event stays the truth; all of this is a
view of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from robota.core.errors import ValidationError
from robota.core.events import (
    EVENT_TYPES,
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
from robota.core.messages import Json, JsonObject

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


def event_to_wire(event: Event) -> JsonObject:
    """The event as plain JSON values, tagged by `event`."""
    encoded: JsonObject = msgspec.to_builtins(event, enc_hook=list)  # views of history become lists
    return encoded


def event_from_wire(data: Mapping[str, Json]) -> Event:
    """The event that `event_to_wire` wrote."""
    kind = EVENT_TYPES.get(str(data.get("event")))
    if kind is None:
        raise ValidationError(
            f"Unknown event {data.get('event')!r}; known: {', '.join(sorted(EVENT_TYPES))}."
        )
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValidationError(f"Event {kind.name!r} is malformed: {error}.", field="event") from error
