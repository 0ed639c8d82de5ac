"""`EventService`: what an agent or a session does, by dotted names, for listeners that know no event classes.

It is a view of the one `EventBus`: it keeps no events and carries none of its own. The typed event is in what
a listener gets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from robota.core.bus import log_failure
from robota.core.errors import ConfigurationError
from robota.core.event_names import NAMED_EVENTS, owner_path, plugin_events
from robota.core.events import Event, OwnerPathSegment, RunStarted, SessionInit, SessionShutdown, TurnEvent
from robota.core.given import suggest

if TYPE_CHECKING:
    from robota.core.bus import EventBus, HandlerTable, Unsubscribe


USER_EVENTS = ("user.input",)
EXECUTION_EVENTS = ("execution.start", "execution.complete", "execution.error")
TOOL_EVENTS = ("tool.execute_start", "tool.execute_success", "tool.execute_error")
AGENT_EVENTS = ("agent.created", "agent.completion", "agent.destroyed")
TASK_EVENTS = ("task.started", "task.completed", "task.failed")
EVENT_PREFIXES = ("execution.", "tool.", "agent.", "task.", "user.")
EVENT_NAMES = (*USER_EVENTS, *EXECUTION_EVENTS, *TOOL_EVENTS, *AGENT_EVENTS, *TASK_EVENTS)


class NamedEvent(Struct, frozen=True):
    """Something that happened, under one of its names."""

    name: str
    event: Event
    owner_path: tuple[OwnerPathSegment, ...]
    """Who it is about, from the outermost agent inwards."""


NamedListener: TypeAlias = Callable[[NamedEvent], object]
EventFilter: TypeAlias = Callable[[NamedEvent], bool]


class HasEvents(Protocol):
    """An agent or a session."""

    @property
    def events(self) -> EventBus: ...


class _Handler(Struct):
    id: str
    listener: NamedListener
    accepts: EventFilter | None
    once: bool


class EventService:
    """Publishes the life of whoever has events: its beginning, its runs, their tools and tasks, its end."""

    def __init__(self, source: HasEvents, *, agent_id: str = "") -> None:
        """`agent_id` is the first segment of owner paths; by default the session's id, or the agent's."""
        self._source = source
        self._agent_id = agent_id
        self._handlers: dict[str, list[_Handler]] = {}
        self._ids = count(1)
        self._begun = False
        bus = source.events
        self._stops: list[Unsubscribe] = [
            bus.on_each(_NAMED, self),
            bus.on(SessionInit, self._begin),
            bus.on(SessionShutdown, lambda event: self._publish("agent.destroyed", event, ())),
        ]

    @property
    def agent_id(self) -> str:
        source = self._source
        return self._agent_id or getattr(source, "session_id", "") or getattr(source, "agent_id", "")

    def on(
        self, name: str, listener: NamedListener, *, once: bool = False, filter: EventFilter | None = None
    ) -> str:
        """Call `listener` with each event of that name, of a prefix such as `tool.*`, or of all, `*`; returns
        an id for `off`."""
        known = (*EVENT_NAMES, *(f"{prefix}*" for prefix in EVENT_PREFIXES), "*")
        if name not in known:
            raise ConfigurationError(f"There is no event {name!r}; {suggest(name, known)}")
        handler = _Handler(f"handler-{next(self._ids)}", listener, filter, once)
        self._handlers.setdefault(name, []).append(handler)
        return handler.id

    def once(self, name: str, listener: NamedListener) -> str:
        return self.on(name, listener, once=True)

    def off(self, name: str, handler: str | NamedListener) -> bool:
        """Stop calling a listener, given by its id or itself; false when it was not there."""
        known = self._handlers.get(name, [])
        kept = [each for each in known if handler not in (each.id, each.listener)]
        self._handlers[name] = kept
        return len(kept) < len(known)

    def close(self) -> None:
        """Hear nothing more."""
        for stop in self._stops:
            stop()
        self._stops.clear()

    def _begin(self, event: Event) -> None:
        """The first sign of life: the first record of a journal, or the first run of whoever has none."""
        if not self._begun:
            self._begun = True
            self._publish("agent.created", event, ())

    def _hear(self, event: TurnEvent) -> None:
        if isinstance(event, RunStarted):
            self._begin(event)
        path: tuple[OwnerPathSegment, ...] = ()
        for name in plugin_events(event) if self._handlers else ():
            path = path or owner_path(event, self.agent_id)
            self._publish(name, event, path)

    def _publish(self, name: str, event: Event, path: Sequence[OwnerPathSegment]) -> None:
        told = NamedEvent(name, event, tuple(path) or (OwnerPathSegment("agent", self.agent_id),))
        for key in (name, name.partition(".")[0] + ".*", "*"):
            for handler in tuple(self._handlers.get(key, ())):
                if handler.accepts is not None and not handler.accepts(told):
                    continue
                if handler.once:
                    self.off(key, handler.id)
                try:
                    handler.listener(told)
                except Exception:  # noqa: BLE001 - as on the bus: it is named, and the others hear the event
                    log_failure(handler.listener, name)


_NAMED: HandlerTable = dict.fromkeys(NAMED_EVENTS, EventService._hear)


class EventHistory:
    """A listener that remembers the last events of an agent; when it is full the oldest is forgotten."""

    def __init__(self, agent_id: str = "", *, limit: int = 10_000) -> None:
        self._agent_id = agent_id
        self._events: deque[TurnEvent] = deque(maxlen=limit)

    def __call__(self, event: TurnEvent) -> None:
        self._events.append(event)

    def events(self, *, owner: str | None = None) -> list[TurnEvent]:
        """The events in order; `owner` is the id of an agent, an execution or a tool call on their path."""
        if owner is None:
            return list(self._events)
        return [
            event
            for event in self._events
            if any(segment.owner_id == owner for segment in owner_path(event, self._agent_id))
        ]

    def clear(self) -> None:
        self._events.clear()
