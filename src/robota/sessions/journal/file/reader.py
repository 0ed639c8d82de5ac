"""Reading a journal from its beginning: every record that can be trusted, and a name for everything else.

Nothing is decoded before somebody asks for it, memory does not grow with the file, and the file is never
changed. Damage anywhere costs the damaged bytes and nothing behind them. A file that cannot be read raises
`JournalError`: it never looks like an empty session.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterator
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.sessions.files import REAL_FILES, Files, explain, opened
from robota.sessions.journal.decoding import decode_line, is_run_start, unknown_record
from robota.sessions.journal.file.line import (
    CHECKED_FROM,
    FRAME,
    VERSION,
    Cut,
    Line,
    LineCutter,
    checksum_of,
    decode_text,
    find_records,
    parse_line,
)
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.port import JournalError, JournalProblem
from robota.sessions.journal.records import Record

_BLOCK = 256 * 1024
_FORGET_AFTER = 1_000_000
"""Numbers that one gap may leave out before the comparison with earlier records starts afresh."""


Item: TypeAlias = Line | JournalProblem


def read_lines(
    path: str,
    *,
    session_id: str | None = None,
    files: Files = REAL_FILES,
    events: Container[str] | None = None,
    start: Line | None = None,
) -> Iterator[Item]:
    """Lines and problems in file order; what is missing altogether is told at the end.

    Without a `session_id` the first line says whose journal it is. With `events`, lines of other names are
    checked like all others, but not given out. With `start`, a line that was read before is the first.
    """
    scan = _Scan(session_id, events)
    offset = 0
    if start is not None:
        offset, scan.numbers = start.offset, _Numbers(start.seq)
    for cut in LineCutter(offset).cut(_blocks(files, path, offset)):
        yield from scan.take(cut)
    yield from scan.numbers.missing()


def _blocks(files: Files, path: str, place: int) -> Iterator[bytes]:
    try:
        with opened(files, path) as fd:
            while block := files.read_at(fd, _BLOCK, place):
                place += len(block)
                yield block
    except OSError as error:
        reason, advice = explain(error)
        where = f"beyond byte {place}" if place else "at all"
        raise JournalError(
            f"The journal {path} cannot be read {where}: {reason}. The file was left as it is; {advice}."
        ) from error


class _Numbers:
    """Which numbers came with which checksum: finds gaps, repetitions and a changed order."""

    __slots__ = ("_base", "_gaps", "crcs", "next")

    def __init__(self, first: int = 1) -> None:
        self.next = first
        self.crcs = array("I")
        """By number from `_base` on; 0 for one that is missing."""
        self._base = first
        self._gaps: list[tuple[int, int, int]] = []

    def place(self, seq: int, crc: int, offset: int) -> tuple[bool, JournalProblem | None]:
        """Whether to keep the record, and what is strange about its number."""
        if seq >= self.next:
            self._leave_gap(seq, offset)
            self.crcs.append(crc)
            self.next = seq + 1
            return True, None
        earlier = self.crcs[seq - self._base] if seq >= self._base else 0
        if not earlier:
            if seq >= self._base:
                self.crcs[seq - self._base] = crc
            what = f"stands behind record {self.next - 1}; it was kept"
            return True, JournalProblem(offset, "reordered", f"Record {seq} at byte {offset} {what}.")
        same = earlier == crc
        what = "is there twice; the first was kept" if same else "has a number used before; it was kept"
        return not same, JournalProblem(offset, "repeated", f"Record {seq} at byte {offset} {what}.")

    def missing(self) -> Iterator[JournalProblem]:
        """The gaps that no later record filled."""
        for first, last, offset in self._gaps:
            count = last - first + 1
            if first >= self._base:
                count = self.crcs[first - self._base : last + 1 - self._base].count(0)
            if not count:
                continue
            which = f"Record {first} is" if first == last else f"{count} of the records {first} to {last} are"
            message = f"{which} missing before byte {offset}; all others were kept."
            yield JournalProblem(offset, "gap", message)

    def _leave_gap(self, seq: int, offset: int) -> None:
        count = seq - self.next
        if not count:
            return
        self._gaps.append((self.next, seq - 1, offset))
        if count > _FORGET_AFTER:
            self._base = seq
            self.crcs = array("I")
        else:
            self.crcs.frombytes(bytes(count * self.crcs.itemsize))


class _Scan:
    """What has been seen of one file so far."""

    __slots__ = ("_events", "_names", "_owner", "_told", "_whose", "numbers")

    def __init__(self, session_id: str | None, events: Container[str] | None) -> None:
        self._owner = session_id
        self._whose = _frame_session(session_id)
        self._events = events
        self._names: dict[bytes, str | None] = {}
        """Encoded event names, with None for those nobody asked for."""
        self._told: set[str] = set()
        self.numbers = _Numbers()

    def take(self, cut: Cut) -> Iterator[Item]:
        kind, offset, lines, size = cut
        if kind == "zeros":
            yield _problem(offset, "zero-filled", f"{size} bytes from byte {offset} on were lost: all zero")
        elif kind == "oversized":
            yield _problem(offset, "oversized", f"The line at byte {offset} is too long with {size} bytes")
        elif kind == "lines":
            yield from self._take_lines(offset, lines)
        else:
            yield from self._take_slowly(offset, lines[0], kind)

    def _take_lines(self, offset: int, lines: list[bytes]) -> Iterator[Item]:
        """Most lines are the next record of this session in the very form we write: that is checked first."""
        numbers = self.numbers
        names = self._names
        for line in lines:
            frame = b'","v":1,"seq":%d,"timestamp":"' % numbers.next
            whose = self._whose
            at = 40 + len(frame)  # 16 bytes stand before the frame, 24 of time behind it
            crc = crc32(line[CHECKED_FROM:] if len(line) < 4096 else memoryview(line)[CHECKED_FROM:])
            if (
                line.startswith(frame, 16)
                and line.startswith(whose, at)
                and line.startswith(b'{"crc":"%08x' % crc)
            ):
                at += len(whose)
                encoded = line[at : line.find(b'"', at)]
                try:
                    name = names[encoded]
                except KeyError:
                    name = self._learn_name(encoded, line)
                if name is not None:
                    yield Line(numbers.next, name, line, offset, True, self._owner or "")
                numbers.next += 1
                numbers.crcs.append(crc)
            elif line:
                yield from self._take_slowly(offset, line, "line")
            offset += len(line) + 1

    def _learn_name(self, encoded: bytes, line: bytes) -> str | None:
        frame = FRAME.match(line)
        name = decode_text(frame[5] if frame else encoded)
        wanted = name if self._events is None or name in self._events else None
        if b"\\" not in encoded:  # else an escaped quote may have cut it short
            self._names[encoded] = wanted
        return wanted

    def _take_slowly(self, offset: int, line: bytes, end: str) -> Iterator[Item]:
        """A line that is not simply the next record."""
        record = parse_line(line.rstrip(b"\r"), offset)
        if record is not None:
            yield from self._admit(record)
            return
        if not line.strip():
            return
        records = find_records(line, offset)
        if not records:
            yield _describe_damage(end, offset, line)
            return
        kept = f"{len(records)} whole records" if len(records) > 1 else "one whole record"
        rest = len(line) - sum(len(record.line) for record in records)
        also = f" and {rest} bytes of something else, which were skipped" if rest else ""
        whole = "the record was kept" if len(records) == 1 else "all of them were kept"
        message = f"The line at byte {offset} holds {kept}{also}; {whole}."
        yield JournalProblem(offset, "spliced" if rest else "joined", message)
        for record in records:
            yield from self._admit(record)

    def _admit(self, record: Line) -> Iterator[Item]:
        """A whole record: is it of this session, this version, and in its place?"""
        offset = record.offset
        if self._owner is None:
            self._owner = record.session_id
            self._whose = _frame_session(record.session_id)
        if record.session_id != self._owner:
            whose = f"session {record.session_id}, not to {self._owner}"
            yield _problem(offset, "foreign", f"The record at byte {offset} belongs to {whose}")
            return
        if record.version > VERSION and "version" not in self._told:
            self._told.add("version")
            yield JournalProblem(
                offset,
                "version",
                f"The records from byte {offset} on were written by a newer robota (journal version "
                f"{record.version}, known is {VERSION}); what can be understood was kept. Update robota.",
            )
        if record.seq:
            keep, problem = self.numbers.place(record.seq, checksum_of(record.line), offset)
            if problem is not None:
                yield problem
            if not keep:
                return
        elif self.numbers.next > 1 and "unchecked" not in self._told:
            self._told.add("unchecked")
            message = f"The record at byte {offset} has no checksum, unlike earlier ones; it was kept."
            yield JournalProblem(offset, "unchecked", message)
        if self._events is None or record.event in self._events:
            yield record


def _frame_session(session_id: str | None) -> bytes:
    return b"?" if session_id is None else b'","sessionId":%b,"event":"' % encode(session_id)


def _problem(offset: int, kind: str, what: str) -> JournalProblem:
    return JournalProblem(offset, kind, f"{what}. It was skipped; all others were kept.")


def _describe_damage(kind: str, offset: int, line: bytes) -> JournalProblem:
    """Why a line without any whole record is none."""
    size = len(line)
    if kind == "last":
        return JournalProblem(
            offset,
            "torn",
            f"The record being written when the session ended is incomplete ({size} bytes at byte "
            f"{offset}). It was skipped; all before it were kept.",
        )
    if kind == "cut":
        return _problem(offset, "bad-json", f"The record at byte {offset} breaks off in zero bytes")
    frame = FRAME.match(line)
    try:
        line.decode()
    except UnicodeDecodeError as error:
        place = offset + error.start
        return _problem(offset, "encoding", f"The line at byte {offset} is not UTF-8 at byte {place}")
    if line.startswith(b'{"crc":"') and line.endswith(b"}"):
        which = f"Record {int(frame[3])}" if frame else "The record"
        what = f"{which} at byte {offset} is not what was written: its checksum does not match"
        return _problem(offset, "checksum", what)
    return _problem(offset, "bad-json", f"The line at byte {offset} ({size} bytes) is not a record")


_DISPENSABLE = {"rest"}
"""Fields without which a record is still what it was."""


def read_journal(
    path: str,
    *,
    session_id: str | None = None,
    files: Files = REAL_FILES,
    events: Container[str] | None = None,
    after_event: int = 0,
) -> Iterator[Record | JournalProblem]:
    """Records and problems in file order; a record that cannot be read costs itself and is named.

    With `events`, only records of these names are given out. With `after_event`, what was told up to then is
    left out, except for the beginning of the run that was under way.
    """
    directory, _, name = path.rpartition("/")
    payloads = _Payloads(PayloadStore(directory or ".", name.removesuffix(".jsonl"), files=files))
    start = _find_start(path, session_id, files, after_event) if after_event else None
    for item in read_lines(path, session_id=session_id, files=files, events=events, start=start):
        if isinstance(item, JournalProblem):
            yield item
        elif not item.checked:
            yield unknown_record(item.fields())
        else:
            yield from _decode(item, payloads)


def _decode(line: Line, payloads: _Payloads) -> Iterator[Record | JournalProblem]:
    what = f"Record {line.seq} ({line.event})"
    payloads.lost = {}
    record: Record | None = None
    try:
        record = decode_line(line.line, payloads.resolve)
    except ValueError as error:
        message = f"{what} is not usable and was left out: {error}."
        if not payloads.lost:
            yield JournalProblem(line.offset, "unreadable", message)
            return
    for reason in payloads.lost.values():
        message = f"{what} refers to a payload that cannot be used: {reason}"
        yield JournalProblem(line.offset, "payload", message)
    if record is None or not payloads.lost.keys() <= _DISPENSABLE:
        yield unknown_record(payloads.found)  # something of it is missing, and it must not pass for the whole
    else:
        yield record


class _Payloads(Struct, eq=False):
    """The payload files that belong to a journal."""

    _store: PayloadStore
    lost: dict[str, StorageError] = {}
    """Fields of the last record whose payloads cannot be used, and why."""
    found: JsonObject = {}
    """All its fields; in the place of a lost one stands its reference."""

    def resolve(self, fields: JsonObject) -> JsonObject:
        """The fields with their payloads, without those that are lost."""
        self.found = dict(fields)
        for name, value in fields.items():
            try:
                self.found[name] = self._store.resolve(value)
            except StorageError as error:
                self.lost[name] = error
        return {name: value for name, value in self.found.items() if name not in self.lost}


def _find_start(path: str, session_id: str | None, files: Files, after_event: int) -> Line | None:
    """Where the run begins in which the event behind `after_event` was told."""
    start: Line | None = None
    for line in read_lines(path, session_id=session_id, files=files):
        if isinstance(line, JournalProblem):
            continue
        if is_run_start(line.event, "" if start is None else start.event):
            start = line
        frame = FRAME.match(line.line)
        if frame is not None and int(frame[6] or 0) > after_event:
            return start
    return start
