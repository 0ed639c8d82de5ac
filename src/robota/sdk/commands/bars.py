"""Small pictures in text: how much of something a part is."""

from __future__ import annotations

FULL, EMPTY = "█", "░"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def share_bar(part: float, width: int = 30) -> str:
    """A bar of that many cells, filled up to `part` of 1; what is more than nothing is seen."""
    filled = round(max(0.0, min(part, 1.0)) * width)
    filled = max(filled, 1) if part > 0 else 0
    return FULL * filled + EMPTY * (width - filled)


def length_bar(value: float, largest: float, width: int = 30) -> str:
    """A bar as long as the value is beside the largest, to an eighth of a cell."""
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    return (FULL * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()
