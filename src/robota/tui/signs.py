"""Sequences for the terminal itself: its title, a notification, the clipboard. None moves anything."""

from __future__ import annotations

import base64

from robota.sdk.view.neutral import neutral_line

COPIED_AT_MOST = 100_000
"""Bytes; terminals drop longer ones."""


def title(name: str) -> str:
    shown = f"Robota — {neutral_line(name)}" if name else "Robota"
    return f"\x1b]0;{shown}\x07"


def notification(way: str, text: str) -> str:
    """A bell, or words where the terminal shows them (OSC 9)."""
    return {"bell": "\x07", "osc9": f"\x1b]9;{neutral_line(text)}\x07"}.get(way, "")


def copied(text: str) -> str | None:
    """Put a text into the clipboard, also over a remote line (OSC 52); `None` when it is too long."""
    data = text.encode("utf-8", "replace")
    if len(data) > COPIED_AT_MOST:
        return None
    return f"\x1b]52;c;{base64.b64encode(data).decode()}\x07"
