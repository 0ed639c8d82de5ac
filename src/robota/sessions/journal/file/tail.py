"""The end of a journal that is about to be written: made whole, and asked for the last number.

The bytes of a record that a crash cut short move to `{file}.torn-<n>`; they are never thrown away, and what
stands before them is not touched.
"""

from __future__ import annotations

import errno
import os

from msgspec.structs import replace

from robota.sessions.files import Files, close_quietly, opened, write_all
from robota.sessions.journal.file.line import LONGEST_LINE, NUMBER, VERSION, Line, find_records, parse_line
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalError, Position
from robota.sessions.journal.records import SessionEnded

_BLOCK = 64 * 1024
_WINDOWS = (_BLOCK, 16 * _BLOCK, 256 * _BLOCK)
"""How much of the end is looked at before the whole file is read."""
_PLAUSIBLE_STEP = 64
"""How far a damaged record's number may lead: one that was tampered with must not use up all numbers."""


def find_last(files: Files, path: str, session_id: str) -> Position:
    """The numbers that are taken, as `prepare_end` finds them; nothing is changed."""
    with opened(files, path) as fd:
        return _find_end(files, fd, path, session_id)[3]


def prepare_end(files: Files, fd: int, path: str, session_id: str) -> tuple[int, Position]:
    """Make the file end with a whole line; returns its size and its last numbers.

    Raises `JournalError` when the file is another session's or was written by a newer version.
    """
    size, line_start, has_records, last = _find_end(files, fd, path, session_id)
    if line_start == size:
        return size, last
    if has_records:
        if files.write(fd, b"\n") != 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return size + 1, last
    _set_aside(files, fd, path, line_start, size)
    files.truncate(fd, line_start)
    return line_start, last


def _find_end(files: Files, fd: int, path: str, session_id: str) -> tuple[int, int, bool, Position]:
    """The size, where a line begins that was not finished, whether that holds whole records nevertheless, and
    the numbers that are taken: unreadable lines behind the last record count, so that none is given twice."""
    size = files.size(fd)
    if not size:
        return 0, 0, False, Position()
    start = _find_line_start(files, fd, size)
    tail = _read(files, fd, start, size) if size - start <= LONGEST_LINE else b""
    has_records = bool(find_records(tail, start))
    last = _find_last(files, fd, path, session_id, start, tail if has_records else b"")
    return size, start, has_records, replace(last, closed=last.closed and start == size)


def _find_last(files: Files, fd: int, path: str, session_id: str, end: int, tail: bytes) -> Position:
    for window in _WINDOWS:
        start = max(0, end - window)
        lines = _read(files, fd, start, end).split(b"\n")
        if start:
            del lines[0]  # its beginning lies before the window
        last = _find_highest([*lines, tail], path, session_id)
        if last is not None:
            return last
        if start == 0:
            break
    return _count_all(files, path, session_id, end) if end or tail else Position()


def _find_highest(lines: list[bytes], path: str, session_id: str) -> Position | None:
    """The last numbers according to some lines of the end, None when no record of ours is among them."""
    last: Position | None = None
    for line in lines:
        whole = parse_line(line)
        records = [whole] if whole is not None else find_records(line, 0)
        for record in records:
            _refuse_newer(record, path)
            if record.session_id == session_id:
                last = _advance(last or Position(), record)
        if whole is None and last is not None and line.strip(b"\0 \r\t"):
            seq = _count_damaged(line, last.record, readable=bool(records))
            last = Position(seq, last.event, closed=False)
    return last


def _advance(last: Position, line: Line) -> Position:
    closed = line.event == SessionEnded.name
    return Position(max(last.record, line.seq), max(last.event, line.ev), closed=closed)


def _count_damaged(line: bytes, highest: int, *, readable: bool) -> int:
    """The highest number after a damaged line: what it says itself when that is plausible, else one more."""
    named = [int(match[1]) for match in NUMBER.finditer(line)]
    plausible = [seq for seq in named if highest < seq <= highest + _PLAUSIBLE_STEP]
    if plausible:
        return max(plausible)
    return highest if named or readable else highest + 1


def _count_all(files: Files, path: str, session_id: str, end: int) -> Position:
    last, damaged = Position(), 0
    owner: str | None = None
    for item in read_lines(path, files=files):
        if isinstance(item, Line):
            _refuse_newer(item, path)
            owner = item.session_id
            last = _advance(last, item)
        elif item.offset < end and item.kind not in ("gap", "repeated", "reordered"):
            damaged += 1
    if owner is not None and owner != session_id:
        raise JournalError(
            f"{path} is the journal of session {owner}, so session {session_id} does not write to it. "
            "Nothing was changed; give each session its own file."
        )
    return Position(last.record + damaged, last.event, last.closed and not damaged)


def _refuse_newer(record: Line, path: str) -> None:
    if record.version > VERSION:
        raise JournalError(
            f"{path} was written by a newer robota (journal version {record.version}, known is {VERSION}). "
            "It can be read here but not continued: update robota, or fork the session."
        )


def _find_line_start(files: Files, fd: int, size: int) -> int:
    """The offset behind the last newline."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = _read(files, fd, start, end).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _set_aside(files: Files, fd: int, path: str, start: int, end: int) -> None:
    """Copy the torn end into a file of its own, durably."""
    number = 1
    while True:
        try:
            copy = files.create(f"{path}.torn-{number}")
            break
        except FileExistsError:
            number += 1
    try:
        while start < end:
            block = _read(files, fd, start, min(end, start + 16 * _BLOCK))
            write_all(files, copy, block)
            start += len(block)
        files.sync(copy)
    finally:
        close_quietly(files, copy)
    files.sync_directory(os.path.dirname(path) or ".")


def _read(files: Files, fd: int, start: int, end: int) -> bytes:
    pieces = []
    while start < end and (piece := files.read_at(fd, end - start, start)):
        pieces.append(piece)
        start += len(piece)
    if start < end:
        raise OSError(f"{end - start} bytes at the end of the file are gone")
    return b"".join(pieces)
