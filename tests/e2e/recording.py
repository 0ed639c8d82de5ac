"""Screens of a terminal as SVG: one of them, or a recording that plays them in order.

    python -m tests.e2e.recording docs/images

takes the tour as a user would and writes what they see. The README shows the files.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.e2e.terminal import Terminal, robota_terminal

CELL, ROW, MARGIN = 8.4, 19, 14
"""Pixels of a character, a line and the edge."""
LONGEST_LOOK = 2.5
"""Seconds that a screen stays at most, however long the program waited there."""
LAST_LOOK = 4.0
INK, PAPER = "#d6d6d6", "#1b1d23"
COLOURS = {
    "black": "#5c6370", "red": "#e06c75", "green": "#98c379", "brown": "#e5c07b", "blue": "#61afef",
    "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#dcdfe4",
}  # fmt: skip
"""As pyte calls them; it has brown for yellow."""
Frame = tuple[float, list[str]]


class Recording:
    """Watches a terminal; every screen that differs from the one before is a frame."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.frames: list[Frame] = []

    def type(self, keys: str) -> None:
        """As a person does: key by key."""
        for key in keys:
            self._terminal.type(key)
            self.watch(0.06)

    def watch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self._terminal.pump(min(left, 0.05)):
            self.look()

    def until(self, text: str) -> None:
        self._terminal.until(text)
        self.look()

    def look(self) -> None:
        if self._terminal.in_frame:
            return
        rows = draw(self._terminal)
        if not self.frames or self.frames[-1][1] != rows:
            self.frames.append((time.monotonic(), rows))


def draw(terminal: Terminal) -> list[str]:
    """The rows of the screen as SVG, one `text` each; blank ones are left out."""
    emulator = terminal.screen.emulator
    shown = []
    for row in range(emulator.lines):
        spans = "".join(_spans(emulator.buffer[row], emulator.columns))
        if spans:
            shown.append(f'<text y="{MARGIN + (row + 1) * ROW}">{spans}</text>')
    cursor = emulator.cursor
    at = f'x="{MARGIN + cursor.x * CELL:.1f}" y="{MARGIN + cursor.y * ROW + 5}"'
    return [*shown, f'<rect class="c" {at} width="{CELL:.1f}" height="{ROW}"/>']


def _spans(line: Any, columns: int) -> Iterator[str]:
    at = 0
    while at < columns:
        cell, start = line[at], at
        text = ""
        while at < columns and _style(line[at]) == _style(cell):
            text += line[at].data
            at += 1
        if text.strip():
            yield f'<tspan x="{MARGIN + start * CELL:.1f}"{_style(cell)}>{escape(_shown(text))}</tspan>'


def _shown(text: str) -> str:
    """The place of the tour has another name each time."""
    return re.sub(r"/\S*/robota-tour-\w+", "/tmp/tour", text).rstrip()


def _style(cell: Any) -> str:
    colour = COLOURS.get(cell.fg.removeprefix("bright"), "" if cell.fg == "default" else f"#{cell.fg}")
    fill = f' fill="{colour}"' if colour else ""
    return fill + (' font-weight="bold"' if cell.bold else "")


def still(rows: Sequence[str], terminal: Terminal) -> str:
    return _page("".join(rows), "", terminal)


def moving(frames: Sequence[Frame], terminal: Terminal) -> str:
    """All frames on top of each other, each visible in its time, over and over."""
    looks = [min(after - at, LONGEST_LOOK) for (at, _), (after, _) in pairwise(frames)]
    looks.append(LAST_LOOK)
    whole, begin, body = sum(looks), 0.0, []
    for (_, rows), look in zip(frames, looks, strict=True):
        values = f'values="0;1;0" keyTimes="0;{begin / whole:.5f};{min((begin + look) / whole, 1):.5f}"'
        timing = f'dur="{whole:.2f}s" repeatCount="indefinite" calcMode="discrete"'
        animate = f'<animate attributeName="opacity" {values} {timing}/>'
        body.append(f'<g opacity="0">{animate}{"".join(rows)}</g>')
        begin += look
    return _page("".join(body), "", terminal)


def _page(body: str, style: str, terminal: Terminal) -> str:
    width = 2 * MARGIN + terminal.columns * CELL
    height = 2 * MARGIN + terminal.rows * ROW + 4
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" xml:space="preserve">'
        f"<style>text{{fill:{INK};white-space:pre}}.c{{fill:{INK};opacity:.6}}{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>{body}</svg>\n'
    )


def record_tour(directory: Path) -> None:
    with (
        TemporaryDirectory() as place,
        robota_terminal(Path(place), "tour", rows=28, columns=96, HOME=place) as terminal,
    ):
        film = Recording(terminal)
        film.until("Context: 0%")
        film.watch(1.2)
        film.type("fix the failing test\r")
        film.until("Allow Bash?")
        film.until("or the letter")
        film.watch(1.5)
        film.type("y")
        film.until("Allow Edit?")
        film.until("or the letter")
        film.watch(2)
        (directory / "approval.svg").write_text(still(film.frames[-1][1], terminal), encoding="utf-8")
        film.type("y")
        film.until("Now the test again.")
        film.until("or the letter")
        film.watch(1)
        film.type("y")
        film.until("What you can try now")
        film.watch(2)
        film.type("/undo\r")
        film.until("restored prices.py")
        film.watch(2)
        (directory / "tour.svg").write_text(moving(film.frames, terminal), encoding="utf-8")


if __name__ == "__main__":
    record_tour(Path(sys.argv[1]))
