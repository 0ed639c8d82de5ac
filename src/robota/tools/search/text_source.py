"""The text of a file in blocks of whole lines, so that its size does not matter.

Only a search whose matches may span lines, or one in UTF-16, has to take a file whole. A NUL among the first
64 KiB makes a file binary and there is no text; one further down ends the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

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
