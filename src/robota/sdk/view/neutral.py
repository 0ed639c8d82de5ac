"""Text that a terminal only shows: nothing in it moves the cursor, hides words or sets a title.

Everything that reaches a terminal goes through one of these. What people read is made visible; what a program
printed, with its colours and progress bars, is cleaned; what somebody has to decide on hides nothing at all.
"""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.core.plain_text import strip_controls

TURNING_SIGNS = "\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that make text appear in another order than it has."""
_UNSAFE = lazy_pattern(f"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029{TURNING_SIGNS}\ud800-\udfff]")
_TURNS = lazy_pattern(f"[{TURNING_SIGNS}]")
_SURROGATES = range(0xD800, 0xE000)


def neutralise(text: str) -> str:
    """Every control character but newline and tab as a visible sign; the rest as it is."""
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(_sign, text.replace("\r\n", "\n"))


def neutral_line(text: str) -> str:
    """The same in one line, for names, titles and arguments: all white space is single blanks."""
    return " ".join(neutralise(text).split())


def neutral_output(text: str) -> str:
    """What a program printed: without its control sequences, which were meant for another screen."""
    return neutralise(strip_controls(text))


def strip_all(text: str) -> str:
    """The text without terminal control and without overrides of its direction."""
    return _TURNS.sub("", strip_controls(text))


def visible(text: str) -> str:
    """Text in which nothing is hidden: control and invisible characters are written out."""
    return "".join(
        letter if letter.isprintable() or letter == "\t" else ascii(letter)[1:-1] for letter in text
    )


def neutral_json(line: bytes) -> bytes:
    """JSON that means the same, with what a terminal could obey written as `\\u…`."""
    text = line.decode()
    if _UNSAFE.search(text) is None:
        return line
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def _sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code in _SURROGATES:
        return "\ufffd"
    return "\u2421" if code == 0x7F else ascii(match[0])[1:-1]
