"""Which state of a task follows which, and what may go wrong with one."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec.structs import replace

from robota.core.background import ErrorCategory, StopCause, TaskFailure, TaskSnapshot, TaskState
from robota.core.errors import AuthenticationError, NetworkError, ProviderError, RateLimitError, RobotaError

Signal: TypeAlias = Literal[
    "START", "CANCEL", "REQUEST_PERMISSION", "COMPLETE", "FAIL", "SLEEP", "PERMISSION_ALLOWED",
    "PERMISSION_DENIED", "WAKE", "PAUSE", "RESUME",
]  # fmt: skip
TRANSITIONS: dict[tuple[TaskState, Signal], TaskState] = {
    ("queued", "START"): "running",
    ("queued", "CANCEL"): "cancelled",
    ("running", "REQUEST_PERMISSION"): "waiting_permission",
    ("running", "COMPLETE"): "completed",
    ("running", "FAIL"): "failed",
    ("running", "CANCEL"): "cancelled",
    ("running", "SLEEP"): "sleeping",
    ("running", "PAUSE"): "paused",
    ("waiting_permission", "PERMISSION_ALLOWED"): "running",
    ("waiting_permission", "PERMISSION_DENIED"): "failed",
    ("waiting_permission", "CANCEL"): "cancelled",
    ("sleeping", "WAKE"): "running",
    ("sleeping", "CANCEL"): "cancelled",
    ("paused", "RESUME"): "running",
    ("paused", "CANCEL"): "cancelled",
}
_PROVIDER_CODES = frozenset(
    kind.code for kind in (ProviderError, AuthenticationError, RateLimitError, NetworkError)
)


class TaskError(RobotaError, code="BACKGROUND_TASK_ERROR", category="user"):
    """A task cannot be had, or has failed; `failure` says of which kind that is."""

    def __init__(self, category: ErrorCategory, message: str, reason: StopCause = "") -> None:
        super().__init__(message)
        self.failure = TaskFailure(category=category, message=message, reason=reason)


def next_state(state: TaskState, signal: Signal) -> TaskState:
    """The state that follows; where nothing may follow, that is an error."""
    try:
        return TRANSITIONS[state, signal]
    except KeyError:
        known = ", ".join(name for before, name in TRANSITIONS if before == state) or "nothing"
        message = f"A task that is {state} cannot take {signal}; it can take {known}."
        raise TaskError("validation", message) from None


def explain(error: Exception) -> TaskFailure:
    """What a runner raised, as the failure of its task."""
    if isinstance(error, TaskError):
        return error.failure
    code = getattr(error, "code", "")
    category: ErrorCategory = "provider" if code in _PROVIDER_CODES else "runner"
    return TaskFailure(category=category, message=str(error) or type(error).__name__)


def failure_of_code(code: str, message: str) -> TaskFailure:
    """The same from the code of an error."""
    return TaskFailure(category="provider" if code in _PROVIDER_CODES else "runner", message=message)


def recover(task: TaskSnapshot, now: datetime) -> TaskSnapshot:
    """What a task is whose process is gone: it was never begun, or nobody knows how far it got."""
    if task.ended:
        return task
    begun = task.state != "queued"
    message = (
        "The process that worked on it ended before it did; how far it got is in its log."
        if begun
        else "The process that should have begun it ended before."
    )
    failure = TaskFailure(category="crash", message=message, reason="stale_worker")
    return replace(task, state="failed" if begun else "cancelled", ended_at=now, wake_at=None, error=failure)
