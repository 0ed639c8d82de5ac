"""Styles of the live region for a theme: fragments name a class, and here it gets its colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from robota.tui.theme import Theme

_COMMON = {
    "dialog": "noinherit",  # prompt_toolkit has a background of its own for this name
    "prompt": "bold",
    "dim": "fg:ansibrightblack",
    "thinking": "italic fg:ansibrightblack",
    "running": "fg:ansiyellow",
    "spinner": "fg:ansicyan",
    "activity": "",
    "queued": "italic",
    "hint": "italic",
    "task": "fg:ansiblue",
    "todo.in_progress": "bold",
    "todo.completed": "fg:ansibrightblack",
    "dialog.title": "bold",
    "dialog.key": "bold fg:ansicyan",
    "dialog.marked": "reverse",
    "dialog.subject": "fg:ansiyellow",
    "dialog.part": "bold fg:ansiyellow",
    "diff.added": "fg:ansigreen",
    "diff.removed": "fg:ansired",
    "diff.place": "fg:ansicyan",
    "completion.marked": "reverse",
    "status": "fg:ansibrightblack",
    "status.mode": "bold fg:ansiyellow",
    "status.name": "fg:ansimagenta",
    "context": "fg:ansigreen",
    "context.warm": "fg:ansiyellow",
    "context.hot": "bold fg:ansired",
}
_LIGHT = {
    "dialog.subject": "fg:ansiblue",
    "running": "fg:ansiblue",
}


def make_style(theme: Theme) -> Style:
    """Colours that a terminal has of its own, so that its user's choice of them counts."""
    return Style.from_dict({**_COMMON, **(_LIGHT if theme.name == "light" else {})})
