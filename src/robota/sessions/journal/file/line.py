"""One line of a journal: how it is cut out of a file, checked and taken apart.

`{"crc":"1a2b3c4d","v":1,"seq":12,"timestamp":"…","sessionId":"…","event":"…",…}`: the checksum covers every
byte after its own comma. Lines of the TypeScript original have neither checksum nor number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias
from zlib import crc32

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import decode, decode_leniently
from robota.core.messages import Json, JsonObject
from robota.sessions.journal.port import JournalError

VERSION = 1
CHECKED_FROM = len('{"crc":"1a2b3c4d",')

FRAME = lazy_pattern(
    rb'\{"crc":"([0-9a-f]{8})","v":([0-9]{1,9}),"seq":([0-9]{1,18}),"timestamp":"[^"\\]*",'
    rb'"sessionId":("(?:[^"\\]|\\.)*"),"event":("(?:[^"\\]|\\.)*")(?:,"ev":([0-9]{1,18}))?'
)
"""Checksum, version, number, the JSON strings of session and event, and the last turn event told of."""
NUMBER = lazy_pattern(rb'\{"crc":"[0-9a-f]{8}","v":[0-9]{1,9},"seq":([0-9]{1,18}),')
"""As much of a frame as a broken record needs to tell its number."""
_START = lazy_pattern(rb'\{"(?:crc":"[0-9a-f]{8}","v":|timestamp":"[^"\\]{10,40}","sessionId":")')
_ZEROS = lazy_pattern(rb"(\0+)")
_FAILURES = 64
"""Pieces of one damaged line that are tried in vain before the rest of it is given up."""


class Line(Struct, frozen=True):
    """A record as it stands in the file, not decoded."""

    seq: int
    """0 in a line of the TypeScript original."""
    event: str
    line: bytes
    """Without the newline."""
    offset: int
    checked: bool
    """Whether a checksum says that these are the bytes that were written."""
    session_id: str = ""
    version: int = VERSION
    ev: int = 0

    def fields(self) -> JsonObject:
        """The whole record; raises `JournalError` when a foreign hand gave bad JSON a good checksum."""
        try:
            value = _decode_record(self.line)
        except ValueError as error:
            raise JournalError(
                f"The record at byte {self.offset} of the journal is not valid JSON: {error}"
            ) from error
        return value


def decode_text(encoded: bytes) -> str:
    """What a JSON string says; an invalid one is taken literally."""
    try:
        return str(decode(encoded))
    except ValueError:
        return encoded[1:-1].decode("utf-8", "replace")


def checksum_of(line: bytes) -> int:
    return crc32(memoryview(line)[CHECKED_FROM:])


def parse_line(line: bytes, offset: int = 0) -> Line | None:
    """The record that fills the line, or None when the line is damaged."""
    frame = FRAME.match(line)
    if frame is not None:
        crc, version, seq, session_id, event, ev = frame.groups()
        good = int(crc, 16) == checksum_of(line)
        if not good and (int(version) <= VERSION or int(crc, 16) == checksum_of(_as_ours(line, frame))):
            return None
        try:
            if not good:  # a later version may count its checksum differently
                _decode_record(line)
        except ValueError:
            return None
        return Line(
            seq=int(seq), event=decode_text(event), line=line, offset=offset, checked=good,
            session_id=decode_text(session_id), version=int(version), ev=int(ev or 0),
        )  # fmt: skip
    return _parse_unframed(line, offset)


def _as_ours(line: bytes, frame: re.Match[bytes]) -> bytes:
    """The line with our version in it: if the checksum fits then, only its version is damaged."""
    return b"%b%d%b" % (line[: frame.start(2)], VERSION, line[frame.end(2) :])


def find_records(line: bytes, offset: int) -> list[Line]:
    """The whole records inside a damaged line: fused, or before, after and between rubbish."""
    from json import JSONDecoder  # noqa: PLC0415 - only damage needs a decoder that says where a value ends

    text = line.decode("latin-1")  # one character per byte, so that positions are byte offsets
    measure = JSONDecoder(strict=False).raw_decode
    found: list[Line] = []
    failures = position = 0
    while failures < _FAILURES and (start := _START.search(line, position)) is not None:
        try:
            _, end = measure(text, start.start())
        except (ValueError, RecursionError):
            failures += 1
            position = start.end()
            continue
        record = parse_line(line[start.start() : end], offset + start.start())
        if record is None:
            failures += 1
        else:
            found.append(record)
        position = end
    return found


def _parse_unframed(line: bytes, offset: int) -> Line | None:
    """A line of the original, or one whose later version has another order of fields."""
    if not line.startswith(b"{"):
        return None
    try:
        value = _decode_record(line)
    except ValueError:
        return None
    event, session_id = value.get("event"), value.get("sessionId")
    if not isinstance(event, str) or not isinstance(session_id, str):
        return None
    if "crc" not in value and not ("v" in value and "seq" in value):
        return Line(seq=0, event=event, line=line, offset=offset, checked=False, session_id=session_id)
    version, seq = value.get("v"), value.get("seq")
    if type(version) is not int or type(seq) is not int or version <= VERSION or seq < 0:
        return None
    return Line(
        seq=seq, event=event, line=line, offset=offset, checked=False, session_id=session_id, version=version
    )


def _decode_record(line: bytes) -> JsonObject:
    try:
        value: Json = decode(line)
    except ValueError:
        value = decode_leniently(line)
    if not isinstance(value, dict):
        raise ValueError("it is not an object")
    return value


LONGEST_LINE = 64 * 1024 * 1024

CutKind: TypeAlias = Literal["lines", "cut", "last", "zeros", "oversized"]
"""Ended by newlines, by zeros, by the end of the file; a run of zeros; a line beyond the limit."""
Cut: TypeAlias = tuple[CutKind, int, list[bytes], int]
"""Kind, offset, content (empty for zeros and oversized lines), size."""


class LineCutter(Struct, eq=False):
    """Makes lines of the blocks of a file."""

    _offset: int = 0
    """Of the next byte to come."""
    _held: list[bytes] = []
    """The beginning of the line under way; emptied when the line gets too long."""
    _size: int = 0
    _zeros: int = 0

    def cut(self, blocks: Iterable[bytes]) -> Iterator[Cut]:
        for block in blocks:
            for piece in filter(None, _ZEROS.split(block)) if b"\0" in block else (block,):
                if piece[0]:
                    yield from self._cut_text(piece)
                    continue
                yield from self._end_line("cut", b"")
                self._zeros += len(piece)
                self._offset += len(piece)
        yield from self._end_zeros()
        yield from self._end_line("last", b"")

    def _cut_text(self, text: bytes) -> Iterator[Cut]:
        yield from self._end_zeros()
        lines = text.split(b"\n")
        rest = lines.pop()
        if lines and self._size:
            first = lines.pop(0)
            self._offset += len(first) + 1
            yield from self._end_line("lines", first)
        if lines:
            size = sum(map(len, lines)) + len(lines)
            yield "lines", self._offset, lines, size
            self._offset += size
        if rest:
            self._offset += len(rest)
            self._size += len(rest)
            if self._size > LONGEST_LINE:
                self._held.clear()
            else:
                self._held.append(rest)

    def _end_line(self, kind: CutKind, last: bytes) -> Iterator[Cut]:
        """The line under way together with its last piece, which `_offset` already counts."""
        size = self._size + len(last)
        start = self._offset - size - (kind == "lines")
        if size > LONGEST_LINE:
            yield "oversized", start, [], size
        elif size:
            yield kind, start, [b"".join((*self._held, last))], size
        self._held.clear()
        self._size = 0

    def _end_zeros(self) -> Iterator[Cut]:
        if self._zeros:
            yield "zeros", self._offset - self._zeros, [], self._zeros
            self._zeros = 0
