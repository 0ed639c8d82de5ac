"""Some lines of a text file that is too long to be held: read from its beginning, the others not kept."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator

from msgspec import Struct

from robota.tools.files.directory import Directory
from robota.tools.files.text import TextFormat

KEPT_CHARACTERS = 4_000
"""Of one line; the others are counted."""


class Window(Struct):
    lines: list[tuple[str, int]] = []
    """The beginning of each line, and how many characters follow it."""
    passed: int = 0
    """How many lines were read, these included."""
    ended: bool = False
    """Whether the file ends with them."""


def read_window(real: str, format: TextFormat, first: int, count: int) -> Window:
    """So many lines from the first on, which counts from 1."""
    with Directory(os.path.dirname(real)) as directory:
        chunks = directory.stream(os.path.basename(real))
        return _collect(_decode(chunks, format), first, count)


def _decode(chunks: Iterable[bytes], format: TextFormat) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(format.encoding)("replace")
    skip = len(format.mark)
    for chunk in chunks:
        yield decoder.decode(chunk[skip:])
        skip = 0
    yield decoder.decode(b"", final=True)


def _collect(texts: Iterable[str], first: int, count: int) -> Window:
    window, kept, length, is_open = Window(), "", 0, False
    for text in filter(None, texts):
        is_open = not text.endswith("\n")
        ends = text.count("\n")
        if window.passed + ends < first - 1:  # all of it lies before
            window.passed += ends
            continue
        *whole, rest = text.split("\n")
        for line in whole:
            if window.passed >= first - 1:
                kept += line[: KEPT_CHARACTERS - len(kept)]
                window.lines.append((kept, length + len(line) - len(kept)))
            window.passed, kept, length = window.passed + 1, "", 0
            if len(window.lines) == count:
                return window
        if window.passed >= first - 1:
            kept += rest[: KEPT_CHARACTERS - len(kept)]
            length += len(rest)
    window.ended = True
    if is_open:
        window.passed += 1
        if window.passed >= first:
            window.lines.append((kept, length - len(kept)))
    return window
