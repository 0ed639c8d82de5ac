"""Events as JSON text for the wire, made once for all who read them."""

from __future__ import annotations

from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from robota.core.event_names import event_to_wire
from robota.core.events import SubagentEvent, TextDelta, TurnEvent
from robota.core.jsontext import encode

KEPT = 64
"""Texts that are kept for readers who come to them a little later than others."""


class _Delta(Struct, frozen=True, tag_field="event", tag="text_delta", rename="camel"):
    """A `TextDelta` without the provider's own bytes, which are for the journal."""

    execution_id: str
    seq: int
    text: str
    round: int
    sequence: int


def event_json(event: TurnEvent) -> bytes:
    """The event as JSON in the spelling of the journal, with its number."""
    if type(event) is TextDelta:
        return encode(_Delta(event.execution_id, event.seq, event.text, event.round, event.sequence))
    if type(event) is SubagentEvent:
        event = _without_bytes(event)
    try:
        return encode(event)
    except TypeError:  # a tool may have put a value into its metadata that is no JSON
        return encode(event_to_wire(event))


def _without_bytes(event: SubagentEvent) -> SubagentEvent:
    inner = event.inner
    if isinstance(inner, SubagentEvent):
        return replace(event, inner=_without_bytes(inner))
    return replace(event, inner=replace(inner, raw=None)) if isinstance(inner, TextDelta) else event


class EventTexts:
    """The texts of a session's latest events, while several read them."""

    __slots__ = ("_known", "sent", "shared")

    def __init__(self) -> None:
        self.shared = False
        """Whether somebody else will want the same text."""
        self.sent = 0
        """Texts that were given out, to whomever."""
        self._known: OrderedDict[int, tuple[TurnEvent, bytes]] = OrderedDict()

    def encode(self, event: TurnEvent) -> bytes:
        self.sent += 1
        if not self.shared:
            return event_json(event)
        known = self._known.get(id(event))  # it is kept with its text, so that no other has this identity
        if known is not None:
            return known[1]
        text = event_json(event)
        self._known[id(event)] = (event, text)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return text

    def share(self, readers: int) -> None:
        """So many read now."""
        self.shared = readers > 1
        if not self.shared:
            self._known.clear()
