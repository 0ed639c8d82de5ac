"""The one door to a session's journal: what goes through it is redacted, and what is large is put aside.

A record is a `frame`, JSON members that we wrote ourselves and that hold nothing secret, and `fields`, whose
values come from models, tools and users. Writing never raises for a disk's sake: see `JournalFile`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal_file import JournalFile
from robota.sessions.payloads import PayloadStore
from robota.sessions.redaction import Redactor

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
    ) -> None:
        self._directory = directory
        self._files = files
        self._payloads: PayloadStore | None = None
        self.redactor = Redactor() if redactor is None else redactor
        self.session_id = session_id
        self.keep_inline = False
        """Put nothing aside: the journal is for memory only."""
        self.path = f"{directory}/{session_id}.jsonl"
        self.file = JournalFile(self.path, session_id, files=files, now=now)

    def write(self, event: str, frame: bytes = b"", fields: Mapping[str, Json] | None = None) -> int:
        """Append a record; its number. A value that is `bytes` is JSON already, `None` is left out."""
        body = b'"event":"%s"%s' % (event.encode(), frame)
        if fields:
            parts = [body]
            for name, value in fields.items():
                if value is not None:
                    parts.append(b',"%s":%s' % (name.encode(), self.prepare(name, value)))
            body = b"".join(parts)
        return self.file.append(body + b"}")

    def prepare(self, name: str, value: Json) -> bytes:
        """A value as it may be written: encoded, without secrets, by reference when it is large."""
        encoded = self.redactor.json(value if type(value) is bytes else encode(value), name)
        if len(encoded) <= INLINE_LIMIT or self.keep_inline:
            return encoded
        return self.put_aside(encoded)

    def put_aside(self, encoded: bytes) -> bytes:
        """The reference to a payload file, or the value itself when there is no room for the file."""
        if self._payloads is None:
            self._payloads = PayloadStore(self._directory, self.session_id, files=self._files)
        try:
            return self._payloads.put(encoded)
        except (OSError, StorageError):
            return encoded
