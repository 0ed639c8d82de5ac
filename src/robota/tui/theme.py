"""Colours: sixteen of the terminal's own, on its own background, so that every palette stays readable.

Nothing is told by colour alone: without colours, marks, bold and reverse remain.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

_LIGHT_BACKGROUNDS = ("7", "15")
"""In `COLORFGBG`, which some terminals set."""


class Theme(Struct, frozen=True):
    """How things look. A style is in rich's words: `bold cyan`."""

    name: str
    code: str
    """The colours of code, by pygments' name for them."""
    colour: bool = True
    user: str = "bold"
    dim: str = "dim"
    heading: str = "bold"
    inline_code: str = "cyan"
    link: str = "blue"
    quote: str = "italic"
    table: str = "bold"
    thinking: str = "dim italic"
    notice: str = "dim"
    error: str = "red"
    success: str = "green"
    failed: str = "strike red"
    denied: str = "strike bright_yellow"
    warning: str = "yellow"
    danger: str = "red"
    added: str = "green"
    removed: str = "red"
    session: str = "magenta"
    busy: str = "yellow"


DARK = Theme("dark", "ansi_dark")
LIGHT = Theme("light", "ansi_light", denied="strike yellow")


def choose_theme(wanted: str | None, environment: Mapping[str, str]) -> Theme:
    """`light`, `dark`, or by what the terminal says of itself; without colours if `NO_COLOR` is set."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    light = wanted == "light" or (wanted != "dark" and background in _LIGHT_BACKGROUNDS)
    theme = LIGHT if light else DARK
    return replace(theme, colour=False) if environment.get("NO_COLOR") else theme
