"""The journal that a replay writes, in memory, to be compared with the recorded one."""

from __future__ import annotations

from collections.abc import Callable

from robota.sessions.journal.decoding import decode_line, split_record
from robota.sessions.journal.memory import MemoryJournal
from robota.sessions.journal.port import Position


class ReplayJournal(MemoryJournal):
    """Takes records, each for itself, if `accept` wants them, and says so to `on_record`."""

    def __init__(
        self,
        session_id: str,
        before: Position,
        accept: Callable[[str], bool],
        on_record: Callable[[str], None],
    ) -> None:
        """`before` is where the recording was when this part of it began."""
        super().__init__(session_id, first=before.record + 1)
        self._before = before
        self._accept = accept
        self._on_record = on_record
        self.closed_for_more = False
        """What comes now is no part of the journal."""

    @property
    def last(self) -> Position:
        return super().last if self.records else self._before

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        for record in split_record(decode_line(self.make_line(body))):
            if self.closed_for_more or not self._accept(record.name):
                continue
            self._event = event
            record.seq = self.saved + 1
            self.records.append(record)
            self._on_record(record.name)
        return self.saved
