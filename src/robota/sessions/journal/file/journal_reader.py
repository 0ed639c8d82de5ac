"""The records of a journal file, decoded, with the payloads that were put beside it."""

from __future__ import annotations

from collections.abc import Container, Iterator

from robota.core.errors import StorageError
from robota.core.messages import JsonObject
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.decoding import decode_line, is_run_start, unknown_record
from robota.sessions.journal.file.line import FRAME, Line
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalProblem
from robota.sessions.journal.records import Record

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
    payloads = _Payloads(path, files)
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
            yield JournalProblem(offset=line.offset, kind="unreadable", message=message)
            return
    for reason in payloads.lost.values():
        message = f"{what} refers to a payload that cannot be used: {reason}"
        yield JournalProblem(offset=line.offset, kind="payload", message=message)
    if record is None or not payloads.lost.keys() <= _DISPENSABLE:
        yield unknown_record(line.fields())  # something of it is missing, and it must not pass for the whole
    else:
        yield record


class _Payloads:
    """The payload files that belong to a journal."""

    def __init__(self, path: str, files: Files) -> None:
        self._path = path
        self._files = files
        self._store: PayloadStore | None = None
        self.lost: dict[str, StorageError] = {}
        """Fields of the last record whose payloads cannot be used, and why."""

    def resolve(self, fields: JsonObject) -> JsonObject:
        """The fields with their payloads, without those that are lost."""
        if self._store is None:
            directory, _, name = self._path.rpartition("/")
            self._store = PayloadStore(directory or ".", name.removesuffix(".jsonl"), files=self._files)
        whole: JsonObject = {}
        for name, value in fields.items():
            try:
                whole[name] = self._store.resolve(value)
            except StorageError as error:
                self.lost[name] = error
        return whole


def _find_start(path: str, session_id: str | None, files: Files, after_event: int) -> Line | None:
    """Where the run begins in which the event behind `after_event` was told."""
    start: Line | None = None
    for line in read_lines(path, session_id=session_id, files=files):
        if isinstance(line, JournalProblem):
            continue
        if is_run_start(line.event, "" if start is None else start.event):
            start = line
        if _told_of(line) > after_event:
            return start
    return start


def _told_of(line: Line) -> int:
    """The last turn event that a line tells of, without decoding it."""
    frame = FRAME.match(line.line)
    return int(frame[6] or 0) if frame is not None else 0
