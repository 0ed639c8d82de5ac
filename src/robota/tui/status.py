"""The status line: mode, model, context, cost, branch and name of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text

from robota._lazy_pattern import lazy_pattern
from robota.sdk.view.neutral import neutral_output
from robota.tui.cells import count_cells, cut

if TYPE_CHECKING:
    from robota.sdk.view.model import Status
    from robota.tui.words import Words

_COLOUR = lazy_pattern("(\x1b\\[[0-9;]*m)")
WARM, HOT = 70, 90
"""From so many per cent of the context window on, the colour changes."""


def status_row(status: Status, width: int, words: Words) -> StyleAndTextTuples:
    """What fits of it; the less important is left out first."""
    parts: list[tuple[str, str]] = []
    if status.mode != "default":
        parts.append(("class:status.mode", words("status.mode", mode=status.mode)))
    parts.append(("class:status", status.model or "–"))
    if status.max_tokens:
        parts.append((_heat(status.context_percent), _context(status, words)))
    if status.cost_usd is not None:
        parts.append(("class:status", f"${status.cost_usd:.2f}" if status.cost_usd >= 0.01 else "$0.00"))
    if status.branch:
        parts.append(("class:status", status.branch))
    if status.name:
        parts.append(("class:status.name", status.name))
    row: StyleAndTextTuples = []
    left = width
    for style, text in parts:
        mark = " · " if row else ""
        shown = cut(text, left - len(mark))
        if left - len(mark) < 4:
            break
        row += [("class:status", mark), (style, shown)]
        left -= len(mark) + count_cells(shown)
    return row


def _heat(percent: float) -> str:
    return (
        "class:context.hot"
        if percent >= HOT
        else "class:context.warm"
        if percent >= WARM
        else "class:context"
    )


def _context(status: Status, words: Words) -> str:
    return words(
        "status.context",
        percent=round(status.context_percent),
        used=_thousands(status.used_tokens),
        size=_thousands(status.max_tokens),
    )


def _thousands(count: int) -> str:
    return f"{round(count / 1000)}K" if count >= 1000 else str(count)


def styled_row(line: str, width: int) -> StyleAndTextTuples:
    """A line with colours of a script's; nothing else of it reaches the terminal."""
    row: StyleAndTextTuples = []
    left = width
    pieces = _COLOUR.split(line)  # every second one is a colour; prompt_toolkit would pass on much more
    pieces[::2] = [neutral_output(text).replace("\n", " ") for text in pieces[::2]]
    for style, text, *_ in to_formatted_text(ANSI("".join(pieces))):
        shown = cut(text, left)
        left -= count_cells(shown)
        row.append((style, shown))
    return row
