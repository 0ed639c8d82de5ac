"""The one door to a session's journal: what goes through it is redacted, and what is large is put aside.

A record is a `frame`, JSON members that we wrote ourselves and that hold nothing secret, and `fields`, whose
values come from models, tools and users. Writing never raises for a disk's sake: see `JournalFile`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from msgspec import Raw
from msgspec.json import Decoder

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.journal_file import JournalFile
from robota.sessions.journal.payloads import PayloadStore
from robota.sessions.redaction import Redactor
from robota.sessions.store.session_record import check_session_id

decode_members = Decoder(dict[str, Raw]).decode
INLINE_LIMIT = 32 * 1024
"""Bytes of JSON a field may have in the line itself."""


class Journal:
    __slots__ = ("_directory", "_files", "_payloads", "file", "keep_inline", "path", "redactor", "session_id")

    def __init__(
        self,
        directory: str,
        session_id: str,
        *,
        redactor: Redactor | None = None,
        files: Files = REAL_FILES,
        now: Callable[[], float] = time.time,
        durable: bool = True,
    ) -> None:
        self._directory = directory
        self._files = files
        self._payloads: PayloadStore | None = None
        self.redactor = Redactor() if redactor is None else redactor
        self.session_id = check_session_id(session_id)
        self.keep_inline = False
        """Put nothing aside: the journal is for memory only."""
        self.path = f"{directory}/{session_id}.jsonl"
        self.file = JournalFile(self.path, session_id, files=files, now=now, durable=durable)

    def write(self, event: str, frame: bytes = b"", fields: Mapping[str, Json] | None = None) -> int:
        """Append a record; its number. A value that is `bytes` is JSON already, `None` is left out."""
        encoded = encode_fields(fields) if fields else None
        return self._append(event, frame, None if encoded is None else self.redactor.json(encoded))

    def write_clean(self, event: str, frame: bytes, fields: Mapping[str, Json]) -> int:
        """Append a record whose fields hold nothing secret: they were looked at, or are our own."""
        return self._append(event, frame, encode_fields(fields))

    def hold_clean(self, event: str, frame: bytes, fields: Mapping[str, Json]) -> None:
        """Append such a record with the next one: see `JournalFile.hold`."""
        self.file.hold(self._body(event, frame, encode_fields(fields)))

    def _append(self, event: str, frame: bytes, encoded: bytes | None) -> int:
        return self.file.append(self._body(event, frame, encoded))

    def _body(self, event: str, frame: bytes, encoded: bytes | None) -> bytes:
        if encoded is None:
            return b'"event":"%s"%s}' % (event.encode(), frame)
        if len(encoded) > INLINE_LIMIT and not self.keep_inline:
            encoded = self.put_large_aside(encoded)
        return b'"event":"%s"%s,%s' % (event.encode(), frame, encoded[1:])

    def put_large_aside(self, encoded: bytes) -> bytes:
        """The same object, its large members by reference."""
        members: dict[str, Raw] = decode_members(encoded)
        for name, value in members.items():
            if len(value) > INLINE_LIMIT:
                members[name] = Raw(self.put_aside(bytes(value)))
        return encode(members)

    def put_aside(self, encoded: bytes) -> bytes:
        """The reference to a payload file, or the value itself when there is no room for the file."""
        if self._payloads is None:
            self._payloads = PayloadStore(self._directory, self.session_id, files=self._files)
        try:
            return self._payloads.put(encoded)
        except (OSError, StorageError):
            return encoded


def encode_fields(fields: Mapping[str, Json]) -> bytes | None:
    """The fields that have a value as one JSON object; `None` when none has."""
    given = {name: value for name, value in fields.items() if value is not None}
    for name, value in given.items():
        if type(value) is bytes:
            given[name] = Raw(value)
    return encode(given) if given else None
