"""Text that is safe to show and to hand to a model: bytes from a process or a server, without escape
sequences and control characters other than newline and tab; and whose words they are that a model gets.

Hooks speak to it in a frame, in which nobody else can speak. What robota itself tells it is known: those
texts are public and hold no secret, so nobody has to search them for one at the start of every session.
All functions are linear in their input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from robota._lazy_pattern import lazy_pattern

_CONTROL = lazy_pattern(
    # strings to the terminal (titles, links, device control) with what they carry, if they are ended
    "(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"
    # control sequences such as colours and cursor moves
    "|(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    # every other escape sequence, then single control characters
    "|\x1b[ -/]*[0-~]?"
    "|[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_TURNS = lazy_pattern("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that make text appear in another order than it has."""
_LINE_END = lazy_pattern("\r\n?|\x00")
_NOTE_ROOM = 64
_SAMPLE = 8192
_BINARY_NUL_SHARE = 0.3
_BINARY_UNDECODABLE_SHARE = 0.3
OPENING, CLOSING = "<system-reminder>\n", "\n</system-reminder>\n"
_WORDS = r"(\s*[/\u2044\uff0f]?\s*system[\W_]{,3}reminder)"
_MARKER = lazy_pattern(r"[<\uff1c\u2039\u3008]" + _WORDS, re.IGNORECASE)
_DISARMED = lazy_pattern("&lt;" + _WORDS, re.IGNORECASE)
_own_words: dict[str, None] = {}


def strip_controls(text: str) -> str:
    """The text without terminal control; a lone carriage return or a NUL (`find -print0`) ends a line."""
    return _LINE_END.sub("\n", _CONTROL.sub("", text))


def clean_sentence(text: str) -> str:
    """A sentence of ours that quotes what others wrote, as it may be shown; most are it already."""
    if text.isprintable():
        return text
    return _TURNS.sub(lambda found: ascii(found[0])[1:-1], strip_controls(text))


def looks_binary(data: bytes) -> bool:
    """Whether printing this would be noise: many NULs, or mostly not UTF-8."""
    sample = data[:_SAMPLE]
    if not sample:
        return False
    if sample.count(0) > len(sample) * _BINARY_NUL_SHARE:
        return True
    return sample.decode("utf-8", "replace").count("\ufffd") > len(sample) * _BINARY_UNDECODABLE_SHARE


def to_plain_text(data: bytes) -> str:
    """UTF-8 with replacement, without control sequences."""
    return strip_controls(data.decode("utf-8", "replace"))


def shorten(text: str, limit: int, *, dropped: int = 0) -> str:
    """Head and tail of a text longer than `limit`, and between them how much is missing.

    `dropped` is what was lost before, so that the count stays true. The result never exceeds `limit`.
    """
    if len(text) <= limit:
        return text
    room = max(limit - _NOTE_ROOM, 0)
    tail = text[len(text) - room // 2 :]
    return f"{text[: room - room // 2]}\n[... {len(text) - room + dropped:,} characters left out ...]\n{tail}"


def clip(text: str, limit: int) -> str:
    """The beginning of a text longer than `limit`, and how much is missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[... {len(text) - limit:,} more characters left out]"


def disarm(text: str) -> str:
    """The text without anything that looks like the begin or the end of a frame; most texts are it."""
    if text.isascii() and "<" not in text:
        return text
    return _MARKER.sub(r"&lt;\1", text)


def rearm(text: str) -> str:
    """A text that was copied from what `disarm` gave, as it was before."""
    return _DISARMED.sub(r"<\1", text)


def frame(lines: Iterable[str]) -> str:
    """Words of hooks, marked as theirs; empty if there are none."""
    text = "\n".join(map(disarm, lines))
    return f"{OPENING}{text}{CLOSING}" if text else ""


def own_words(text: str) -> str:
    """Note a text that comes with robota and stands between other texts as a whole. It is returned."""
    _own_words[text] = None
    return text


def known_own_words() -> tuple[str, ...]:
    """Those that were used so far."""
    return tuple(_own_words)
