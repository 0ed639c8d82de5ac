"""Matching lines of one file, with the lines around them, in the form that ripgrep prints.

A file is read in blocks of whole lines, so that its size does not matter. Only a search whose matches may
span lines, or one in UTF-16, has to take a file whole. A NUL among the first 64 KiB makes a file binary and
there is no text; one further down ends the text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from robota.tools.search.rust_regex import translate_regex

BINARY_PROBE = 64 * 1024
BLOCK_BYTES = 4 * 1024 * 1024
MAX_WHOLE_BYTES = 64 * 1024 * 1024
"""Of a file that is taken whole, and of a line."""
READ_BYTES = 256 * 1024
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_UTF8_MARK = b"\xef\xbb\xbf"
# What took a file's place meanwhile must neither block the open nor become our terminal.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)

Report: TypeAlias = Literal["paths", "counts", "lines"]
_STRAY_BYTE = re.compile("[\udc80-\udcff]")


class TooLargeError(Exception):
    """The file would have to be taken whole and is too large for that."""


class TextSource:
    """One open file."""

    __slots__ = ("_any_bytes", "_descriptor", "_whole", "is_binary")

    def __init__(self, descriptor: int, *, whole: bool, any_bytes: bool) -> None:
        """`any_bytes`: a NUL is a character like others."""
        self._descriptor = descriptor
        self._whole = whole
        self._any_bytes = any_bytes
        self.is_binary = False
        """Known when the blocks are through."""

    def blocks(self) -> Iterator[bytes]:
        """Raises `OSError` and `TooLargeError`."""
        first = True
        for block in self._read_blocks():
            text = _drop_mark(block) if first else block
            end = -1 if self._any_bytes else text.find(b"\0")
            if end < 0:
                yield text
            else:
                self.is_binary = True
                if not first or end >= BINARY_PROBE:
                    yield text[: text.rfind(b"\n", 0, end) + 1]
                return
            first = False

    def _read_blocks(self) -> Iterator[bytes]:
        block, limit = b"", MAX_WHOLE_BYTES if self._whole else BLOCK_BYTES
        while True:
            data = os.read(self._descriptor, READ_BYTES)
            block = block + data if block else data
            if not data:
                if block:
                    yield block
                return
            if not self._whole and block[:2] in _UTF16 and limit == BLOCK_BYTES:
                self._whole, limit = True, MAX_WHOLE_BYTES
            if len(block) < limit:
                continue
            if self._whole:
                raise TooLargeError
            end = block.rfind(b"\n") + 1 or (len(block) if len(block) >= MAX_WHOLE_BYTES else 0)
            if end:
                yield block[:end]
                block = block[end:]


def open_file(path: bytes) -> int:
    """A descriptor for reading; raises `OSError`."""
    return os.open(path, _FLAGS)


def probe_binary(path: bytes) -> bool:
    """Whether a file begins like a binary one; raises `OSError`."""
    descriptor = open_file(path)
    try:
        start = os.read(descriptor, BINARY_PROBE)
    finally:
        os.close(descriptor)
    return b"\0" in start and start[:2] not in _UTF16


def _drop_mark(block: bytes) -> bytes:
    """The first block without its byte order mark, in UTF-8."""
    if block[:2] in _UTF16:
        return block.decode("utf-16", "replace").encode("utf-8")
    return block.removeprefix(_UTF8_MARK)


class TextSearch:
    """What to look for and how to report it."""

    def __init__(
        self,
        pattern: str,
        report: Report,
        *,
        ignore_case: bool = False,
        multiline: bool = False,
        before: int = 0,
        after: int = 0,
        columns: int = 0,
    ) -> None:
        """Raises `RegexError`."""
        plain, strict = (
            translate_regex(pattern, ignore_case=ignore_case, multiline=multiline, only_text=only_text)
            for only_text in (False, True)
        )
        self._pattern = plain.expression
        self._strict = strict.expression
        self._literals = plain.literals
        self._spans_lines = plain.spans_lines
        self.report = report
        self._before = before
        self._after = after
        self._columns = columns

    def run(self, path: bytes, *, any_bytes: bool = False) -> bytes | None:
        """What is to be printed of the file behind its name; `None` if nothing matches.

        Raises `OSError`, and `TooLargeError` if the file cannot be searched.
        """
        descriptor = open_file(path)
        try:
            source = TextSource(descriptor, whole=self._spans_lines, any_bytes=any_bytes)
            if self.report == "lines":
                return self._print_lines(source)
            texts = (_decode(block) for block in source.blocks() if self._may_match(block))
            if self.report == "paths":
                return b"" if any(any(self._spans(text)) for text in texts) else None
            find = self._matches_in if self._spans_lines else self._spans
            count = sum(1 for text in texts for _ in find(text))
            return b"%d\n" % count if count and not source.is_binary else None
        finally:
            os.close(descriptor)

    def _may_match(self, block: bytes) -> bool:
        literals = self._literals
        return not literals or any(literal in block for literal in literals)

    def _finder(self, text: str) -> Callable[[str, int], re.Match[str] | None]:
        return (self._pattern if text.isascii() or not _STRAY_BYTE.search(text) else self._strict).search

    def _print_lines(self, source: TextSource) -> bytes | None:
        page = _Page(self._before, self._after, self._columns)
        passed = b""  # its lines are counted only when something follows
        for block in source.blocks():
            page.pass_over(passed)
            passed = b""
            if self._may_match(block):
                text = _decode(block)
                page.add(text, self._merged_spans(text) if self._spans_lines else self._spans(text))
            else:
                passed = block
        page.pay(passed)
        return b"".join(page.lines) if page.lines else None

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the lines with a match begin and end; a match never leaves its line."""
        find, position, size = self._finder(text), 0, len(text)
        while (match := find(text, position)) is not None:
            start = match.start()
            if start == size and (not size or text[-1] == "\n"):
                return  # there is no line behind the last newline
            end = text.find("\n", start)
            end = size if end < 0 else end
            yield text.rfind("\n", 0, start) + 1, end
            position = end + 1
            if position >= size:
                return

    def _matches_in(self, text: str) -> Iterator[tuple[int, int]]:
        find, position, size, last = self._finder(text), 0, len(text), -1
        while position <= size and (match := find(text, position)) is not None:
            start, end = match.span()
            if start == size and (not size or text[-1] == "\n"):
                return
            if end > last:  # nothing right behind a match is not a match of its own
                yield start, end
            position, last = (end if end > start else end + 1), end

    def _merged_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The same for matches that may span lines; lines of neighbouring matches are one span."""
        begin, stop = -1, -1
        for start, end in self._matches_in(text):
            first = text.rfind("\n", 0, start) + 1
            last = text.find("\n", max(end - 1, start))
            last = len(text) if last < 0 else last
            if begin >= 0 and first > stop + 1:
                yield begin, stop
                begin = -1
            begin, stop = (first if begin < 0 else begin), last
        if begin >= 0:
            yield begin, stop


class _Page:
    """The lines to be printed of one file, collected block by block."""

    __slots__ = ("_after", "_before", "_columns", "_number", "_owed", "_printed", "_tail", "lines")

    def __init__(self, before: int, after: int, columns: int) -> None:
        self.lines: list[bytes] = []
        self._before = before
        self._after = after
        self._columns = columns
        self._number = 1
        """Of the first line that is neither printed nor passed over."""
        self._printed = 0
        """Number of the last line printed."""
        self._owed = 0
        """Lines still to be printed behind the last match."""
        self._tail: list[str] = []
        """The last lines passed over in the blocks before this one."""

    def pass_over(self, block: bytes) -> None:
        """A block without a match."""
        if self._before or self._owed:
            self._skip(_decode(block), 0, None)
        else:
            self._number += block.count(b"\n")

    def pay(self, block: bytes) -> None:
        """The last block, without a match: lines may still be owed."""
        if self._owed:
            self.pass_over(block)

    def add(self, text: str, spans: Iterator[tuple[int, int]]) -> None:
        position = 0
        for start, end in spans:
            self._skip(text, position, start)
            for line in text[start:end].split("\n"):
                self._print(b":", line)
            self._owed = self._after
            position = end + 1
        if position < len(text):
            self._skip(text, position, None)

    def _skip(self, text: str, position: int, match: int | None) -> None:
        """Lines between two matches; those close to one are printed. Without `match` the text ends here."""
        end = len(text) if match is None else match
        while self._owed and position < end:
            stop = text.find("\n", position)
            stop = len(text) if stop < 0 else stop
            self._print(b"-", text[position:stop])
            self._owed -= 1
            position = stop + 1
        if position >= end:
            position = end
        near = self._last_lines(text, position, end) if self._before else []
        if match is None:
            self._tail = [*self._tail, *near][-self._before :] if self._before else []
            self._number += text.count("\n", position, end)
            return
        near = [*self._tail, *near][-self._before :] if self._before else near
        self._tail = []
        self._number += text.count("\n", position, end) - len(near)
        if (self._before or self._after) and self._printed and self._number > self._printed + 1:
            self.lines.append(b"--\n")
        for line in near:
            self._print(b"-", line)

    def _last_lines(self, text: str, position: int, end: int) -> list[str]:
        begin = end
        for _ in range(self._before):
            if begin <= position:
                break
            begin = max(text.rfind("\n", position, begin - 1) + 1, position)
        return text[begin:end].removesuffix("\n").split("\n") if begin < end else []

    def _print(self, mark: bytes, line: str) -> None:
        if self._columns:
            line = line[: self._columns]
        text = line.encode("utf-8", "surrogateescape")
        self.lines.append(b"%d%s%s\n" % (self._number, mark, text))
        self._printed = self._number
        self._number += 1


def _decode(block: bytes) -> str:
    return block.decode("utf-8", "surrogateescape")
