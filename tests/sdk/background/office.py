"""A session with background tasks, and runners that do what a test tells them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.sessions.live_session import Studio

from robota.core.events import BackgroundGroupChanged, BackgroundTaskChanged
from robota.core.messages import UserMessage
from robota.sdk.background.live_task import Work
from robota.sdk.background.tasks import BackgroundTasks


class Office(Studio):
    """`tasks` belongs to the session. What a task named by its prompt does is decided by `end` and `fail`."""

    def __init__(self, home: Path, *replies: Any, given: Any = None, **options: Any) -> None:
        super().__init__(home, *replies, **options)
        self.tasks = BackgroundTasks(self.session, {"agent": self.work}, **(given or {}))
        self.begun: list[str] = []
        self.endings: dict[str, asyncio.Future[str]] = {}

    async def work(self, work: Work) -> str:
        self.begun.append(work.request.prompt)
        return await self.ending(work.request.prompt)

    def ending(self, prompt: str) -> asyncio.Future[str]:
        if prompt not in self.endings:
            self.endings[prompt] = asyncio.get_running_loop().create_future()
        return self.endings[prompt]

    def end(self, prompt: str, result: str = "") -> None:
        self.ending(prompt).set_result(result)

    def fail(self, prompt: str, error: Exception) -> None:
        self.ending(prompt).set_exception(error)

    async def until(self, task_id: str, state: str) -> None:
        """Wait for a task to be in a state."""
        reached = asyncio.Event()

        def look(_: Any = None) -> None:
            if self.tasks.get(task_id).state == state:
                reached.set()

        leave = self.tasks.subscribe(look)
        look()
        async with asyncio.timeout(20):
            await reached.wait()
        leave()

    @property
    def changes(self) -> list[str]:
        return [event.change for event in self.told(BackgroundTaskChanged)]

    @property
    def group_changes(self) -> list[str]:
        return [event.change for event in self.told(BackgroundGroupChanged)]

    @property
    def told_the_model(self) -> list[str]:
        """What the model heard of tasks."""
        return [
            message.content
            for message in self.session.messages
            if isinstance(message, UserMessage) and message.metadata.get("origin") == "task"
        ]
