"""What a server says besides the protocol: standard error, and lines on standard output that are no messages.

Bounded, and kept so that somebody can find out why a server does not work.
"""

from __future__ import annotations

from robota.core.plain_text import clean_sentence
from robota.core.process import Capture

KEPT_BYTES = 8 * 1024
"""Of the beginning and again of the end of each."""
SHOWN = 300
"""Characters of its last words in a sentence."""


class Noise:
    """The last connection's; a new one begins anew."""

    __slots__ = ("complaints", "stderr", "stray", "stray_lines", "wants_login")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.stderr = Capture(KEPT_BYTES)
        self.stray = Capture(KEPT_BYTES)
        self.stray_lines = 0
        self.wants_login = False
        """It refused us because it does not know who we are."""
        self.complaints: dict[str, None] = {}
        """What was left out of what it offers, a sentence each."""

    def add_stray(self, line: bytes) -> None:
        self.stray_lines += 1
        self.stray.add(line + b"\n")

    def complain(self, sentence: str) -> None:
        if len(self.complaints) < 100:
            self.complaints[sentence] = None

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error, in one line; empty if there is nothing."""
        for capture in (self.stderr, self.stray):
            lines = [line.strip() for line in capture.text.splitlines() if line.strip()]
            if lines:
                words = clean_sentence(" / ".join(lines[-3:]))
                return words if len(words) <= SHOWN else f"…{words[-SHOWN:]}"
        return ""

    def describe(self) -> list[str]:
        """For people, a line each."""
        lines = list(self.complaints)
        if self.stray_lines:
            lines.append(
                f"It printed {self.stray_lines:,} lines on standard output that are no messages of the "
                f"protocol, such as {clean_sentence(self.stray.text.partition(chr(10))[0])[:SHOWN]!r}."
            )
        if self.last_words:
            lines.append(f"Its last words: {self.last_words}")
        return lines
