"""What somebody wants done in the background."""

from __future__ import annotations

import math

from msgspec import Struct

from robota.core.background import Isolation, TaskKind, TaskMode, TaskSnapshot
from robota.sdk.background.states import TaskError

PROMPT_KEPT = 2_000
"""Characters of a prompt in the record of its task."""
LABEL_KEPT = 80


class TaskRequest(Struct, frozen=True, kw_only=True):
    """A task that is to be begun."""

    kind: TaskKind = "agent"
    prompt: str = ""
    """What an agent is asked, or what is to be said later."""
    label: str = ""
    """What it is called in lists; else its first words."""
    agent_type: str = ""
    """Which agent works on it. Something scheduled without one is a reminder to the session's own model."""
    model: str = ""
    isolation: Isolation | None = None
    """`None`: as the agent's definition says."""
    command: str = ""
    """What a process runs."""
    mode: TaskMode = "background"
    parent_task_id: str = ""
    """The task whose agent wants it."""
    delay: float = 0.0
    """Seconds until something scheduled begins."""

    def check(self) -> None:
        if self.kind == "process":
            if not self.command.strip():
                raise TaskError("validation", "A process needs a command.")
        elif not self.prompt.strip():
            raise TaskError("validation", f"A task of the kind {self.kind} needs a prompt.")
        if not (math.isfinite(self.delay) and self.delay >= 0):
            raise TaskError("validation", f"A delay is a number of seconds from 0 on, not {self.delay!r}.")

    def to_snapshot(self, task_id: str) -> TaskSnapshot:
        first = (self.label or self.command or self.prompt).strip().partition("\n")[0]
        return TaskSnapshot(
            task_id=task_id,
            kind=self.kind,
            mode=self.mode,
            label=first if len(first) <= LABEL_KEPT else f"{first[: LABEL_KEPT - 1]}…",
            agent_type=self.agent_type,
            prompt=self.prompt[:PROMPT_KEPT],
            command=self.command[:PROMPT_KEPT],
            model=self.model,
            isolation=self.isolation or "none",
            agent_id="" if self.kind == "process" else task_id,
            parent_task_id=self.parent_task_id,
        )
