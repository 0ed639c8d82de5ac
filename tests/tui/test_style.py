"""Colours of the live region."""

from __future__ import annotations

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles

from robota.tui.style import make_style
from robota.tui.theme import DARK, LIGHT, Theme


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_everything_stands_on_the_background_of_the_terminal_in_colours_that_can_be_read(
    theme: Theme,
) -> None:
    style = make_style(theme)
    shown = merge_styles([default_ui_style(), style])
    for name, _ in style.style_rules:
        seen = shown.get_attrs_for_style_str(f"class:{name}")

        assert seen.bgcolor in ("", "default"), name
        assert theme is DARK or seen.color not in ("ansigray", "ansiwhite"), name
