"""The recorded world: whatever a session asks of the outside, it gets what it got the first time.

When the recording has no more to give, that is where the user stopped the session, or where its process
ended: it is stopped again. Unless nobody had stopped it: then the code asks for something it did not ask for
before, and is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from robota.core import events
from robota.core.messages import ToolMessage
from robota.core.ports import Ports
from robota.core.tool import ToolContext
from robota.core.tool_call import NOT_STARTED
from robota.sessions.compaction.kept_state import CompactionSection, read_sections
from robota.sessions.journal.records import ClosedRecord, HookRecord, QuestionRecord, Record
from robota.sessions.permissions.permission_enforcer import OVER_BUDGET
from robota.sessions.replay.recorded import DECISION, START, Action, CallOrder, ReplayMismatch, Segment
from robota.sessions.replay.recording import INTERRUPTED, UNCOUNTED, is_fired_outside

if TYPE_CHECKING:
    from robota.sessions.replay.session_replay import SegmentReplay
    from robota.sessions.session import Session

AFTER_END = frozenset(("hook_executed",))
"""Records that may follow the end of a compaction."""


class RecordClock(Struct, eq=False):
    """Does what was done meanwhile at the state of the clock at which it was done."""

    action: Action
    _do: Callable[[Record], None]
    _time: int = 0
    """Records so far."""
    _notices: int = 0
    """Since then."""
    _at_it: bool = False
    """Something is being done: its own records do not count, and what comes next has to wait for it."""
    _told: int = 0
    """Outcomes of hooks that were told meanwhile, whose records do not count either, and may come later."""

    def begin(self, action: Action) -> None:
        self.action = action
        self._time = self._notices = self._told = 0
        self.catch_up()

    def end(self) -> None:
        """What was not done in its place by other code is done now."""
        for time in sorted(self.action.asides):
            self._time = time
            self.catch_up(late=True)

    def tick(self, event: str) -> None:
        """The session wrote a record."""
        if event == "notice":
            self._notices += 1
        elif event in UNCOUNTED:
            return
        elif event == "hook_executed" and self._told:
            self._told -= 1
            return
        else:
            self.catch_up(late=True)
            self._time, self._notices = self._time + 1, 0
        self.catch_up()

    def catch_up(self, *, late: bool = False) -> None:
        """Do what is due: at this time and after so many notices, or in any case if `late`."""
        waiting = None if self._at_it else self.action.asides.get(self._time)
        while waiting and (late or waiting[0][0] <= self._notices):
            self.do(waiting.pop(0)[1])

    def do(self, aside: Record) -> None:
        """Do to the session what was done while it was at work."""
        now, self._at_it = (self._time, self._notices), True
        self._told += isinstance(aside, HookRecord)
        self._do(aside)
        self._time, self._notices = now
        self._at_it = False

    def is_beyond(self, event: str) -> bool:
        """Whether such a record is more than there is of an action whose process ended."""
        action = self.action
        if self._at_it or self._time < action.clock:
            return False
        if event == "notice":
            return self._notices >= action.last_notices
        return event not in UNCOUNTED and (not action.finished or event in AFTER_END)


AFTER_TOOL = ("PostToolUse", "PostToolUseFailure")


class ReplayWorld:
    """Holds the action being replayed; every port answers from it."""

    session: Session
    """Known from `follow` on, before it is asked for anything."""

    def __init__(self, segment: Segment, replay: SegmentReplay) -> None:
        self.facts = segment.facts
        self.action = segment.start
        self.replay = replay
        """Whoever gives it again, told of what is asked for."""
        self._last = segment.actions[-1] if segment.actions and not segment.closed else None
        self.clock = RecordClock(segment.start, replay.do_aside)
        self._marks = 0
        self._to_begin = -1
        """How many calls are still to be begun before the run is told to stop."""
        self._room = 0
        """How many more calls may run at the same time."""
        self._spare = 0
        self._timed: dict[Any, str] = {}

    def follow(self, session: Session) -> None:
        self.session = session
        hear = session.events.on
        hear(events.RunStarted, self.note_run)
        hear(events.ToolBatchStarted, self.note_batch)
        hear(events.ToolStarted, self.note_start)
        hear(events.ToolEnded, self.note_end)
        hear(events.PermissionDecided, self.note_decision)
        hear(events.HookExecuted, self.note_hook)
        hear(events.HistoryMutation, self.note_message)
        for kind in (events.ProviderResponseRaw, events.SummaryCalled, events.CompactionMarked):
            hear(kind, self.note_mark)
        for end in (events.RunCompleted, events.RunFailed, events.RunInterrupted, events.ContextUpdated):
            hear(end, self.catch_up)

    def begin(self, action: Action) -> None:
        self.action = action
        self.clock.begin(action)

    # --- where the session was stopped ------------------------------------------------------------------

    @property
    def may_be_stopped(self) -> bool:
        """Whether the action was stopped, or the recording ends before it says so."""
        return self.action.interrupted or (self.action is self._last and not self.action.finished)

    async def stop_here(self, what: str, *, after_end: bool = False) -> NoReturn:
        """There is nothing more on record. `after_end`: also an action whose end is known may lack this."""
        action = self.action
        if not action.interrupted:
            if action is not self._last or (action.finished and not after_end):
                self.replay.note_mismatch(what)
                raise ReplayMismatch(f"The recording has no {what} at this point.")
            self.replay.end_early()
        await self.abort()

    @property
    def _is_in_run_task(self) -> bool:
        """Whether this is the task that does everything but the calls of a batch."""
        return self.session.agent.is_in_own_task

    async def abort(self) -> NoReturn:
        """Stop the session where the user stopped it."""
        if not self.session.is_running:
            raise ReplayMismatch("The recording ends at this point.")
        self.session.abort()
        await self._end_here()

    async def _end_here(self) -> NoReturn:
        """Wait to be cancelled; a call of several has a task of its own, which is cancelled at once."""
        task = asyncio.current_task()
        if task is not None and not self._is_in_run_task:
            task.cancel()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nothing sets this future")

    async def interrupt(self, call_id: str, what: str) -> NoReturn:
        """Stop one call where the recording has nothing more for it. Calls that were stopped together are
        stopped one by one, in the order in which they ended; after the last of them the run is stopped."""
        await self.order_of(call_id).wait(call_id)
        recorded = self.action.results.get(call_id)
        cut = self.may_be_stopped and recorded is not None and recorded.error_code == INTERRUPTED
        if not cut or self._is_in_run_task:
            await self.stop_here(what)
        await self._end_here()

    def interrupt_soon(self) -> None:
        """Stop a call that waits for others, as soon as it does."""
        task = asyncio.current_task()
        if task is not None and not self._is_in_run_task:
            asyncio.get_running_loop().call_soon(task.cancel)

    def note_run(self, event: events.RunStarted) -> None:
        self._marks = 0
        self.note_mark(event)

    def catch_up(self, event: object) -> None:
        """What was done after a run may be done."""
        self.clock.catch_up()

    def note_mark(self, event: object) -> None:
        """A run that was stopped, but not in a reply, is stopped after the same event."""
        self._marks += 1
        run = self.action.run
        if run is not None and run.ends_after_marks and self._marks == run.marks:
            self.session.agent.abort()

    def note_hook(self, event: events.HookExecuted) -> None:
        call_id = event.data.get("callId")
        if not call_id and not is_fired_outside(str(event.data.get("hook")), call_id):
            self.note_mark(event)

    def note_message(self, event: events.HistoryMutation) -> None:
        if event.execution_id and not isinstance(event.message, ToolMessage):
            self.note_mark(event)

    def is_beyond(self, event: str) -> bool:
        """Whether the process that was recorded ended before it could write such a record."""
        return self.action is self._last and self.clock.is_beyond(event)

    # --- clock and ids ------------------------------------------------------------------------------------

    def ports(self) -> Ports:
        return Ports(now=self.now, monotonic=self.monotonic, new_id=self.new_id, random=lambda: 0.5)

    def new_id(self) -> str:
        if self.action.ids:
            return self.action.ids.popleft()
        self._spare += 1
        return f"replay-{self._spare}"

    def now(self) -> float:
        return self.action.times.popleft() if self.action.times else 0.0

    def monotonic(self) -> float:
        """Zero, except at the end of a call: then what the call took."""
        call_id = self._timed.pop(asyncio.current_task(), "")
        recorded = self.action.results.get(call_id)
        return 0.0 if recorded is None else recorded.duration

    # --- tools --------------------------------------------------------------------------------------------

    def order_of(self, call_id: str) -> CallOrder:
        return self.action.order_of(call_id.rpartition("-")[0])

    def note_batch(self, event: events.ToolBatchStarted) -> None:
        """If only some of the calls were begun, the run had been told to stop when the next one was due: at
        once where there was room for it, else when another one ended."""
        self._write_waiting()
        begun = self.action.starts.get(event.batch_id, 0)
        cut = self.may_be_stopped and begun < event.request_count
        self._to_begin = begun if cut else -1
        if self._to_begin == 0:
            self.begin_no_more()
        self._room = event.request_count if event.max_concurrency is None else max(event.max_concurrency, 1)
        self.note_mark(event)

    def note_call(self, call_id: str) -> None:
        """The current task carries out this call."""
        self._timed[asyncio.current_task()] = call_id

    def note_start(self, event: events.ToolStarted) -> None:
        self.note_call(event.call_id)
        self.order_of(event.call_id).passed(event.call_id, START)
        task = self.session.agent.control
        if task is not None and not task.is_stopping:  # else the call was never begun, and this is the end
            self._write_waiting()
        self._to_begin -= 1
        self._room -= 1
        if self._to_begin == 0 and self._room > 0:
            self.begin_no_more()

    def _write_waiting(self) -> None:
        """Have the start of a batch or call on record where it is told, and do what was done behind it."""
        log = self.session.log.event_log
        if log is not None:
            log.calls.flush()

    def note_end(self, event: events.ToolEnded) -> None:
        if event.error_code == NOT_STARTED:
            return
        self.order_of(event.call_id).passed(event.call_id)
        self._room += 1
        if self._to_begin == 0:
            self.begin_no_more()
        self.note_mark(event)

    def known_refusal(self, call_id: str) -> str | None:
        """Why the budget did not let this call run, if that was so."""
        recorded = self.action.results.get(call_id)
        return recorded.error if recorded is not None and recorded.error_code == OVER_BUDGET else None

    def begin_no_more(self) -> None:
        """Have the run begin no other call; those under way end as they did."""
        task = self.session.agent.control
        if task is not None:
            task.aborted = True

    async def take_turn(self, call_id: str) -> None:
        """Wait until it is this call's turn to end; a call that was interrupted is interrupted again."""
        await self.order_of(call_id).wait(call_id)
        recorded = self.action.results.get(call_id)
        cut = recorded is not None and recorded.error_code == INTERRUPTED and self.may_be_stopped
        heard_of = call_id in self.action.originals or self.action.had(call_id, *AFTER_TOOL)
        if cut or (recorded is None and not heard_of):
            await self.interrupt(call_id, f"result of the call {call_id}")

    def tell_again(self, context: ToolContext) -> None:
        """What a tool showed and asked while it ran."""
        for item in self.action.told.get(context.call_id, ()):
            if isinstance(item, QuestionRecord):
                self.session.log.tell(events.QuestionAsked, question=item.question)
            elif isinstance(item, ClosedRecord):
                said = {"answer": item.answer, "by": item.by, "reason": item.reason}
                self.session.log.tell(events.QuestionClosed, id=item.id, **said)
            elif isinstance(item, str):
                context.progress(item)

    def note_decision(self, event: events.PermissionDecided) -> None:
        call_id = str(event.data.get("callId"))
        self.order_of(call_id).passed(call_id, DECISION)

    # --- compaction -------------------------------------------------------------------------------------

    def sections(self) -> Sequence[CompactionSection]:
        """What code wrote into the summary."""
        return read_sections(self.action.sections.popleft()) if self.action.sections else ()
