"""The events of a session for somebody who comes late or was away: each numbered event once, in order.

The journal tells them under the numbers they had when they happened; what it does not have yet comes live.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import islice
from typing import Any

from msgspec import UNSET, Struct, convert
from msgspec.structs import asdict, replace

from robota.core import events
from robota.core.bus import EventBus, Unsubscribe
from robota.core.context import window_state
from robota.core.events import SubagentEvent, TurnEvent
from robota.core.messages import AssistantMessage, JsonObject, Part, TokenUsage, ToolCall, prompt_text
from robota.core.model_call import ROUND_SEPARATOR
from robota.core.tool_call import NOT_STARTED
from robota.sessions.journal import records
from robota.sessions.journal.decoding import methods_by_record, parse_arguments, split_record
from robota.sessions.journal.pieces import ANSWER, INPUT, PROGRESS, THOUGHT
from robota.sessions.journal.port import JournalProblem, SessionJournal
from robota.sessions.journal.records import Record, RunRecord
from robota.sessions.log import SessionLog

BATCH = 500
"""Events that are read from the journal in one go, in a thread."""
FAR_BEHIND = 1_000
"""Events that may wait for a slow reader; one who is further behind gets them from the journal."""
_AS_WRITTEN: dict[type[Record], type[TurnEvent]] = {
    records.NoticeRecord: events.Noticed,
    records.ServerToolRecord: events.ServerToolUsed,
    records.RetryRecord: events.ProviderRetried,
    records.CompactedRecord: events.Compacted,
    records.ModelRecord: events.ModelChanged,
    records.SettingsRecord: events.SettingsChanged,
    records.TaskRecord: events.BackgroundTaskChanged,
    records.GroupRecord: events.BackgroundGroupChanged,
    records.QuestionRecord: events.QuestionAsked,
    records.ClosedRecord: events.QuestionClosed,
}
_ENDS: dict[str, type[TurnEvent]] = {
    kind.name: kind for kind in (events.RunCompleted, events.RunFailed, events.RunInterrupted)
}


class EventReader(Struct, eq=False):
    """Takes records in order and gives the events that they tell of."""

    event: int = 0
    """The number of the last event that was told."""
    _execution: str = ""
    _prompt: str = ""
    _display: str = ""
    _answer: str = ""
    _calls: tuple[ToolCall, ...] = ()
    _arguments: dict[int, JsonObject] = {}
    """Of the calls that were begun, by their index."""

    def take(self, record: Record) -> list[TurnEvent]:
        """The events that the record tells of; none of a journal that does not number them."""
        made = [event for part in split_record(record) for event in self._make(part)]
        if not record.ev:
            return []
        first, self.event = record.ev - len(made) + 1, record.ev
        return [replace(event, seq=first + at) for at, event in enumerate(made)]

    def _make(self, record: Record) -> Iterable[TurnEvent]:
        kind = _AS_WRITTEN.get(type(record))
        if kind is not None and isinstance(record, RunRecord):
            return (self._tell(kind, record),)
        make = _METHODS.get(type(record))
        return () if make is None else make(self, record) or ()

    def _tell(self, kind: type[TurnEvent], record: RunRecord, **more: Any) -> TurnEvent:
        """An event with the fields that it has in common with its record."""
        known = {**asdict(record), "seq": 0, "execution_id": self._execution if record.run else "", **more}
        return kind(**{name: known[name] for name in kind.__struct_fields__ if name in known})

    # --- the run ------------------------------------------------------------------------------------------

    def take_subagent(self, record: records.SubagentRecord) -> Iterable[TurnEvent]:
        yield convert({"event": "subagent", "agentId": record.agent_id, "inner": record.inner}, SubagentEvent)

    def take_user(self, record: records.UserRecord) -> None:
        parts = None if record.parts is None else convert(record.parts, tuple[Part, ...])
        words = record.input if record.prompt is None else record.prompt
        self._prompt = words if parts is None else prompt_text(parts)
        self._display = "" if record.display in (None, self._prompt) else record.display or ""

    def take_run_start(self, record: records.RunBegan) -> Iterator[TurnEvent]:
        self._execution = record.execution_id
        prompt = self._prompt if record.prompt is None else record.prompt
        yield self._tell(
            events.RunStarted,
            record,
            execution_id=record.execution_id,
            prompt=prompt,
            display=self._display,
        )

    def take_pre_run(self, record: records.PreRunRecord) -> Iterator[TurnEvent]:
        if record.used_tokens is not None:
            yield _context(record.used_tokens, record.max_tokens)

    def take_context(self, record: records.ContextRecord) -> Iterator[TurnEvent]:
        yield _context(record.used_tokens, record.max_tokens)

    def take_provider_request(self, record: records.RequestRecord) -> Iterator[TurnEvent]:
        self._calls = ()  # if the record of the next answer is lost, these are not its calls
        if record.round > 1:
            yield events.TextDelta(ROUND_SEPARATOR, record.round, execution_id=self._execution)

    def take_message(self, record: records.MessageRecord) -> Iterator[TurnEvent]:
        message = record.message
        if isinstance(message, AssistantMessage):
            self._answer, self._calls = message.content, message.tool_calls
        elif message is not None and message.metadata.get("origin") == "steering":
            yield events.PromptSteered(message.content, execution_id=self._execution)

    def take_run_end(self, record: records.RunEnded) -> Iterator[TurnEvent]:
        text = self._answer if record.text is None else record.text
        usage = TokenUsage() if record.usage is None else record.usage
        yield self._tell(_ENDS.get(record.outcome, events.RunCompleted), record, text=text, usage=usage)

    # --- replies and tools ----------------------------------------------------------------------------------

    def take_stream(self, record: records.Stream) -> Iterator[TurnEvent]:
        place, number = record.pieces.first, record.round
        run: dict[str, Any] = {"execution_id": self._execution}
        for kind, text, call in record.pieces.each(native=False):
            if kind in ANSWER:
                yield events.TextDelta(text, number, place, **run)
                place += 1
            elif kind == THOUGHT:
                yield events.ReasoningDelta(text, number, **run)
            elif kind == INPUT:
                names = dict(zip(("index", "tool_call_id", "tool_name"), call, strict=True))
                yield events.ToolInputDelta(**names, delta=text, round=number, **run)
            elif kind == PROGRESS:
                id, name = self._call_id(number, call), self._call(call).name
                yield events.ToolProgressed(call_id=id, tool_name=name, text=text, round=number, **run)

    def take_tool_start(self, record: records.CallBegan | records.CallEnded) -> Iterator[TurnEvent]:
        call = self._call(record.index)
        arguments = parse_arguments(call.arguments) if record.parameters is UNSET else record.parameters
        self._arguments[record.index] = arguments or {}
        yield self._tell(
            events.ToolStarted,
            record,
            call_id=self._call_id(record.round, record.index),
            tool_call_id=call.id,
            tool_name=call.name,
            arguments=arguments or {},
        )

    def take_tool_result(self, record: records.CallEnded) -> Iterator[TurnEvent]:
        if record.error_code == NOT_STARTED:
            yield from self.take_tool_start(record)
        id, told = self._call_id(record.round, record.index), self._call(record.index).id
        arguments = self._arguments.get(record.index, {})
        yield self._tell(events.ToolEnded, record, call_id=id, tool_call_id=told, arguments=arguments)

    def _call(self, index: int) -> ToolCall:
        return self._calls[index] if index < len(self._calls) else ToolCall("", "")

    def _call_id(self, round_number: int, index: int) -> str:
        return f"{self._execution}-r{round_number}-{index}"


_METHODS = methods_by_record(EventReader)


def _context(used: int, limit: int) -> TurnEvent:
    return events.ContextUpdated(**asdict(window_state(used, limit)))


class Follower:
    """All events behind number `after`: first from the journal, then what it does not have yet, then live.

    Events without a number of their own come live only, with the number of the event before them. What
    waits for a slow reader is bounded: behind that bound it is dropped, and read from the journal again.
    """

    __slots__ = (
        "_bounded", "_bus", "_known", "_log", "_lost", "_queue", "_unsubscribe", "_unwritten", "_waiter",
        "_woken", "after", "closed",
    )  # fmt: skip

    def __init__(self, log: SessionLog, bus: EventBus, after: int = 0) -> None:
        self._log = log
        self._bus = bus
        # A number that was never given counts as the last one: what comes next is behind it.
        self.after = min(after, bus.seq) if log.opened else after
        """The number of the last event that was read."""
        self.closed = False
        """Nothing more comes: somebody left, or events were lost that no journal has."""
        self._queue: deque[TurnEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._woken = self._lost = False
        self._join()

    def _join(self) -> None:
        # From the first line to the last nothing can happen: what is live begins where the rest ends.
        log, bus = self._log, self._bus
        self._lost = False
        self._unsubscribe: Unsubscribe = bus.on(TurnEvent, self._put)
        unwritten = [] if log.event_log is None else log.event_log.unwritten()
        self._unwritten = [event for event in unwritten if event.seq > self.after]
        journal = log.journal
        written = bus.seq if not unwritten else unwritten[0].seq - 1
        up_to_date = log.opened and written <= self.after
        self._bounded = log.opened
        until = written if log.opened else None
        self._known = None if journal is None or up_to_date else _read(journal, self.after, until)

    def _put(self, event: TurnEvent) -> None:
        queue = self._queue
        if len(queue) >= FAR_BEHIND:
            queue.clear()
            self._unsubscribe()
            self._lost = True
            self.closed = self._log.journal is None
        else:
            queue.append(event)
        if self._waiter is not None:
            self._release()

    @property
    def caught_up(self) -> bool:
        """Whether everything that has happened was read."""
        return self._known is None and not (self._unwritten or self._queue or self._lost)

    async def read(self) -> list[TurnEvent]:
        """What came since, waiting for it; nothing after `wake`, and when it is closed."""
        while not self.closed:
            if self._known is not None:
                batch = await asyncio.to_thread(list, islice(self._known, BATCH))
                if not batch:
                    self._known = None
                    if not self._bounded:  # a journal opened meanwhile was read beyond the moment of joining
                        self._queue = deque(event for event in self._queue if event.seq > self.after)
            else:
                batch, self._unwritten = [*self._unwritten, *self._queue], []
                self._queue.clear()
            if batch:
                self.after = max(self.after, batch[-1].seq)
                return batch
            if self._known is None and not self._unwritten and not await self._wait():
                break
            if self._lost and not self._queue:
                self._join()
        return []

    async def _wait(self) -> bool:
        """Until something has come; false when somebody wants to go on without it."""
        if not (self._queue or self._lost or self._woken or self.closed):
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        woken, self._woken = self._woken, False
        return not woken

    def wake(self) -> None:
        """End the wait of whoever reads."""
        self._woken = True
        self._release()

    def _release(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def close(self) -> None:
        """Stop listening. Leaving it leaves the session alone."""
        self.closed = True
        self._unsubscribe()
        self._queue.clear()
        self._release()


async def follow(log: SessionLog, bus: EventBus, after: int) -> AsyncGenerator[TurnEvent, None]:
    """The same one by one."""
    follower = Follower(log, bus, after)
    try:
        while not follower.closed:
            for event in await follower.read():
                yield event
    finally:
        follower.close()


def read_events(journal: SessionJournal, after: int = 0) -> Iterator[TurnEvent]:
    """The events that a journal has, behind number `after`; it blocks."""
    return _read(journal, after, None)


def _read(journal: SessionJournal, after: int, until: int | None) -> Iterator[TurnEvent]:
    if journal.path and not os.path.exists(journal.path):
        return  # nothing has happened yet
    reader = EventReader()
    for item in journal.read(after_event=after):
        if isinstance(item, JournalProblem):
            continue
        for event in reader.take(item):
            if until is not None and event.seq > until:
                return
            if event.seq > after:
                yield event
