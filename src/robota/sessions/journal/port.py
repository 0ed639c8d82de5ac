"""What a session needs of a place that keeps its records, be it a file, memory or a database.

A journal takes records as bytes, in order, and gives them back as values. Redaction and the splitting of
large values stand above it, so that nothing secret can reach any of them. The one in memory is the shortest;
another tells a logger of the user's own of what goes into a third, or into none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from robota.core.errors import StorageError, describe_exception
from robota.core.jsontext import decode, encode
from robota.core.messages import JsonObject
from robota.sessions.journal.decoding import decode_line, is_run_start
from robota.sessions.journal.records import Record, SessionEnded


class JournalError(StorageError):
    """A journal that cannot be read, or must not be written by this version or this session."""

    code = "JOURNAL_ERROR"


class SessionLockedError(StorageError):
    """Another process (or another object of this one) writes to the session."""

    code = "SESSION_LOCKED"

    def __init__(self, message: str, *, pid: int | None = None, host: str = "") -> None:
        super().__init__(message)
        self.pid = pid
        """The holder, when its lock file says so."""
        self.host = host


class Position(Struct, frozen=True):
    """How far a journal reaches."""

    record: int = 0
    """The number of the last record; 0 for an empty journal."""
    event: int = 0
    """The last turn event that it tells of."""
    closed: bool = True
    """Whether it ends with the end of a session: else events may have been told that it does not have."""


class JournalProblem(Struct, frozen=True):
    """Something in a journal that is not as it was written."""

    offset: int
    kind: str
    """torn, bad-json, encoding, zero-filled, joined, spliced, checksum, oversized, gap, repeated, reordered,
    foreign, version, unchecked, unreadable, payload."""
    message: str
    """What, where, and what was kept."""


class SessionJournal(Protocol):
    """The records of one session. `robota.testing.journal_conformance` has the tests for one."""

    session_id: str
    on_trouble: Callable[[str], None] | None
    """Called with a sentence for each new kind of trouble, and with "" when it is over."""

    @property
    def path(self) -> str:
        """Where it is kept, for people and hooks; empty when that is not a file."""

    @property
    def last(self) -> Position:
        """Where it ends, records that are only in memory included."""

    @property
    def saved(self) -> int:
        """The number of the last record that is not only in memory."""

    @property
    def size(self) -> int:
        """Bytes written since it was opened."""

    @property
    def trouble(self) -> str:
        """What is wrong, in one sentence; "" when nothing is."""

    async def open(self) -> Position:
        """Take the exclusive right to write; where the journal ends.

        Raises `SessionLockedError` when somebody else writes to the session, `JournalError` when the journal
        is another session's or a newer version's.
        """

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        """Write a record and return its number; never waits, and never raises for a disk's sake.

        `body` is `"event":"…",…}` as JSON, `event` the last turn event it tells of. With `hold` it may wait
        for the next record, or for `release`: for what nobody is told before.
        """

    def release(self) -> None:
        """Write what was held."""

    async def sync(self) -> bool:
        """Whether everything appended so far is safe when this returns.

        Raises `SessionLockedError` when the right to write was lost.
        """

    def put(self, payload: bytes) -> bytes:
        """Keep a large JSON value beside the records; the reference to write in its place."""

    def read(self, *, after_event: int = 0) -> Iterator[Record | JournalProblem]:
        """What is in the journal, also while it is being written.

        With `after_event` it begins with the run in which the event behind that one was told.
        """

    async def aclose(self) -> None:
        """Write what is left and give the right to write free; what is still refused is `trouble`."""


class MemoryJournal:
    """A journal that lasts as long as its object: it takes records as a file does and refuses nothing."""

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
        self._closed = True

    @property
    def last(self) -> Position:
        return Position(self.saved, self._event, self._closed)

    @property
    def saved(self) -> int:
        return self._first + len(self.records) - 1

    async def open(self) -> Position:
        return self.last

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        line = self.make_line(body)
        self.size += len(line)
        self.keep(decode_line(line), event)
        return self.saved

    def keep(self, record: Record, event: int) -> None:
        self._event, self._closed = event, isinstance(record, SessionEnded)
        self.records.append(record)

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


class SessionLogger(Protocol):
    """Whoever wants to know what happens in sessions: a database, a queue, a file in a format of its own."""

    def log(self, session_id: str, event: str, data: JsonObject) -> None:
        """One record, in the order of the journal. It must not wait; what it raises is told as trouble."""


class _Numbering(MemoryJournal):
    """Gives records their numbers and keeps none."""

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        self._event, self._closed = event, False
        self._first += 1
        return self.saved


class LoggedJournal:
    """A journal that tells a logger of what is written. Without an `inner` one nothing else is kept."""

    def __init__(self, session_id: str, logger: SessionLogger, inner: SessionJournal | None = None) -> None:
        self.session_id = session_id
        self._logger = logger
        self._inner = inner = _Numbering(session_id) if inner is None else inner
        self._trouble = ""
        self.open, self.release, self.sync, self.aclose = inner.open, inner.release, inner.sync, inner.aclose
        self.put, self.read = inner.put, inner.read

    @property
    def on_trouble(self) -> Callable[[str], None] | None:
        return self._inner.on_trouble

    @on_trouble.setter
    def on_trouble(self, hear: Callable[[str], None] | None) -> None:
        self._inner.on_trouble = hear

    @property
    def path(self) -> str:
        return self._inner.path

    @property
    def last(self) -> Position:
        return self._inner.last

    @property
    def saved(self) -> int:
        return self._inner.saved

    @property
    def size(self) -> int:
        return self._inner.size

    @property
    def trouble(self) -> str:
        return self._trouble or self._inner.trouble

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        number = self._inner.append(body, event=event, hold=hold)
        data = decode(b"{" + body)
        try:
            self._logger.log(self.session_id, data.pop("event"), data)
        except Exception as error:  # noqa: BLE001 - a logger is foreign code, and the session goes on
            self._complain(f"The session logger failed: {describe_exception(error)}")
        else:
            self._complain("")
        return number

    def _complain(self, sentence: str) -> None:
        changed, self._trouble = sentence != self._trouble, sentence
        if changed and self.on_trouble is not None:
            self.on_trouble(sentence)
