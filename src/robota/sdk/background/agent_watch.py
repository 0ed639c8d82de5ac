"""Follows the agents of tasks through the events of their session: words, calls, questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from robota.core.background import TaskFailure, TaskSnapshot
from robota.core.events import (
    QuestionAsked,
    QuestionClosed,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.questions import PermissionQuestion, Question
from robota.sdk.background.live_task import LiveTask
from robota.sdk.background.states import failure_of_code

if TYPE_CHECKING:
    from robota.sdk.background.tasks import BackgroundTasks
    from robota.sessions.session import Session

ARGUMENT_SHOWN = 120


class AgentWatch:
    """Hears everything that the session tells, and acts on what is about the agent of a task."""

    def __init__(self, tasks: BackgroundTasks, session: Session) -> None:
        self._tasks = tasks
        self._session = session
        events = session.events
        self._asked: dict[str, tuple[LiveTask, Question]] = {}
        """Open questions by their ids."""
        self._leave = (
            events.on(SubagentEvent, self._hear),
            events.on(QuestionAsked, self._hear_question),
            events.on(QuestionClosed, self._hear_answer),
        )

    def close(self) -> None:
        for leave in self._leave:
            leave()

    def _hear(self, event: SubagentEvent) -> None:
        task = self._tasks.find(event.agent_id)
        if task is None or task.ended.is_set() or task.watchdog is None:
            return
        task.watchdog.hear()
        if task.in_line:
            task.in_line = False
            task.watchdog.release()
        self._hear_inner(task, event.inner)

    def _hear_inner(self, task: LiveTask, event: TurnEvent) -> None:
        assert task.watchdog is not None
        match event:
            case TextDelta(text=text):
                self._tasks.say(task, text)
            case ToolStarted():
                task.watchdog.hold()
                task.log.add_line(f"[{event.tool_name} {_first_argument(event)}]")
                self._tasks.voice.show("tool_start", task.snapshot, event.tool_name)
            case ToolEnded():
                task.watchdog.release()
                if event.outcome != "success":
                    task.log.add_line(f"[{event.tool_name}: {event.outcome}]")
                self._tasks.voice.show("tool_end", task.snapshot, event.tool_name)
            case RunStarted():
                task.interrupted, task.error = False, None
            case RunInterrupted():
                task.interrupted = True
            case RunFailed(code=code, message=message):
                task.error = failure_of_code(code, message)

    def _hear_question(self, event: QuestionAsked) -> None:
        task = self._tasks.find(event.question.agent_id)
        if task is None or task.ended.is_set() or task.watchdog is None:
            return
        self._asked[event.question.id] = (task, event.question)
        task.watchdog.hold()
        if not task.questions:
            self._tasks.voice.tell("permission_request", task.take("REQUEST_PERMISSION"))
        task.questions.add(event.question.id)

    def _hear_answer(self, event: QuestionClosed) -> None:
        task, question = self._asked.pop(event.id, (None, None))
        if task is None or task.watchdog is None:
            return
        task.questions.discard(event.id)
        task.watchdog.release()
        if task.snapshot.state != "waiting_permission" or event.reason == "aborted":
            return
        if isinstance(question, PermissionQuestion) and not (event.answer or {}).get("allow"):
            what = f"It may not use {question.tool_name}"
            part = f" ({question.part})" if question.part else ""
            task.stop(TaskFailure(category="permission", message=f"{what}{part}."))
            if (agent := find_agent(self._session, task.snapshot)) is not None:
                agent.abort()  # before it asks its model what to do instead
        elif not task.questions:
            self._tasks.voice.tell("updated", task.take("PERMISSION_ALLOWED"))


def find_agent(session: Session, task: TaskSnapshot) -> Session | None:
    """The session below this one that works on a task."""
    child = session.resources.children.get(task.agent_id) if task.agent_id else None
    return cast("Session | None", child)


def _first_argument(event: ToolStarted) -> str:
    first = next(iter(event.arguments.values()), "")
    return str(first).partition("\n")[0][:ARGUMENT_SHOWN]
