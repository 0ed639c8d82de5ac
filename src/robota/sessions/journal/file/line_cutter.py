"""A stream of bytes cut into lines, holding never more than one line and never one that is too long.

Text JSON has no zero bytes, so a run of them (what a disk shows for blocks it never wrote) ends a line as a
newline does. That way a record behind a gigabyte of zeros is found without keeping the gigabyte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

LONGEST_LINE = 64 * 1024 * 1024

CutKind: TypeAlias = Literal["lines", "cut", "last", "zeros", "oversized"]
"""Ended by newlines, by zeros, by the end of the file; a run of zeros; a line beyond the limit."""
Cut: TypeAlias = tuple[CutKind, int, list[bytes], int]
"""Kind, offset, content (empty for zeros and oversized lines), size."""


class LineCutter:
    """Feed it blocks in order, then `finish`."""

    __slots__ = ("_held", "_limit", "_offset", "_size", "_zeros")

    def __init__(self, offset: int = 0, *, limit: int = LONGEST_LINE) -> None:
        self._limit = limit
        self._offset = offset
        """Of the next byte to come."""
        self._held: list[bytes] = []
        """The beginning of the line under way; emptied when the line gets too long."""
        self._size = 0
        self._zeros = 0

    def feed(self, block: bytes) -> Iterator[Cut]:
        if b"\0" not in block:
            return self._cut_text(block)
        return self._cut_mixed(block)

    def finish(self) -> Iterator[Cut]:
        yield from self._end_zeros()
        yield from self._end_line("last", b"")

    def _cut_mixed(self, block: bytes) -> Iterator[Cut]:
        position = 0
        while position < len(block):
            zero = block.find(b"\0", position)
            if zero != position:
                text = block[position:] if zero < 0 else block[position:zero]
                yield from self._cut_text(text)
                position += len(text)
                continue
            yield from self._end_line("cut", b"")
            rest = block[position:]
            run = len(rest) if rest == bytes(len(rest)) else len(rest) - len(rest.lstrip(b"\0"))
            self._zeros += run
            self._offset += run
            position += run

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
            if self._size > self._limit:
                self._held.clear()
            else:
                self._held.append(rest)

    def _end_line(self, kind: CutKind, last: bytes) -> Iterator[Cut]:
        """The line under way together with its last piece, which `_offset` already counts."""
        size = self._size + len(last)
        start = self._offset - size - (kind == "lines")
        if size > self._limit:
            yield "oversized", start, [], size
        elif size:
            yield kind, start, [b"".join((*self._held, last))], size
        self._held.clear()
        self._size = 0

    def _end_zeros(self) -> Iterator[Cut]:
        if self._zeros:
            yield "zeros", self._offset - self._zeros, [], self._zeros
            self._zeros = 0
