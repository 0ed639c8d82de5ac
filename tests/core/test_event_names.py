from __future__ import annotations

import pytest

from robota.core.event_names import innermost, owner_path, plugin_events
from robota.core.event_service import EventHistory
from robota.core.events import (
    AnyTurnEvent,
    OwnerPathSegment,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    ToolOutcome,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)

STARTED = RunStarted(conversation_id="c", execution_id="e")
TOOL = ToolStarted(call_id="e-3", tool_call_id="call_0", tool_name="add", arguments={}, execution_id="e")


def ended(outcome: ToolOutcome) -> ToolEnded:
    return ToolEnded(call_id="e-3", tool_call_id="call_0", tool_name="add", outcome=outcome)


def nested(event: AnyTurnEvent, agent_id: str = "helper", execution_id: str = "outer") -> SubagentEvent:
    return SubagentEvent(agent_id=agent_id, inner=event, execution_id=execution_id)


@pytest.mark.parametrize(
    ("event", "names"),
    [
        (STARTED, ("user.input", "execution.start")),
        (RunCompleted(), ("execution.complete", "agent.completion")),
        (RunInterrupted(), ("execution.complete",)),
        (RunFailed(message="m", code="c"), ("execution.error",)),
        (TOOL, ("tool.execute_start",)),
        (ended("success"), ("tool.execute_success",)),
        (ended("error"), ("tool.execute_error",)),
        (ended("denied"), ("tool.execute_error",)),
        (TextDelta("x"), ()),
    ],
    ids=lambda value: value.name if isinstance(value, TurnEvent) else "",
)
def test_plugins_hear_of_a_run_by_the_dotted_names(event: TurnEvent, names: tuple[str, ...]) -> None:
    assert plugin_events(event) == names


@pytest.mark.parametrize(
    ("event", "names"),
    [
        (STARTED, ("agent.created", "task.started", "execution.start")),
        (RunCompleted(), ("execution.complete", "agent.completion", "task.completed")),
        (RunFailed(message="m", code="c"), ("execution.error", "task.failed")),
        (RunInterrupted(), ("execution.complete", "task.failed")),
        (TOOL, ("tool.execute_start",)),
        (ended("success"), ("tool.execute_success",)),
    ],
    ids=lambda value: value.name if isinstance(value, TurnEvent) else "",
)
def test_the_run_of_a_sub_agent_is_a_task_and_not_user_input(
    event: AnyTurnEvent, names: tuple[str, ...]
) -> None:
    assert plugin_events(nested(event)) == names
    assert plugin_events(nested(nested(event))) == names


def path_of(event: TurnEvent) -> list[tuple[str, str]]:
    return [(segment.owner_type, segment.owner_id) for segment in owner_path(event, "main")]


def test_the_path_of_an_event_leads_from_the_agent_to_the_run() -> None:
    assert owner_path(STARTED, "main") == (
        OwnerPathSegment("agent", "main"),
        OwnerPathSegment("execution", "e"),
    )


def test_an_event_outside_a_run_belongs_to_the_agent() -> None:
    assert path_of(TextDelta("x")) == [("agent", "main")]


@pytest.mark.parametrize(
    "event",
    [
        TOOL,
        ToolProgressed(call_id="e-3", tool_name="add", text="half", execution_id="e"),
        ToolEnded(call_id="e-3", tool_call_id="0", tool_name="add", outcome="success", execution_id="e"),
    ],
    ids=lambda event: event.name,
)
def test_the_path_of_a_tool_event_ends_at_the_call(event: TurnEvent) -> None:
    assert path_of(event) == [("agent", "main"), ("execution", "e"), ("tool", "e-3")]


def test_nested_agents_are_flattened_from_the_outside_in() -> None:
    event = nested(nested(TOOL, "inner", "middle"), "helper", "outer")
    assert path_of(event) == [
        ("agent", "main"),
        ("execution", "outer"),
        ("agent", "helper"),
        ("execution", "middle"),
        ("agent", "inner"),
        ("execution", "e"),
        ("tool", "e-3"),
    ]
    assert innermost(event) is TOOL


def test_a_history_keeps_events_in_order_and_forgets_the_oldest() -> None:
    history = EventHistory(limit=2)
    for text in "abc":
        history(TextDelta(text))
    assert history.events() == [TextDelta("b"), TextDelta("c")]
    history.clear()
    assert history.events() == []


def test_a_history_finds_events_by_agent_run_or_call() -> None:
    history = EventHistory("main")
    inside = nested(TOOL)
    other = TextDelta("x", execution_id="later")
    for event in (inside, other):
        history(event)
    assert history.events(owner="main") == [inside, other]
    assert (
        history.events(owner="helper") == history.events(owner="e") == history.events(owner="e-3") == [inside]
    )
    assert history.events(owner="later") == [other]
