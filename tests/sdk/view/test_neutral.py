"""Text that a terminal only shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.jsontext import decode, encode
from robota.sdk.view.neutral import (
    neutral_json,
    neutral_line,
    neutral_output,
    neutralise,
    strip_all,
    visible,
)

ANYTHING = st.text(st.characters(codec=None))


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain 日本語 👩‍💻 é\tx\n", "plain 日本語 👩‍💻 é\tx\n"),
        ("\x1b[2J", "␛[2J"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x00\x07\x7f", "␀␇␡"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("\u202eevil\u2069", "\\u202eevil\\u2069"),
        ("\ud800", "\ufffd"),
        ("\u2028", "\\u2028"),
    ],
)
def test_controls_become_signs(given: str, shown: str) -> None:
    assert neutralise(given) == shown


@given(ANYTHING)
def test_whatever_comes_the_cursor_only_goes_on(text: str) -> None:
    for made in (neutralise(text), neutral_output(text), neutral_line(text), strip_all(text), visible(text)):
        assert not any(ord(each) < 32 and each not in "\t\n" for each in made)
        assert not any(0x7F <= ord(each) < 0xA0 for each in made)
        assert not set(made) & set("\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert neutralise(neutralise(text)) == neutralise(text)
    assert "\n" not in neutral_line(text)
    neutralise(text).encode()


def test_output_of_programs_loses_its_colours() -> None:
    assert neutral_output("\x1b[31mred\x1b[0m 10%\r20%\u202e") == "red 10%\n20%\\u202e"


def test_nothing_is_hidden_from_whoever_decides() -> None:
    assert visible("rm\u200b \x1b[8m\U000e0041") == "rm\\u200b \\x1b[8m\\U000e0041"


@given(ANYTHING)
def test_json_for_a_screen_means_what_it_meant(text: str) -> None:
    line = encode({"text": text, text: [text]}) + b"\n"
    shown = neutral_json(line).decode()

    assert decode(shown) == decode(line)
    assert neutralise(shown) == shown
