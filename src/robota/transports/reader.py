"""One client that reads a session's events over a connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from robota.core.jsontext import encode

if TYPE_CHECKING:
    from robota.core.events import TurnEvent
    from robota.core.messages import JsonObject
    from robota.transports.event_text import EventTexts

BATCH = 500
"""Events that are read from a journal in one go, in a thread."""

MOST_TOLD = 256
"""Words beside the events that may wait for a slow reader; the oldest are dropped."""


class Frame(NamedTuple):
    """Something for the client: an event of the session, or words about it."""

    name: str
    data: bytes
    """JSON."""
    number: int = 0
    """Of the event; 0 for what no journal has, and nobody can come back to."""


class EventSource(Protocol):
    """Where the events of a session come from: the `Follower` of an open one, or `PastEvents`."""

    after: int
    closed: bool

    @property
    def caught_up(self) -> bool: ...
    async def read(self) -> list[TurnEvent]: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class PastEvents:
    """The events of a session that is not open, from its journal, and then the end."""

    def __init__(self, events: Iterator[TurnEvent], after: int) -> None:
        self._events = events
        self.after = after
        self.closed = False

    @property
    def caught_up(self) -> bool:
        return self.closed

    async def read(self) -> list[TurnEvent]:
        batch = await asyncio.to_thread(list, islice(self._events, BATCH))
        self.closed = self.closed or not batch
        return batch

    def wake(self) -> None:
        """It never waits."""

    def close(self) -> None:
        self.closed = True


class Reader:
    """Gives frames. The session is never waited for by it, nor waits for it."""

    __slots__ = ("_last", "_leave", "_source", "_texts", "_told")

    def __init__(
        self, source: EventSource, texts: EventTexts, leave: Callable[[Reader], None] | None = None
    ) -> None:
        self._source = source
        self._last = source.after
        self._texts = texts
        self._leave = leave
        self._told: deque[Frame] = deque(maxlen=MOST_TOLD)

    @property
    def closed(self) -> bool:
        return self._source.closed

    async def read(self) -> list[Frame]:
        """What came since, waiting for it; nothing after `wake`, and at the end."""
        frames = [self._frame(event) for event in await self._source.read()]
        if self._told and self._source.caught_up:  # else there are events that come before it
            frames += self._told
            self._told.clear()
        return frames

    def _frame(self, event: TurnEvent) -> Frame:
        number = event.seq if event.seq > self._last else 0
        self._last = max(self._last, event.seq)
        return Frame(event.name, self._texts.encode(event), number)

    def tell(self, name: str, data: JsonObject) -> None:
        """Put in words that are no event, behind what has happened so far."""
        self._told.append(Frame(name, encode(data)))
        self._source.wake()

    def wake(self) -> None:
        self._source.wake()

    def close(self) -> None:
        self._source.close()
        leave, self._leave = self._leave, None
        if leave is not None:
            leave(self)
