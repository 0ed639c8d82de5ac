"""The events of a session for somebody who comes late or was away: each numbered event once, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from itertools import islice

from robota.core.bus import EventBus
from robota.core.events import TurnEvent
from robota.sessions.journal.events import EventReader
from robota.sessions.journal.port import JournalProblem, SessionJournal
from robota.sessions.log import SessionLog

BATCH = 500
"""Events that are read from the journal in one go, in a thread."""
FAR_BEHIND = 1_000
"""Events that may wait for a slow reader; one who is further behind gets them from the journal."""


async def follow(log: SessionLog, events: EventBus, after: int) -> AsyncGenerator[TurnEvent, None]:
    """All events behind number `after`: first from the journal, then what it does not have yet, then live.

    Events without a number of their own come live only, with the number of the event before them.
    """
    while True:
        with events.open(TurnEvent) as live:
            # From here to the first await nothing can happen: what is live begins where the rest ends.
            unwritten = [] if log.event_log is None else log.event_log.unwritten()
            journal, written = log.journal, events.seq if not unwritten else unwritten[0].seq - 1
            if journal is not None:
                known = _read(journal, after, written if log.opened else None)
                while batch := await asyncio.to_thread(list, islice(known, BATCH)):
                    for event in batch:
                        after = event.seq
                        yield event
            for event in unwritten:
                if event.seq > after:
                    after = event.seq
                    yield event
            async for event in live:
                after = max(after, event.seq)
                yield event
                if live.waiting > FAR_BEHIND and journal is not None:
                    break
            else:
                return


def _read(journal: SessionJournal, after: int, until: int | None) -> Iterator[TurnEvent]:
    reader = EventReader()
    for item in journal.read(after_event=after):
        if isinstance(item, JournalProblem):
            continue
        for event in reader.take(item):
            if until is not None and event.seq > until:
                return
            if event.seq > after:
                yield event
