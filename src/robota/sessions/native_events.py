"""The provider's own events, made safe to write at the price of one look per kind of event.

An event is an envelope around a piece of text. The text is redacted with the stream it belongs to; the same
envelope comes hundreds of times in a reply, so it is looked at once.
"""

from __future__ import annotations

from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sessions.redaction import Redactor

_ENVELOPES_KEPT = 8


class NativeEvents:
    __slots__ = ("_plain", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._plain: list[int] = []
        """Hashes of envelopes without anything secret."""

    def clean(self, raw: bytes, text: str, shown: str) -> bytes:
        """The event as it may be written. It carries `text`, of which `shown` may be seen."""
        if text != shown:
            return self._redactor.json(encode(_exchange(decode(raw), text, shown)))
        envelope = raw.replace(encode(text), b'""', 1) if text else raw
        if hash(envelope) in self._plain:
            return raw
        if len(envelope) == len(raw) and text and not text.isascii():
            import json  # noqa: PLC0415 - only for services that escape what is not ASCII

            envelope = raw.replace(json.dumps(text).encode(), b'""', 1)
            if hash(envelope) in self._plain:
                return raw
        if self._redactor.json(envelope) is not envelope:
            return self._redactor.json(raw)
        if len(self._plain) >= _ENVELOPES_KEPT:
            del self._plain[0]
        self._plain.append(hash(envelope))
        return raw


def _exchange(value: Json, text: str, shown: str) -> Json:
    """The value with the text replaced wherever it stands."""
    if isinstance(value, str):
        return shown if value == text else value
    if isinstance(value, list):
        return [_exchange(item, text, shown) for item in value]
    if isinstance(value, dict):
        return {key: _exchange(item, text, shown) for key, item in value.items()}
    return value
