"""One line being typed: its keys, and how it is drawn with nothing but backspaces.

A terminal that cannot move its cursor can still go back by one cell, so a line is edited as usual. One that
does not fit scrolls sideways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from unicodedata import category, east_asian_width

from robota.sdk.view.neutral import neutral_line

_TYPED = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|O[ -~]?|[^\[O])?|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]+", re.DOTALL
)
"""A key with a sequence, one with a control character, or letters."""
JOINERS = "\u200c\u200d"
"""They cannot be seen, and make one sign of several: emoji of families, words of Persian and Hindi."""
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?$")
_KEYS = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\t": "tab",
    "\x01": "home", "\x05": "end", "\x02": "left", "\x06": "right", "\x10": "up", "\x0e": "down",
    "\x0b": "kill-end", "\x15": "kill-start", "\x17": "kill-word", "\x04": "delete-or-leave",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[7~": "home",
    "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end", "\x1b[8~": "end", "\x1b[3~": "delete",
    "\x1bb": "word-left", "\x1bf": "word-right", "\x1b[1;5D": "word-left", "\x1b[1;5C": "word-right",
    "\x1b\x7f": "kill-word",
}  # fmt: skip


class Key(NamedTuple):
    """A key with a name, or some letters that were typed one after the other."""

    name: str
    text: str = ""


def split_keys(typed: str) -> tuple[list[Key], str]:
    """The keys, and what is only the beginning of one. Those that are not known do nothing."""
    keys: list[Key] = []
    for found in _TYPED.finditer(typed):
        run = found[0]
        if _UNFINISHED.match(run):
            return keys, run
        if run in _KEYS:
            keys.append(Key(_KEYS[run]))
        elif run[0] > "\x1f" and (text := "".join(filter(_is_text, run))):
            keys.append(Key("text", text))
    return keys, ""


def _is_text(letter: str) -> bool:
    return letter.isprintable() or letter in JOINERS


def split_lines(typed: str) -> tuple[list[Key], str]:
    """The same for what nobody typed: only ends of lines are keys."""
    *lines, rest = typed.split("\n")
    keys = [key for line in lines for key in (Key("text", line.removesuffix("\r")), Key("enter"))]
    return keys, rest


class LineEditor:
    """The text, the place of the caret, and the lines that were typed before."""

    def __init__(self, text: str = "", history: Sequence[str] = ()) -> None:
        self.text = text
        self.at = len(text)
        self._history = history
        self._place = len(history)
        self._typed = text
        """What stood here before somebody looked into the history."""

    def press(self, key: Key) -> None:
        """One of the keys that change the line; the others are for whoever owns it."""
        action = _ACTIONS.get(key.name)
        if action is not None:
            action(self)
        elif key.text:
            self.text = self.text[: self.at] + key.text + self.text[self.at :]
            self.at += len(key.text)

    def move(self, at: int) -> None:
        self.at = max(0, min(at, len(self.text)))

    def step(self, by: int) -> None:
        """One letter on, with the marks that belong to it."""
        self.move(self.at + by)
        while 0 < self.at < len(self.text) and not _width(self.text[self.at]):
            self.move(self.at + by)

    def cut(self, start: int, end: int) -> None:
        self.text = self.text[: max(start, 0)] + self.text[end:]
        self.at = max(start, 0)

    def word_start(self) -> int:
        before = self.text[: self.at].rstrip()
        return before.rfind(" ") + 1

    def word_end(self) -> int:
        rest = self.text[self.at :]
        blanks = len(rest) - len(rest.lstrip())
        return self.at + blanks + len(rest.lstrip().partition(" ")[0])

    def look_back(self, step: int) -> None:
        place = self._place + step
        if not 0 <= place <= len(self._history):
            return
        if self._place == len(self._history):
            self._typed = self.text
        self._place = place
        self.text = self._typed if place == len(self._history) else neutral_line(self._history[place])
        self.at = len(self.text)


_ACTIONS: dict[str, Callable[[LineEditor], None]] = {
    "left": lambda line: line.step(-1),
    "right": lambda line: line.step(1),
    "home": lambda line: line.move(0),
    "end": lambda line: line.move(len(line.text)),
    "word-left": lambda line: line.move(line.word_start()),
    "word-right": lambda line: line.move(line.word_end()),
    "backspace": lambda line: line.cut(line.at - 1, line.at),
    "delete": lambda line: line.cut(line.at, line.at + 1),
    "delete-or-leave": lambda line: line.cut(line.at, line.at + 1),
    "kill-end": lambda line: line.cut(line.at, len(line.text)),
    "kill-start": lambda line: line.cut(0, line.at),
    "kill-word": lambda line: line.cut(line.word_start(), line.at),
    "up": lambda line: line.look_back(-1),
    "down": lambda line: line.look_back(1),
}


def cells(text: str) -> int:
    """How many cells a terminal needs for it."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(letter: str) -> int:
    if category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(letter) in "WF" else 1


class DrawnLine:
    """What of a line is on the screen, and what to write so that it is another."""

    def __init__(self) -> None:
        self._shown = ""
        self._caret = 0

    def draw(self, prompt: str, line: LineEditor, width: int) -> str:
        """Show this line; `width` cells are there for it, the last one for the caret."""
        text, at = _window(prompt, line, max(width - 1, 1))
        same = _same(self._shown, text)
        written = self._go(same) + text[same:]
        gone = cells(self._shown[same:]) - cells(text[same:])
        if gone > 0:
            written += " " * gone + "\b" * gone
        self._shown, self._caret = text, len(text)
        return written + self._go(at)

    def erase(self) -> str:
        """Leave an empty row, with the caret at its beginning."""
        count = cells(self._shown)
        written = self._go(0) + " " * count + "\b" * count
        self._shown, self._caret = "", 0
        return written

    def leave(self) -> str:
        """Go on in the next row."""
        written = self._go(len(self._shown)) + "\n"
        self._shown, self._caret = "", 0
        return written

    def forget(self) -> None:
        """Something else has been written over it."""
        self._shown, self._caret = "", 0

    def _go(self, at: int) -> str:
        start = self._caret
        while at > start > 0 and not _width(self._shown[start]):
            start -= 1  # a mark is written with its letter
        back = self._shown[min(at, start) : self._caret]
        self._caret = at
        return "\b" * cells(back) + self._shown[start:at]


def _same(shown: str, text: str) -> int:
    """How many letters at the beginning stay; a mark belongs to the letter before it."""
    count = next((at for at, pair in enumerate(zip(shown, text, strict=False)) if pair[0] != pair[1]), -1)
    count = min(len(shown), len(text)) if count < 0 else count
    while count and not all(_width(each[count]) for each in (shown, text) if count < len(each)):
        count -= 1
    return count


LETTERS_PER_CELL = 4
"""A letter with as many accents as anybody writes."""


def _window(prompt: str, line: LineEditor, width: int) -> tuple[str, int]:
    """What fits of the prompt and the line, and where in it the caret is."""
    text, at = line.text, line.at
    # A line that is longer than its marks could explain need not be measured at every key.
    if len(text) <= width * LETTERS_PER_CELL and cells(prompt) + cells(text) <= width:
        return prompt + text, len(prompt) + at
    head = prompt if cells(prompt) <= width // 2 else ""
    room = max(width - cells(head), 2)
    half = room // 2
    start = max(0, at - at % half - half)
    if cells(text[start:at]) > room:
        start += half
    end = at
    while end < len(text) and cells(text[start : end + 1]) <= room:
        end += 1
    return head + text[start:end], len(head) + at - start
