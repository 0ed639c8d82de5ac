"""The events of a session for somebody who comes late or was away: each numbered event once, in order."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from itertools import islice

from robota.core.bus import EventBus, Unsubscribe
from robota.core.events import TurnEvent
from robota.sessions.journal.events import EventReader
from robota.sessions.journal.port import JournalProblem, SessionJournal
from robota.sessions.log import SessionLog

BATCH = 500
"""Events that are read from the journal in one go, in a thread."""
FAR_BEHIND = 1_000
"""Events that may wait for a slow reader; one who is further behind gets them from the journal."""


class Follower:
    """All events behind number `after`: first from the journal, then what it does not have yet, then live.

    Events without a number of their own come live only, with the number of the event before them. What
    waits for a slow reader is bounded: behind that bound it is dropped, and read from the journal again.
    """

    __slots__ = (
        "_bounded", "_events", "_known", "_log", "_lost", "_queue", "_unsubscribe", "_unwritten", "_waiter",
        "_woken", "after", "closed",
    )  # fmt: skip

    def __init__(self, log: SessionLog, events: EventBus, after: int = 0) -> None:
        self._log = log
        self._events = events
        # A number that was never given counts as the last one: what comes next is behind it.
        self.after = min(after, events.seq) if log.opened else after
        """The number of the last event that was read."""
        self.closed = False
        """Nothing more comes: somebody left, or events were lost that no journal has."""
        self._queue: deque[TurnEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._woken = self._lost = False
        self._join()

    def _join(self) -> None:
        # From the first line to the last nothing can happen: what is live begins where the rest ends.
        log, events = self._log, self._events
        self._lost = False
        self._unsubscribe: Unsubscribe = events.on(TurnEvent, self._put)
        unwritten = [] if log.event_log is None else log.event_log.unwritten()
        self._unwritten = [event for event in unwritten if event.seq > self.after]
        journal = log.journal
        written = events.seq if not unwritten else unwritten[0].seq - 1
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
                    self._end_known()
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

    def _end_known(self) -> None:
        self._known = None
        if not self._bounded:  # a journal that was opened meanwhile was read beyond the moment of joining
            self._queue = deque(event for event in self._queue if event.seq > self.after)

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


async def follow(log: SessionLog, events: EventBus, after: int) -> AsyncGenerator[TurnEvent, None]:
    """The same one by one."""
    follower = Follower(log, events, after)
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
