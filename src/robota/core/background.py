"""Work beside the conversation, as a value: what a task or a group of tasks is at one moment.

Whoever shows, keeps or resumes it needs nothing else; what happens to it is done in `robota.sdk.background`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, field

TaskState: TypeAlias = Literal[
    "queued", "running", "waiting_permission", "completed", "failed", "cancelled", "sleeping", "paused"
]
TaskKind: TypeAlias = Literal["agent", "process", "scheduled"]
TaskMode: TypeAlias = Literal["foreground", "background"]
"""Whether somebody waits for it; if nobody does, the model is told of its end."""
Isolation: TypeAlias = Literal["none", "worktree"]
ErrorCategory: TypeAlias = Literal[
    "validation", "capacity", "permission", "timeout", "runner", "crash", "provider", "process"
]
StopCause: TypeAlias = Literal["", "idle", "max_runtime", "output_limit", "repetition", "stale_worker"]
"""Why a watchdog ended a task."""
TaskChange: TypeAlias = Literal[
    "created", "started", "updated", "text_delta", "tool_start", "tool_end", "permission_request",
    "completed", "failed", "cancelled", "closed", "waking",
]  # fmt: skip
GroupChange: TypeAlias = Literal["created", "updated", "completed"]
WaitPolicy: TypeAlias = Literal["detached", "wait_all", "wait_any", "manual"]

ENDED: frozenset[TaskState] = frozenset(("completed", "failed", "cancelled"))


class TaskFailure(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why a task failed, or was never begun."""

    category: ErrorCategory
    message: str
    reason: StopCause = ""

    @property
    def recoverable(self) -> bool:
        """Whether the same task may be tried again as it is."""
        return self.category != "crash"


class TaskSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A task as it is at one moment."""

    task_id: str
    kind: TaskKind
    state: TaskState = "queued"
    mode: TaskMode = "background"
    label: str = ""
    """What it is called in lists."""
    agent_type: str = ""
    prompt: str = ""
    """What an agent was asked, or what is to be said later; a long one is cut."""
    command: str = ""
    """What a process runs."""
    model: str = ""
    isolation: Isolation = "none"
    agent_id: str = ""
    """Under which the events, the journal and the questions of its agent are known."""
    parent_task_id: str = ""
    """The task whose agent began this one."""
    depth: int = 1
    group_id: str = ""
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    wake_at: datetime | None = None
    """When one that sleeps goes on."""
    result: str = ""
    """How an agent ended, in its own words; long ones are cut here and whole in its log."""
    exit_code: int | None = None
    process_id: str = ""
    """Of a process, for BashOutput and KillBash."""
    error: TaskFailure | None = None
    worktree: Mapping[str, str] = field(default_factory=dict)
    """What became of a tree of its own: `worktreePath`, `branchName`, `worktreeStatus` and others."""

    @property
    def ended(self) -> bool:
        return self.state in ENDED


class GroupSnapshot(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Tasks that belong together, as they are at one moment."""

    group_id: str
    policy: WaitPolicy = "wait_all"
    label: str = ""
    task_ids: tuple[str, ...] = ()
    completed: bool = False
    summary: str = ""
    """How each task ended, once the group is complete."""
