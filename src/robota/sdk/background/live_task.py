"""A task while it is worked on, and what the one who works on it may do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from robota.core.background import TaskFailure, TaskSnapshot
from robota.sdk.background.states import Signal, next_state

if TYPE_CHECKING:
    from robota.sdk.background.request import TaskRequest
    from robota.sdk.background.task_log import TaskLog
    from robota.sdk.background.tasks import BackgroundTasks
    from robota.sdk.background.watchdog import Watchdog


class StoppedElsewhere(Exception):
    """Whoever works on a task was stopped by somebody who knows of it: nobody needs to be told."""


class LiveTask:
    """Changes its snapshot only along the table of states."""

    __slots__ = (
        "cancelled", "driver", "ended", "error", "in_line", "interrupted", "log", "questions",
        "quiet", "request", "slot", "snapshot", "stop_cause", "wants_slot", "watchdog",
    )  # fmt: skip

    def __init__(
        self, request: TaskRequest, snapshot: TaskSnapshot, log: TaskLog, *, wants_slot: bool
    ) -> None:
        self.request = request
        self.snapshot = snapshot
        self.log = log
        self.wants_slot = wants_slot
        self.slot: asyncio.Semaphore | None = None
        """Where its place among those at work is from."""
        self.driver: asyncio.Task[None] | None = None
        self.watchdog: Watchdog | None = None
        self.ended = asyncio.Event()
        self.cancelled = False
        """We were asked to end it."""
        self.stop_cause: TaskFailure | None = None
        """Why we end it, when nobody asked."""
        self.quiet = False
        """The model knows of its end already."""
        self.interrupted = False
        """The last run of its agent was aborted."""
        self.error: TaskFailure | None = None
        """Why the last run of its agent failed."""
        self.in_line = False
        """Its agent has not begun: others of the session are before it."""
        self.questions: set[str] = set()
        """Ids of what its agent asks and nobody has answered."""

    @property
    def id(self) -> str:
        return self.snapshot.task_id

    def take(self, signal: Signal, **facts: Any) -> TaskSnapshot:
        self.snapshot = replace(self.snapshot, state=next_state(self.snapshot.state, signal), **facts)
        return self.snapshot

    def stop(self, why: TaskFailure) -> None:
        """End it as failed."""
        if self.stop_cause is None and not self.ended.is_set() and self.driver is not None:
            self.stop_cause = why
            self.driver.cancel()


class Work:
    """What a runner has of the task it works on."""

    __slots__ = ("_task", "_tasks")

    def __init__(self, tasks: BackgroundTasks, task: LiveTask) -> None:
        self._tasks = tasks
        self._task = task

    @property
    def task_id(self) -> str:
        return self._task.id

    @property
    def request(self) -> TaskRequest:
        return self._task.request

    def say(self, text: str) -> None:
        """Text for the log and whoever looks on."""
        self._tasks.say(self._task, text)

    def note(self, **facts: Any) -> None:
        """Facts for the snapshot, such as an exit code."""
        self._task.snapshot = replace(self._task.snapshot, **facts)

    def get_in_line(self) -> None:
        """An agent will work on it, whose turn comes when others of the session have ended: until it is heard
        of, it is not silent."""
        if self._task.watchdog is not None and not self._task.in_line:
            self._task.in_line = True
            self._task.watchdog.hold()

    async def sleep(self, seconds: float) -> None:
        """Wait without taking anybody's place."""
        await self._tasks.sleep(self._task, seconds)


Runner: TypeAlias = Callable[[Work], Awaitable[str]]
"""Works on a task to its end and gives its result. What it raises is how the task failed; `TaskError` says
of which kind that is."""
