from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import get_args

import pytest

from robota.core.background import TaskSnapshot, TaskState
from robota.core.errors import NetworkError, ProviderError
from robota.sdk.background.states import TRANSITIONS, Signal, TaskError, explain, next_state, recover

TABLE = """
queued START running
queued CANCEL cancelled
running REQUEST_PERMISSION waiting_permission
running COMPLETE completed
running FAIL failed
running CANCEL cancelled
running SLEEP sleeping
running PAUSE paused
waiting_permission PERMISSION_ALLOWED running
waiting_permission PERMISSION_DENIED failed
waiting_permission CANCEL cancelled
sleeping WAKE running
sleeping CANCEL cancelled
paused RESUME running
paused CANCEL cancelled
"""
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def test_the_table_of_states_is_this_one_and_nothing_else_is_allowed() -> None:
    wanted = {(before, signal): after for before, signal, after in map(str.split, TABLE.split("\n")[1:-1])}
    assert wanted == TRANSITIONS
    for state, signal in product(get_args(TaskState), get_args(Signal)):
        if (state, signal) in wanted:
            assert next_state(state, signal) == wanted[state, signal]
        else:
            with pytest.raises(TaskError, match=f"is {state} cannot take {signal}") as refused:
                next_state(state, signal)
            assert refused.value.failure.category == "validation"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("queued", "cancelled"),
        ("running", "failed"),
        ("waiting_permission", "failed"),
        ("sleeping", "failed"),
        ("paused", "failed"),
    ],
)
def test_a_task_of_a_process_that_is_gone(before: TaskState, after: TaskState) -> None:
    found = recover(TaskSnapshot(task_id="t", kind="agent", state=before), NOW)
    assert (found.state, found.ended_at) == (after, NOW)
    assert found.error is not None
    assert (found.error.category, found.error.reason) == ("crash", "stale_worker")
    assert not found.error.recoverable


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
def test_what_has_ended_stays_as_it_is(state: TaskState) -> None:
    ended = TaskSnapshot(task_id="t", kind="agent", state=state)
    assert recover(ended, NOW) is ended


def test_what_a_runner_raises_has_a_category() -> None:
    assert explain(TaskError("process", "Exit code 3.")).category == "process"
    assert explain(ProviderError("busy")).category == "provider"
    assert explain(NetworkError("gone")).category == "provider"
    assert explain(RuntimeError()).category == "runner"
    assert explain(RuntimeError()).message == "RuntimeError"
