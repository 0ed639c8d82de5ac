"""One channel from a run to everybody who listens.

Listeners are called synchronously, in the order they subscribed, and every listener sees events in the
order they were emitted: an event emitted from inside a listener waits until the current one has reached
everybody. A listener that raises is logged and keeps its place; it can neither break nor reorder a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, overload

from robota.core.errors import ConfigurationError
from robota.core.events import Event, TurnEvent

if TYPE_CHECKING:
    from asyncio import Future

E = TypeVar("E", bound=Event)
Listener: TypeAlias = Callable[[Any], object]
Unsubscribe: TypeAlias = Callable[[], None]
HandlerTable: TypeAlias = Mapping[type[Event], Callable[[Any, Any], object]]
"""Event type -> function of an owner and the event."""
_COROUTINE = 0x80
"""The flag of an `async def` in its code object; `inspect` would cost 8 ms to read it."""


_SHARED_LISTENERS = 8
_SHARED_PLANS = 64


class Route(NamedTuple):
    """Who hears events of one type, by place: the same for every bus with the same kinds of listeners."""

    tables: tuple[tuple[Callable[[Any, Any], object], int], ...]
    listeners: tuple[int, ...]


_NOBODY = Route((), ())
Plan: TypeAlias = dict[type[Event], Route]
_plans: dict[tuple[object, ...], tuple[Plan, tuple[HandlerTable, ...]]] = {}
"""Plans by the tables and the listeners' types; thousands of sessions share a few.

A plan comes with its tables, so that no other object can get their identity.
"""


class EventBus:
    """Carries the events of one agent to everybody who listens."""

    __slots__ = ("_busy", "_later", "_listeners", "_plan", "_tables", "seq")

    def __init__(self) -> None:
        self._listeners: list[tuple[type[Event], Listener]] = []
        self._tables: tuple[tuple[HandlerTable, Any], ...] = ()
        self._plan: Plan | None = None
        """Found when it is needed, and again after a change of listeners."""
        self._later: deque[Event] | None = None
        self._busy = False
        self.seq = 0
        """The number of the latest turn event."""

    def on(self, kind: type[E], listener: Callable[[E], object]) -> Unsubscribe:
        """Call `listener` with each event of that type or of a type derived from it."""
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise ConfigurationError(f"{kind!r} is not an event type; robota.core.events has them.")
        code = getattr(listener, "__code__", None)
        if not callable(listener):
            raise ConfigurationError(f"A listener is a function that takes an event, not {listener!r}.")
        if code is not None and code.co_flags & _COROUTINE:
            raise ConfigurationError(
                f"Listener {listener!r} is asynchronous; listeners are plain functions. "
                "To await, iterate over `events.open()`."
            )
        entry = (kind, listener)
        self._listeners.append(entry)
        self._plan = None

        def unsubscribe() -> None:
            # By identity: the same function may have subscribed twice.
            self._listeners = [other for other in self._listeners if other is not entry]
            self._plan = None

        return unsubscribe

    def on_each(self, handlers: HandlerTable, owner: object) -> Unsubscribe:
        """Call `handlers[type(event)](owner, event)` for exactly the types in the table.

        It hears each event before the listeners do, and `owner.fail(event, error)` tells of a handler that
        failed. Whatever the number of types, it costs the bus one entry:
        the table belongs to the owner's class.
        """
        entry = (handlers, owner)
        self._tables += (entry,)
        self._plan = None

        def unsubscribe() -> None:
            self._tables = tuple(other for other in self._tables if other is not entry)
            self._plan = None

        return unsubscribe

    def subscribe(self, listener: Callable[[TurnEvent], object]) -> Unsubscribe:
        """Call `listener` with every turn event. Replay events are asked for by type, through `on`."""
        return self.on(TurnEvent, listener)

    @overload
    def open(self) -> EventStream[TurnEvent]: ...
    @overload
    def open(self, kind: type[E]) -> EventStream[E]: ...
    def open(self, kind: type[Event] = TurnEvent) -> EventStream[Any]:
        """The events from now on, to iterate over inside `async with bus.open() as events`."""
        return EventStream(self, kind)

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody would see an event of that type; lets the loop skip building it."""
        plan = self._plan
        if plan is None:
            plan = self._find_plan()
        return (plan.get(kind) or self._route(plan, kind)) is not _NOBODY

    def next_seq(self) -> int:
        self.seq += 1
        return self.seq

    def emit(self, event: Event) -> None:
        if not self._listeners and not self._tables:
            return
        if self._busy:
            if self._later is None:
                self._later = deque()
            self._later.append(event)
            return
        self._busy = True
        try:
            self._deliver(event)
            while self._later:
                self._deliver(self._later.popleft())
        finally:
            self._busy = False

    def _deliver(self, event: Event) -> None:
        kind = type(event)
        plan = self._plan
        if plan is None:
            plan = self._find_plan()
        by_table, by_listener = plan.get(kind) or self._route(plan, kind)
        tables, listeners = self._tables, self._listeners  # as they are now: hearing may change them
        for handler, at in by_table:
            owner = tables[at][1]
            try:
                handler(owner, event)
            except Exception as error:  # noqa: BLE001 - logged there, if its owner does not tell of it
                told = getattr(owner, "fail", None)
                log_failure(handler, event.name) if told is None else told(event, error)
        for at in by_listener:
            listener = listeners[at][1]
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - logged there
                log_failure(listener, event.name)

    def _find_plan(self) -> Plan:
        """The plan for the listeners as they are; a bus with many has one of its own."""
        tables = tuple(handlers for handlers, _ in self._tables)
        if len(self._listeners) > _SHARED_LISTENERS:
            self._plan = {}
            return self._plan
        kinds = [kind for kind, _ in self._listeners]
        shape = (*map(id, tables), None, *kinds)
        known = _plans.get(shape)
        if known is None:
            if len(_plans) >= _SHARED_PLANS:
                _plans.clear()
            known = _plans[shape] = ({}, tables)
        self._plan = known[0]
        return self._plan

    def _route(self, plan: Plan, kind: type[Event]) -> Route:
        tables = tuple((hs[kind], at) for at, (hs, _) in enumerate(self._tables) if kind in hs)
        listeners = tuple(at for at, (base, _) in enumerate(self._listeners) if issubclass(kind, base))
        plan[kind] = route = Route(tables, listeners) if tables or listeners else _NOBODY
        return route


def log_failure(listener: object, event: str) -> None:
    import logging  # noqa: PLC0415 - 11 ms that a healthy run never needs

    logging.getLogger("robota.events").exception(
        "Listener %r failed on event %r; the run goes on.", listener, event
    )


class EventStream(AsyncIterator[E]):
    """Events as an async iterator: a deque and at most one waiting future, without a bound.

    A local run produces thousands of events, not millions; dropping belongs to a transport that talks to a
    slow network.
    """

    __slots__ = ("_closed", "_queue", "_unsubscribe", "_waiter")

    def __init__(self, bus: EventBus, kind: type[E]) -> None:
        self._queue: deque[E] = deque()
        self._waiter: Future[None] | None = None
        self._closed = False
        self._unsubscribe = bus.on(kind, self._put)

    @property
    def waiting(self) -> int:
        """Events that came and were not read yet."""
        return len(self._queue)

    async def __aenter__(self) -> EventStream[E]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening; what is queued can still be read."""
        self._unsubscribe()
        self._closed = True
        self._wake()

    def _put(self, event: E) -> None:
        self._queue.append(event)
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def __anext__(self) -> E:
        queue = self._queue
        while not queue:
            if self._closed:
                raise StopAsyncIteration
            import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return queue.popleft()
