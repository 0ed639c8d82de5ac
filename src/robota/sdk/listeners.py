"""`session.on(name, function)`: events by the names that front ends know, with what they need of them; and
`open_follower`: events by their numbers, in batches, for whoever passes them on to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from robota.core.bus import EventBus, Unsubscribe, log_failure
from robota.core.context import ContextWindowState
from robota.core.errors import ConfigurationError
from robota.core.events import EVENT_TYPES, ContextUpdated, TurnEvent
from robota.core.given import suggest
from robota.sessions.follow import Follower

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

Listener: TypeAlias = Callable[[Any], object]

OWN_NAMES = (
    "text_delta",
    "tool_start",
    "tool_end",
    "thinking",
    "complete",
    "error",
    "context_update",
    "interrupted",
)
"""Events with a payload of their own; every other turn event comes as it is, under its name on the wire."""
_COROUTINE = 0x80


class Listeners:
    """Who listens to a session by name. One that raises is logged and keeps its place."""

    __slots__ = ("_by_name", "_events", "_follows_context")

    def __init__(self, events: EventBus) -> None:
        self._events = events
        self._by_name: dict[str, list[Listener]] = {name: [] for name in OWN_NAMES}
        self._follows_context = False

    def on(self, name: str, listener: Listener) -> Unsubscribe:
        own = self._by_name.get(name)
        if own is None:
            kind = EVENT_TYPES.get(name)
            if kind is None or not issubclass(kind, TurnEvent):
                known = [each for each, type_ in EVENT_TYPES.items() if issubclass(type_, TurnEvent)]
                raise ConfigurationError(f"There is no event {name!r}; {suggest(name, {*known, *OWN_NAMES})}")
            return self._events.on(kind, listener)
        code = getattr(listener, "__code__", None)
        if not callable(listener):
            raise ConfigurationError(f"A listener is a function that takes an event, not {listener!r}.")
        if code is not None and code.co_flags & _COROUTINE:
            raise ConfigurationError(
                f"Listener {listener!r} is asynchronous; listeners are plain functions. To await, iterate "
                "over session.stream(prompt) or session.events.open()."
            )
        own.append(listener)
        if name == "context_update" and not self._follows_context:  # measured for those who hear of it
            self._follows_context = True
            self._events.on(ContextUpdated, self._tell_context)

        def unsubscribe() -> None:
            if listener in own:
                own.remove(listener)

        return unsubscribe

    def off(self, name: str, listener: Listener) -> None:
        """Take back an `on` for one of our own names; no harm if there was none."""
        own = self._by_name.get(name)
        if own is not None and listener in own:
            own.remove(listener)

    def _tell_context(self, event: ContextUpdated) -> None:
        state = ContextWindowState(
            max_tokens=event.max_tokens,
            used_tokens=event.used_tokens,
            used_percentage=event.used_percentage,
            remaining_percentage=event.remaining_percentage,
        )
        self.emit("context_update", state)

    def emit(self, name: str, payload: object) -> None:
        for listener in tuple(self._by_name[name]):
            try:
                listener(payload)
            except Exception:  # noqa: BLE001 - logged; one listener must not cost the others their event
                log_failure(listener, name)


def open_follower(session: InteractiveSession, after: int = 0) -> Follower:
    """The events behind number `after`, whenever they happened; `close` it when nobody reads any more."""
    return Follower(session.session.log, session.events, after)
