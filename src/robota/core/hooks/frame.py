"""The frame in which hooks speak to the model, and what keeps everybody else from speaking in one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from robota._lazy_pattern import lazy_pattern

OPENING, CLOSING = "<system-reminder>\n", "\n</system-reminder>\n"

_WORDS = r"(\s*[/\u2044\uff0f]?\s*system[\W_]{,3}reminder)"
_MARKER = lazy_pattern(r"[<\uff1c\u2039\u3008]" + _WORDS, re.IGNORECASE)
_DISARMED = lazy_pattern("&lt;" + _WORDS, re.IGNORECASE)


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
