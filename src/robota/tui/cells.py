"""Text measured in cells of the terminal: wrapping, cutting, the tail of an unfinished answer."""

from __future__ import annotations

import math

from prompt_toolkit.utils import get_cwidth

TAIL_ROWS, FEW_TAIL_ROWS, MANY_ROWS = 6, 4, 30
"""Rows of the tail, of the tail on small screens, and from when on a screen is not small."""
KEPT_FREE = 5
"""Rows of the screen that the tail leaves alone."""


def count_cells(text: str) -> int:
    """Letter by letter: of whole texts prompt_toolkit would remember every one that it ever saw."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(map(get_cwidth, text))


def wrap_line(line: str, width: int) -> list[str]:
    """A line in pieces of at most `width` cells, cut at blanks where there are any."""
    line = line.expandtabs(4)
    if len(line) <= width and line.isascii():
        return [line]
    pieces: list[str] = []
    start = used = 0
    blank, inked = -1, False
    for at, letter in enumerate(line):
        if at < start:  # a blank where the line was cut
            continue
        cells = get_cwidth(letter)
        if letter != " ":
            inked = True
        elif inked:  # a cut before the first word would leave an empty row
            blank = at
        if used + cells > width and at > start:
            cut = blank + 1 if blank > start else at
            if piece := line[start:cut].rstrip():
                pieces.append(piece)
            start, blank = _skip_blanks(line, cut), -1
            if start > at:
                used = 0
                continue
            used = count_cells(line[start:at])
        used += cells
    rest = line[start:]
    return [*pieces, rest] if rest or not pieces else pieces


def _skip_blanks(line: str, at: int) -> int:
    while line[at : at + 1] == " ":
        at += 1
    return at


def wrap(text: str, width: int) -> list[str]:
    return [piece for line in text.split("\n") for piece in wrap_line(line, max(width, 1))]


def cut(text: str, width: int) -> str:
    """The beginning of a line that is too long, with a sign that there is more."""
    if count_cells(text) <= width:
        return text
    used, kept = 1, []
    for letter in text:
        used += get_cwidth(letter)
        if used > width:
            break
        kept.append(letter)
    return f"{''.join(kept)}…" if width > 0 else ""


def cut_front(text: str, width: int) -> str:
    """The end of a line that is too long: of a path, the name of the file."""
    if count_cells(text) <= width:
        return text
    used, kept = 1, []
    for letter in reversed(text):
        used += get_cwidth(letter)
        if used > width:
            break
        kept.append(letter)
    return f"…{''.join(reversed(kept))}" if width > 0 else ""


def tail_height(rows: int) -> int:
    """The most rows that an unfinished answer is shown in."""
    return max(0, min(TAIL_ROWS if rows >= MANY_ROWS else FEW_TAIL_ROWS, rows - KEPT_FREE))


def tail_page(text: str, width: int, height: int) -> list[str]:
    """The end of an unfinished text. It is turned page-wise, by half its height when it is full: a tail that
    scrolls row by row has to be drawn anew for each."""
    if not text or height <= 0:
        return []
    reach = (height + 2) * max(width, 1) * 2
    if len(text) > 2 * reach:  # a cut that stays where it is while the text grows by a `reach`
        text = text[(len(text) // reach - 1) * reach :]
    lines = wrap(text.rstrip("\n"), width)
    if len(lines) <= height:
        return lines
    step = max(height // 2, 1)
    return lines[math.ceil((len(lines) - height) / step) * step :]
