"""The last events of an agent, kept in memory and found again by run or by owner.

history = EventHistory("main")
agent.events.subscribe(history)
"""

from __future__ import annotations

from collections import deque

from robota.core.event_names import owner_path
from robota.core.events import TurnEvent


class EventHistory:
    """A listener that remembers; when it is full the oldest event is forgotten."""

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
