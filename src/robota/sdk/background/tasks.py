"""`BackgroundTasks`: everything that works beside the conversation of one session.

A task is worked on by a runner in a task of the loop. What happens to it is told as `BackgroundTaskChanged`
and so is in the journal; what it says is in its log. The model hears of its end before its next round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from robota.core.background import TaskFailure, TaskKind, TaskSnapshot
from robota.core.errors import RobotaError
from robota.core.events import BackgroundTaskChanged
from robota.sdk.background.agent_watch import AgentWatch, find_agent
from robota.sdk.background.groups import JobGroups
from robota.sdk.background.live_task import LiveTask, Runner, StoppedElsewhere, Work
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.slots import Slots
from robota.sdk.background.states import TRANSITIONS, Signal, TaskError, explain, recover
from robota.sdk.background.task_log import LogPage, TaskLog, log_path, read_lines, read_page
from robota.sdk.background.voice import Voice
from robota.sdk.background.watchdog import Watchdog, WatchdogLimits

if TYPE_CHECKING:
    from robota.core.bus import Unsubscribe
    from robota.sessions.session import Session

MAX_CONCURRENT = 4
MAX_DEPTH = 1
MAX_QUEUED = 100
"""Tasks that may wait for their turn."""
ENDED_KEPT = 100
"""Tasks that are remembered after their end; older ones are closed."""
PROCESS_OUTPUT = 30_000
"""Bytes of a process's output in its log."""
RESULT_KEPT = 2_000
CLOSING_SECONDS = 4.0
"""How long tasks may take to end with their session, together."""
_LEAVING: dict[str, Signal] = {"waiting_permission": "PERMISSION_ALLOWED", "sleeping": "WAKE"}


class BackgroundTasks:
    """The tasks of one session. It ends with it, and knows the tasks of processes that had it before."""

    def __init__(
        self,
        session: Session,
        runners: Mapping[TaskKind, Runner] | None = None,
        *,
        max_concurrent: int = MAX_CONCURRENT,
        max_depth: int = MAX_DEPTH,
        limits: WatchdogLimits = WatchdogLimits(),  # noqa: B008 - frozen
    ) -> None:
        self._session = session
        self._runners = dict(runners or {})
        self.slots = Slots(max_concurrent)
        self._max_depth = max_depth
        self._limits = limits
        self._live: dict[str, LiveTask] = {}
        self._closed = False
        self.voice = Voice(session)
        self.groups = JobGroups(self, session)
        self._watch = AgentWatch(self, session)
        for task in tuple(session.background.tasks.values()):
            if (found := recover(task, self.voice.now())) is not task:
                self.voice.tell("failed" if found.state == "failed" else "cancelled", found)
                self.voice.tell_model(found)
        self.groups.recover()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    # --- what there is ----------------------------------------------------------------------------------

    def list(self) -> tuple[TaskSnapshot, ...]:
        """All that were not closed, in the order in which they were begun."""
        return tuple(self._session.background.tasks.values())

    def get(self, task_id: str) -> TaskSnapshot:
        task = self._session.background.tasks.get(task_id)
        if task is None:
            known = ", ".join(self._session.background.tasks) or "none"
            raise TaskError("validation", f"There is no background task {task_id!r}. Known: {known}.")
        return task

    def find(self, task_id: str) -> LiveTask | None:
        """One that this process has begun."""
        return self._live.get(task_id)

    def subscribe(self, listener: Callable[[BackgroundTaskChanged], object]) -> Unsubscribe:
        """Hear of everything that happens to tasks from now on."""
        return self._session.events.on(BackgroundTaskChanged, listener)

    def read_log(self, task_id: str, offset: int = 0) -> LogPage:
        """A page of what a task printed or said, from a line on."""
        self.get(task_id)
        live = self._live.get(task_id)
        path = log_path(self._session.log.path, task_id)
        return read_page(read_lines(path) if live is None else live.log.lines(), offset)

    # --- what is done -----------------------------------------------------------------------------------

    async def spawn(
        self, request: TaskRequest, run: Runner | None = None, *, group_id: str = ""
    ) -> TaskSnapshot:
        """Begin a task, or have it wait for its turn; `run` works on it in the place of the runner of its
        kind."""
        request.check()
        runner = run or self._runners.get(request.kind)
        if runner is None:
            hint = "Bash with run_in_background begins them." if request.kind == "process" else ""
            raise TaskError(
                "validation", f"Nothing here runs tasks of the kind {request.kind}. {hint}".strip()
            )
        waiting = sum(task.snapshot.state == "queued" for task in self._live.values())
        if waiting >= MAX_QUEUED:
            raise TaskError("capacity", f"{waiting} tasks wait already: cancel some, or wait for some.")
        await self._session.open()
        return self._begin(request, runner, wants_slot=True, group_id=group_id)

    def adopt(self, request: TaskRequest, run: Runner, **facts: Any) -> TaskSnapshot:
        """Take in what has been begun already: it waits for no turn."""
        request.check()
        return self._begin(request, run, wants_slot=False, **facts)

    def _begin(self, request: TaskRequest, run: Runner, *, wants_slot: bool, **facts: Any) -> TaskSnapshot:
        if self._closed:
            raise TaskError("capacity", "The session is ending: nothing more is begun.")
        snapshot = request.to_snapshot(f"task-{self._session.options.ports.new_id().replace('-', '')[-8:]}")
        facts |= {"depth": self._depth_of(request), "created_at": self.voice.now()}
        task = LiveTask(request, replace(snapshot, **facts), self._make_log(snapshot), wants_slot=wants_slot)
        if request.kind != "process":
            task.watchdog = Watchdog(self._limits, task.stop)
        for old in [each for each in self.list() if each.ended][:-ENDED_KEPT]:
            self.close(old.task_id)
        self._live[task.id] = task
        self.voice.tell("created", task.snapshot)
        task.driver = asyncio.create_task(self._drive(task, run), name=task.id)
        return task.snapshot

    def _depth_of(self, request: TaskRequest) -> int:
        depth = 1 + (self.get(request.parent_task_id).depth if request.parent_task_id else 0)
        if depth > self._max_depth:
            raise TaskError(
                "capacity", f"A task may begin others only {self._max_depth - 1} deep: do this one here."
            )
        return depth

    def _make_log(self, task: TaskSnapshot) -> TaskLog:
        log = self._session.log
        limit = PROCESS_OUTPUT if task.kind == "process" else self._limits.output_bytes or PROCESS_OUTPUT
        return TaskLog(
            log_path(log.path, task.task_id), lambda texts: log.secrets.redactor.texts(texts), limit
        )

    async def wait(self, task_id: str) -> TaskSnapshot:
        """The task when it has ended."""
        task, live = self.get(task_id), self._live.get(task_id)
        if live is None:
            return task
        await live.ended.wait()
        return live.snapshot

    async def cancel(self, task_id: str) -> TaskSnapshot:
        """End a task; one that has ended stays as it is."""
        task, live = self.get(task_id), self._live.get(task_id)
        if live is None or live.ended.is_set():
            return task
        await self._cancel(live)
        return live.snapshot

    async def _cancel(self, live: LiveTask) -> None:
        live.cancelled = True
        assert live.driver is not None
        live.driver.cancel()
        await asyncio.wait((live.driver,))
        if not live.ended.is_set():  # it had not begun to run
            self._finish(live, "CANCEL", None, "")

    def close(self, task_id: str) -> None:
        """Forget a task that has ended."""
        task = self.get(task_id)
        if not task.ended:
            raise TaskError("validation", f"Task {task_id} is {task.state}: cancel it first, or let it end.")
        self.voice.tell("closed", task)
        self._live.pop(task_id, None)

    def send(self, task_id: str, text: str) -> None:
        """Tell the agent of a task something: it hears it before its next round."""
        task = self.get(task_id)
        child = find_agent(self._session, task)
        if child is None or task.ended:
            why = f"it is {task.state}" if task.agent_id else "it is a process"
            raise TaskError("validation", f"Task {task_id} takes no messages: {why}.")
        try:
            child.steer(text)
        except RobotaError as error:
            raise TaskError("validation", f"Task {task_id} takes no such message: {error}") from error
        self._live[task_id].log.add_line(f"> {text}")
        self.voice.tell("updated", self._live[task_id].snapshot)

    async def shutdown(self) -> None:
        """End all tasks. What could not be ended in time is as if its process were gone."""
        self._closed = True
        self._watch.close()
        live = [task for task in self._live.values() if not task.ended.is_set()]
        if live:
            await asyncio.wait(
                [asyncio.ensure_future(self._cancel(task)) for task in live], timeout=CLOSING_SECONDS
            )

    # --- a task's life ----------------------------------------------------------------------------------

    async def _drive(self, task: LiveTask, run: Runner) -> None:
        signal: Signal = "COMPLETE"
        failure: TaskFailure | None = None
        result = ""
        try:
            await self.slots.take(task)
            self.voice.tell("started", task.take("START", started_at=self.voice.now()))
            if task.watchdog is not None:
                task.watchdog.begin()
            result = await run(Work(self, task))
        except asyncio.CancelledError:
            signal = "CANCEL"
            if task.stop_cause is None and not task.cancelled:
                raise
        except StoppedElsewhere:
            signal, task.quiet = "CANCEL", True
        except Exception as error:  # noqa: BLE001 - a runner is anybody's; the task says what it was
            signal, failure = ("CANCEL", None) if task.interrupted else ("FAIL", explain(error))
        finally:
            self.slots.give(task)
            self._finish(task, signal, failure, result)

    def _finish(self, task: LiveTask, signal: Signal, failure: TaskFailure | None, result: str) -> None:
        if task.watchdog is not None:
            task.watchdog.end()
        task.log.end()
        state = task.snapshot.state
        if task.stop_cause is not None:
            signal, failure = "FAIL", task.stop_cause
        if state == "waiting_permission" and signal == "FAIL":
            signal = "PERMISSION_DENIED"
        elif (state, signal) not in TRANSITIONS and state in _LEAVING:
            task.take(_LEAVING[state])
        if task.error is not None and failure is not None and failure.category == "runner":
            failure = task.error  # what its agent said of it
        ended = task.take(
            signal, ended_at=self.voice.now(), wake_at=None, error=failure, result=result[:RESULT_KEPT]
        )
        self.voice.tell(ended.state, ended)  # type: ignore[arg-type]  # an end has the name of its event
        if not task.quiet and ended.mode == "background":
            self.voice.tell_model(ended, result)
        if task.log.trouble:
            self._session.log.notice(task.log.trouble)
        task.ended.set()
        self.groups.note_end(ended)

    async def sleep(self, task: LiveTask, seconds: float) -> None:
        """Let others have the task's place until so many seconds are over."""
        if task.watchdog is not None:
            task.watchdog.hold()
        wake_at = self.voice.now() + timedelta(seconds=seconds)
        self.slots.give(task)
        self.voice.tell("updated", task.take("SLEEP", wake_at=wake_at))
        await self._session.options.ports.sleep(seconds)
        await self.slots.take(task)
        if task.watchdog is not None:
            task.watchdog.release()
        self.voice.tell("waking", task.take("WAKE", wake_at=None))

    def say(self, task: LiveTask, text: str) -> None:
        task.log.add(text)
        if task.watchdog is not None:
            task.watchdog.read(text)
        self.voice.show("text_delta", task.snapshot, text)
