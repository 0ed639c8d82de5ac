"""A journal that is kept in memory, to be compared with one on disk."""

from __future__ import annotations

from collections.abc import Callable

from robota.core.events import ToolBatchStarted
from robota.core.jsontext import decode
from robota.core.messages import JsonObject
from robota.sessions.journal.call_writer import CallWriter
from robota.sessions.journal.reader import JournalRecord
from robota.sessions.journal.record_parts import split_record


class PromptCallWriter(CallWriter):
    """Writes the start of a batch at once: records show where something else was done to the session."""

    def begin_batch(self, event: ToolBatchStarted, frame: bytes) -> None:
        super().begin_batch(event, frame)
        self.flush()


class MemoryJournalFile:
    """Takes records as `JournalFile` does, if `accept` wants them, and says so to `on_record`."""

    def __init__(
        self,
        session_id: str,
        seq: int,
        accept: Callable[[str], bool],
        on_record: Callable[[str], None],
    ) -> None:
        self._session_id = session_id.encode()
        self.seq = seq
        self.records: list[tuple[JournalRecord, JsonObject]] = []
        self.closed_for_more = False
        """What comes now is no part of the journal."""
        self.unsaved = 0
        self.bytes_written = 0
        self.trouble = ""
        self.on_trouble: Callable[[str], None] | None = None
        self._accept = accept
        self._on_record = on_record

    @property
    def synced_seq(self) -> int:
        return self.seq

    def open(self) -> None:
        """There is nothing to open."""

    def append(self, body: bytes) -> int:
        line = b'{"seq":%d,"timestamp":"","sessionId":"%s",%s' % (self.seq + 1, self._session_id, body)
        fields: JsonObject = decode(line)
        record = JournalRecord(seq=self.seq + 1, event=fields["event"], line=line, offset=0, checked=True)
        for part, values in split_record(record, fields):
            if self.closed_for_more or not self._accept(part.event):
                continue
            self.seq += 1
            self.records.append((part, {**values, "seq": self.seq}))
            self._on_record(part.event)
        return self.seq

    def hold(self, body: bytes) -> None:
        self.append(body)

    def release(self) -> None:
        """Nothing is held here."""

    def sync(self, *, look: bool = True) -> bool:
        return True

    def close(self) -> None:
        """There is nothing to close."""
