"""A journal in memory, for replays, for tests, and for sessions that are followed but not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from robota.core.jsontext import encode
from robota.sessions.journal.decoding import decode_line, is_run_start
from robota.sessions.journal.port import JournalProblem, Position
from robota.sessions.journal.records import Record, SessionEnded


class MemoryJournal:
    """Takes records as a file does; nothing is ever refused."""

    path = ""
    trouble = ""

    def __init__(self, session_id: str, *, first: int = 1) -> None:
        """`first` is the number of the first record."""
        self.session_id = session_id
        self.on_trouble: Callable[[str], None] | None = None
        self.size = 0
        self.records: list[Record] = []
        self._frame = b'"timestamp":"","sessionId":%b,' % encode(session_id)
        self._first = first
        self._event = 0

    @property
    def last(self) -> Position:
        closed = not self.records or isinstance(self.records[-1], SessionEnded)
        return Position(self.saved, self._event, closed)

    @property
    def saved(self) -> int:
        return self._first + len(self.records) - 1

    async def open(self) -> Position:
        return self.last

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        line = self.make_line(body)
        self._event = event
        self.size += len(line)
        self.records.append(decode_line(line))
        return self.saved

    def make_line(self, body: bytes) -> bytes:
        return b'{"seq":%d,%b%b' % (self.saved + 1, self._frame, body)

    def release(self) -> None:
        """Nothing is held here."""

    async def sync(self) -> bool:
        return True

    def put(self, payload: bytes) -> bytes:
        return payload

    def read(self, *, after_event: int = 0) -> Iterator[Record | JournalProblem]:
        start = 0
        for at, record in enumerate(self.records if after_event else ()):
            if is_run_start(record.name, self.records[start].name):
                start = at
            if record.ev > after_event:
                break
        yield from self.records[start:]

    async def aclose(self) -> None:
        """There is nothing to close."""
