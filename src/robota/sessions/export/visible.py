"""Characters that show nothing, or change how others show, made visible.

What an export shows is what was said: no text can hide a part of itself, reorder a line or steer a terminal.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    # joins the parts of one emoji: hidden nowhere else
    "|(?<![\u2190-\u2bff\ufe0f\U0001f000-\U0001faff])\u200d|\u200d(?![\u2190-\u2bff\U0001f000-\U0001faff])"
    "|\r"
)


def show_hidden(text: str) -> str:
    """The text with a visible sign for every hidden character; line ends are newlines."""
    return _HIDDEN.sub(_sign, text.replace("\r\n", "\n"))


def on_one_line(text: str) -> str:
    """The text for a heading or a table: visible, and with its line breaks shown as spaces."""
    return " ".join(show_hidden(text).split())


def _sign(found: re.Match[str]) -> str:
    return f"\u27e8U+{ord(found[0]):04X}\u27e9"
