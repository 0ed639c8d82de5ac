"""The user's terminal, line by line.

A question is answered only by what was typed after it appeared. What was typed or pasted before stays for the
next prompt.
"""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios

from robota.cli.signals import Signalled, Signals

PASTE_SECONDS = 0.1
"""A paste that is still arriving is not silent for so long."""
_CHUNK = 4096
_LOCAL, _CHARACTERS = 3, 6
"""Places in what `tcgetattr` gives."""


class Keyboard:
    """Reads in the loop's own thread: nothing else goes on while the user is asked, and a thread left behind
    in a read would take the next line away."""

    __slots__ = ("_ahead", "_decoder", "_file", "signals")

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self._file = sys.stdin.fileno()
        self._ahead = ""
        """Typed, and not read as a line yet."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read_prompt(self, prompt: str) -> str | None:
        """The next line, `None` at the end of the input; a signal raises `Signalled`."""
        line, mark, rest = self._ahead.partition("\n")
        print(f"{prompt}{line}", end="\n" if mark else "", flush=True)
        if mark:
            self._ahead = rest
            return line
        return self._read_line()

    def read_answer(self, question: str, *, seen: int | None = None) -> str | None:
        """The same, but only what is typed from now on; nothing if a signal came since so many were `seen`,
        which did what it does and cannot be waited for here."""
        with self.signals.acting(self.signals.unwind):
            if seen is not None and self.signals.count != seen:
                return None
            self._set_aside()
            kept, self._ahead = self._ahead, ""
            try:
                print(question, end="", flush=True)
                return self._read_line()
            finally:
                self._ahead = kept + self._ahead

    def _read_line(self) -> str | None:
        while "\n" not in self._ahead:
            typed = self._read_more()
            if typed is None:
                print()
                break
            self._ahead += typed
        line, mark, self._ahead = self._ahead.partition("\n")
        return line if line or mark else None

    def _read_more(self) -> str | None:
        """What is typed next, `None` at the end."""
        noticed = self.signals.noticed
        try:
            with self.signals.acting(self.signals.unwind):
                if self.signals.code:  # it came before we could say what to do about it
                    raise Signalled(self.signals.code - 128)
                while self._file not in (ready := select.select([self._file, noticed], [], [])[0]):
                    os.read(ready[0], _CHUNK)
                typed = os.read(self._file, _CHUNK)
                return self._decoder.decode(typed) if typed else None
        except OSError:
            return None  # the terminal is gone

    def _set_aside(self) -> None:
        """Take what is there, half lines included, which a terminal gives away only outside its line mode."""
        try:
            before = termios.tcgetattr(self._file)
        except termios.error:
            return  # gone, which the next read will notice
        at_once = [*before]
        at_once[_LOCAL] &= ~termios.ICANON
        at_once[_CHARACTERS] = [*before[_CHARACTERS]]
        at_once[_CHARACTERS][termios.VMIN], at_once[_CHARACTERS][termios.VTIME] = 0, 0
        termios.tcsetattr(self._file, termios.TCSANOW, at_once)
        try:
            patience = 0.0
            while select.select([self._file], [], [], patience)[0]:
                typed = os.read(self._file, _CHUNK)
                if not typed:
                    break
                self._ahead += "".join(
                    each for each in self._decoder.decode(typed) if each.isprintable() or each in "\n\t"
                )
                patience = PASTE_SECONDS
        finally:
            termios.tcsetattr(self._file, termios.TCSANOW, before)
