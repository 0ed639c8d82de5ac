"""Events as JSON objects, and back."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from robota.core.errors import ValidationError
from robota.core.events import EVENT_TYPES, Event
from robota.core.messages import Json, JsonObject


def event_to_wire(event: Event) -> JsonObject:
    """The event as plain JSON values, tagged by `event`."""
    encoded: JsonObject = msgspec.to_builtins(event, enc_hook=list)  # views of history become lists
    return encoded


def event_from_wire(data: Mapping[str, Json]) -> Event:
    """The event that `event_to_wire` wrote."""
    kind = EVENT_TYPES.get(str(data.get("event")))
    if kind is None:
        raise ValidationError(
            f"Unknown event {data.get('event')!r}; known: {', '.join(sorted(EVENT_TYPES))}."
        )
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValidationError(f"Event {kind.name!r} is malformed: {error}.", field="event") from error
