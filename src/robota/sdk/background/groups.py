"""Tasks that belong together: when a group of them is complete, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, get_args

from msgspec.structs import replace

from robota.core.background import GroupChange, GroupSnapshot, TaskSnapshot, WaitPolicy
from robota.core.events import BackgroundGroupChanged
from robota.core.ports import timestamp
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.states import TaskError

if TYPE_CHECKING:
    from robota.sdk.background.tasks import BackgroundTasks
    from robota.sessions.session import Session

SUMMARY_KEPT = 1_000


class JobGroups:
    """The groups of one session.

    `wait_all` and `detached` are complete when all tasks have ended, `wait_any` when one has, `manual` when
    somebody says so. Nobody waits for a detached group.
    """

    def __init__(self, tasks: BackgroundTasks, session: Session) -> None:
        self._tasks = tasks
        self._session = session
        self._ended: dict[str, asyncio.Event] = {}

    def list(self) -> tuple[GroupSnapshot, ...]:
        return tuple(self._session.background.groups.values())

    def get(self, group_id: str) -> GroupSnapshot:
        group = self._session.background.groups.get(group_id)
        if group is None:
            known = ", ".join(self._session.background.groups) or "none"
            raise TaskError("validation", f"There is no group of tasks {group_id!r}. Known: {known}.")
        return group

    async def spawn(
        self, requests: Iterable[TaskRequest], *, policy: WaitPolicy = "wait_all", label: str = ""
    ) -> GroupSnapshot:
        """Begin some tasks together."""
        wanted = tuple(requests)
        if not wanted or policy not in get_args(WaitPolicy):
            known = ", ".join(get_args(WaitPolicy))
            raise TaskError("validation", f"A group needs tasks, and one of the policies {known}.")
        for request in wanted:
            request.check()
        group_id = f"group-{self._session.options.ports.new_id().replace('-', '')[-8:]}"
        begun = [await self._tasks.spawn(request, group_id=group_id) for request in wanted]
        group = GroupSnapshot(
            group_id=group_id, policy=policy, label=label, task_ids=tuple(task.task_id for task in begun)
        )
        self._ended[group_id] = asyncio.Event()
        self._tell("created", group)
        self._look(group)
        return self.get(group_id)

    async def wait(self, group_id: str) -> GroupSnapshot:
        """The group when it is complete; a detached one at once."""
        group = self.get(group_id)
        ended = self._ended.get(group_id)
        if ended is not None and group.policy != "detached":
            await ended.wait()
        return self.get(group_id)

    def complete(self, group_id: str) -> GroupSnapshot:
        """Say that a group is complete."""
        group = self.get(group_id)
        if group.completed:
            raise TaskError("validation", f"The group {group_id} is complete already.")
        self._complete(group)
        return self.get(group_id)

    def note_end(self, task: TaskSnapshot) -> None:
        group = self._session.background.groups.get(task.group_id)
        if group is not None and not group.completed:
            self._tell("updated", group)
            self._look(group)

    def recover(self) -> None:
        """Groups of a process that is gone are complete: none of their tasks goes on."""
        for group in self.list():
            if not group.completed:
                self._complete(group)

    def _look(self, group: GroupSnapshot) -> None:
        ended = [task is None or task.ended for task in self._members(group)]
        if group.policy != "manual" and (any(ended) if group.policy == "wait_any" else all(ended)):
            self._complete(group)

    def _members(self, group: GroupSnapshot) -> Sequence[TaskSnapshot | None]:
        return [self._session.background.tasks.get(task_id) for task_id in group.task_ids]

    def _complete(self, group: GroupSnapshot) -> None:
        lines = [_describe(task) for task in self._members(group) if task is not None]
        self._tell("completed", replace(group, completed=True, summary=summarize(lines)))
        if (ended := self._ended.get(group.group_id)) is not None:
            ended.set()

    def _tell(self, change: GroupChange, group: GroupSnapshot) -> None:
        session, log = self._session, self._session.log
        session.background.take_group(change, group, timestamp(session.options.ports.now()).isoformat())
        log.when_open(partial(log.tell, BackgroundGroupChanged, change=change, group=group))


def _describe(task: TaskSnapshot) -> str:
    words = task.error.message if task.error is not None else task.result
    first = words.strip().partition("\n")[0]
    return f"{task.label} ({task.task_id}): {task.state}{f', {first}' if first else ''}"


def summarize(lines: list[str]) -> str:
    """The lines, each cut so that all have room."""
    if not lines:
        return ""
    room = max((SUMMARY_KEPT - len(lines)) // len(lines), 1)
    text = "\n".join(line if len(line) <= room else f"{line[: room - 1]}…" for line in lines)
    return text[:SUMMARY_KEPT]
