"""What is told of tasks: to everybody as events, to the model when one has ended."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from robota.core.background import TaskChange, TaskSnapshot
from robota.core.events import BackgroundTaskChanged
from robota.core.plain_text import shorten
from robota.core.ports import timestamp

if TYPE_CHECKING:
    from robota.sessions.session import Session

RESULT_TOLD = 8_000
"""Characters of a result that the model gets."""


class Voice:
    """Tells of the tasks of one session, and has its record keep up."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> datetime:
        return timestamp(self._session.options.ports.now())

    def tell(self, change: TaskChange, task: TaskSnapshot) -> None:
        """For everybody and the journal; until that is open it waits."""
        log = self._session.log
        self._session.background.take_task(change, task, self.now().isoformat())
        log.when_open(partial(log.tell, BackgroundTaskChanged, change=change, task=task))

    def show(self, change: TaskChange, task: TaskSnapshot, text: str) -> None:
        """Something that is not worth a place in the journal."""
        events = self._session.events
        if self._session.log.opened and events.wants(BackgroundTaskChanged):
            events.emit(BackgroundTaskChanged(change=change, task=task, text=text, seq=events.seq))

    def tell_model(self, task: TaskSnapshot, result: str = "") -> None:
        self._session.inbox.put(describe_end(task, result), origin="task", id=f"{task.task_id}-end")


def describe_end(task: TaskSnapshot, result: str = "") -> str:
    """A message for the model. It is data about a task, so it says from whom the words are."""
    if task.kind == "scheduled" and not task.agent_type and task.state == "completed":
        return f"It is time for what was scheduled as {task.task_id}: {task.prompt}"
    what = f"{task.kind} {task.process_id or task.task_id} ({task.label})"
    if task.state == "completed":
        said = result or task.result
        words = f" It reports:\n{shorten(said, RESULT_TOLD)}" if said else ""
        return f"The background {what} has completed.{words}{_more(task)}"
    why = f" {task.error.message}" if task.error is not None else ""
    state = "was cancelled" if task.state == "cancelled" else "has failed"
    return f"The background {what} {state}.{why}{_more(task)}"


def _more(task: TaskSnapshot) -> str:
    if task.process_id:
        return f' Read its output with BashOutput(bash_id="{task.process_id}").'
    kept = task.worktree.get("worktreeNextAction", "")
    return f"\n{kept}" if kept else ""
