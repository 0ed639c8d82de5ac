"""The one door to a session's journal: what goes through it is redacted, and what is large is put aside."""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import Decoder

from robota.core.jsontext import encode
from robota.sessions.journal.port import SessionJournal
from robota.sessions.journal.records import Record
from robota.sessions.redaction import Redactor

_decode_members = Decoder(dict[str, Raw]).decode
INLINE_LIMIT = 32 * 1024
"""Bytes of JSON a field may have in the line itself."""


class RecordWriter:
    """Writes records, each with the number of the last turn event that it and those before it tell of."""

    __slots__ = ("event", "journal", "redactor")

    def __init__(self, journal: SessionJournal, redactor: Redactor) -> None:
        self.journal = journal
        self.redactor = redactor
        self.event = 0

    def write(self, record: Record) -> int:
        """Append a record; its number."""
        return self._append(self.redactor.json(self._encode(record)), hold=False)

    def write_clean(self, record: Record, *, hold: bool = False) -> int:
        """The same with one that holds nothing secret: it was looked at, or is our own.

        With `hold` it may wait for the next one.
        """
        return self._append(self._encode(record), hold=hold)

    def _encode(self, record: Record) -> bytes:
        record.ev = self.event
        return encode(record)

    def _append(self, encoded: bytes, *, hold: bool) -> int:
        if len(encoded) > INLINE_LIMIT:
            members: dict[str, Raw] = _decode_members(encoded)
            for name, value in members.items():
                if len(value) > INLINE_LIMIT:
                    members[name] = Raw(self.journal.put(bytes(value)))
            encoded = encode(members)
        return self.journal.append(encoded[1:], event=self.event, hold=hold)
