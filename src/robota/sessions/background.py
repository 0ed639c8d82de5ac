"""What a session knows of the work beside its conversation: for its record, its hooks and whoever resumes it.

It follows from the events; what happens to tasks is decided above, in `robota.sdk.background`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, ValidationError, convert, to_builtins

from robota.core.background import GroupChange, GroupSnapshot, TaskChange, TaskSnapshot
from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from robota.sessions.journal.records import GroupRecord, TaskRecord
    from robota.sessions.store.session_record import SessionRecord

EVENTS_KEPT = 200
"""Of the latest events of tasks, and again of groups, in the session's record; the journal has all."""


class BackgroundWork(Struct, eq=False, gc=False):
    """The tasks and groups of a session as they were told last, without those that were closed."""

    tasks: dict[str, TaskSnapshot] = {}
    groups: dict[str, GroupSnapshot] = {}
    task_events: list[JsonObject] = []
    group_events: list[JsonObject] = []

    def take_task(self, change: TaskChange, task: TaskSnapshot, at: str) -> None:
        self.tasks[task.task_id] = task
        if change == "closed":
            del self.tasks[task.task_id]
        _note(self.task_events, f"background_task_{change}", {"taskId": task.task_id}, at)

    def take_group(self, change: GroupChange, group: GroupSnapshot, at: str) -> None:
        self.groups[group.group_id] = group
        _note(self.group_events, f"background_job_group_{change}", {"groupId": group.group_id}, at)

    def take(self, record: TaskRecord | GroupRecord) -> None:
        if hasattr(record, "task"):
            self.take_task(record.change, record.task, record.timestamp)
        else:
            self.take_group(record.change, record.group, record.timestamp)

    def write_into(self, record: SessionRecord) -> None:
        """What a record says of it; nothing where there never was any, so that what is there stays."""
        if self.task_events:
            record.background_tasks = to_builtins(list(self.tasks.values()))
            record.background_task_events = list(self.task_events)
        if self.group_events:
            record.background_job_groups = to_builtins(list(self.groups.values()))
            record.background_job_group_events = list(self.group_events)

    @classmethod
    def from_record(cls, record: SessionRecord) -> BackgroundWork:
        """As a snapshot has it; what another program wrote there and we cannot read is left where it is."""
        work = cls()
        for each in record.background_tasks or ():
            try:
                task = convert(each, TaskSnapshot)
            except ValidationError:
                continue
            work.tasks[task.task_id] = task
        return work

    def learn(self, other: BackgroundWork) -> None:
        """What is known now is what somebody else knows."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(other, name))

    def describe_to_hooks(self) -> JsonObject:
        """What has not ended, as hooks about the end of a run are told it."""
        tasks = [each for each in self.tasks.values() if not each.ended]
        return {
            "background_tasks": [
                {"id": each.task_id, "type": each.kind, "status": each.state, "description": each.label}
                for each in tasks
            ],
            "session_crons": [
                {"id": each.task_id, "prompt": each.prompt, "wake_at": to_builtins(each.wake_at)}
                for each in tasks
                if each.kind == "scheduled"
            ],
        }


def _note(events: list[JsonObject], name: str, whose: JsonObject, at: str) -> None:
    events.append({"type": name, **whose, "timestamp": at})
    del events[:-EVENTS_KEPT]
