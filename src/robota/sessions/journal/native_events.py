"""The provider's own events, made safe to write at the price of one look per kind of event.

An event is an envelope around a piece of text. The text is redacted with the stream it belongs to; the same
envelope comes hundreds of times in a reply, so it is looked at once, and new ones are looked at together.
"""

from __future__ import annotations

from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sessions.redaction import Redactor

_ENVELOPES_KEPT = 8
_DIGITS = b"0123456789"


class NativeEvents:
    """Collects the events of one record: `add` each, then `take` them all."""

    __slots__ = ("_events", "_last", "_plain", "_redactor", "_unknown")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._plain: list[int] = []
        """Hashes of envelopes without anything secret, their digits aside: counts and numbered ids differ."""
        self._last = 0
        """The envelope of the last piece of text, which most likely comes again."""
        self._events: list[bytes] = []
        self._unknown: dict[int, bytes] = {}
        """Envelopes of collected events, by place."""

    def add(self, raw: bytes, text: str, shown: str) -> None:
        """An event that carries `text`, of which `shown` may be seen."""
        events = self._events
        if text != shown:
            events.append(self._redactor.json(encode(_exchange(decode(raw), text, shown))))
            return
        envelope = raw.replace(encode(text), b'""', 1) if text else raw
        if len(envelope) == len(raw) and text and not text.isascii():
            import json  # noqa: PLC0415 - only for services that escape what is not ASCII

            envelope = raw.replace(json.dumps(text).encode(), b'""', 1)
        if hash(envelope) != self._last and hash(envelope.translate(None, _DIGITS)) not in self._plain:
            self._unknown[len(events)] = envelope
        elif text:
            self._last = hash(envelope)
        events.append(raw)

    def take(self) -> bytes | None:
        """The collected events as one JSON list; `None` if there are none."""
        if not self._events:
            return None
        if self._unknown:
            self._look()
        taken, self._events = self._events, []
        return b"[%s]" % b",".join(taken)

    def _look(self) -> None:
        unknown, self._unknown = self._unknown, {}
        together = b"[%s]" % b",".join(unknown.values())
        if self._redactor.json(together) is together:
            news = [hash(envelope.translate(None, _DIGITS)) for envelope in unknown.values()]
            self._plain = [*self._plain, *news][-_ENVELOPES_KEPT:]
            return
        for at in unknown:
            self._events[at] = self._redactor.json(self._events[at])


def _exchange(value: Json, text: str, shown: str) -> Json:
    """The value with the text replaced wherever it stands."""
    if isinstance(value, str):
        return shown if value == text else value
    if isinstance(value, list):
        return [_exchange(item, text, shown) for item in value]
    if isinstance(value, dict):
        return {key: _exchange(item, text, shown) for key, item in value.items()}
    return value
