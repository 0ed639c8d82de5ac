"""What `robota.tui.surface` relies on in prompt_toolkit, and what it makes of it."""

from __future__ import annotations

import inspect

import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import Style

from robota.tui.surface import PASTE_END, PasteParser, without_enter_in_text

PASTE_START = "\x1b[200~"


def test_prompt_toolkit_has_the_names_that_the_surface_uses() -> None:
    renderer = Renderer(Style([]), DummyOutput())
    for name in ("_cursor_pos", "_last_screen", "_last_size"):
        assert hasattr(renderer, name), name
    assert list(inspect.signature(Application._redraw).parameters) == ["self", "render_as_done"]
    assert list(inspect.signature(Application._on_resize).parameters) == ["self"]
    assert "render_counter" in inspect.getsource(Application._redraw)
    assert "self._on_resize" in inspect.getsource(Application.run_async)
    assert list(inspect.signature(Vt100Parser.feed).parameters) == ["self", "data"]
    assert "_in_bracketed_paste" in inspect.getsource(Vt100Parser.feed)
    assert "vt100_parser" in inspect.getsource(Vt100Input.__init__)
    assert "stdin_reader.read" in inspect.getsource(Vt100Input.read_keys)
    assert "_buffer" in inspect.getsource(Vt100_Output.flush)
    assert "min_available_height" in inspect.getsource(Renderer.render)
    assert list(inspect.signature(HSplit._divide_heights).parameters) == ["self", "write_position"]
    assert "self._divide_heights(write_position)" in inspect.getsource(HSplit.write_to_screen)
    assert "self._all_children" in inspect.getsource(HSplit._divide_heights)


def keys_of(*pieces: str) -> list[KeyPress]:
    found: list[KeyPress] = []
    parser = PasteParser(found.append)
    for piece in pieces:
        parser.feed(piece)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64])
def test_a_paste_is_the_same_however_it_is_cut(size: str | int) -> None:
    data = f"a{PASTE_START}one\x1b[201\ntwo\x1b[A{PASTE_END}b"
    step = int(size)
    pieces = [data[at : at + step] for at in range(0, len(data), step)]

    found = keys_of(*pieces)

    assert [(key.key, key.data) for key in found] == [
        ("a", "a"),
        (Keys.BracketedPaste, "one\x1b[201\ntwo\x1b[A"),
        ("b", "b"),
    ]


def test_two_pastes_in_one_read_are_two() -> None:
    found = keys_of(f"{PASTE_START}x{PASTE_END}{PASTE_START}y{PASTE_END}")

    assert [key.data for key in found] == ["x", "y"]


def test_a_large_paste_looks_at_each_character_only_a_few_times() -> None:
    """Counted in searched characters, not in seconds: the stock parser searches all of it for each read."""

    class Counted(str):
        searched = 0

        def find(self, *args: object) -> int:  # type: ignore[override]
            Counted.searched += len(self)
            return super().find(*args)  # type: ignore[arg-type]

        def __radd__(self, other: str) -> Counted:
            return Counted(str(other) + str(self))

    parser = PasteParser(lambda key: None)
    parser.feed(PASTE_START)
    for _ in range(100):
        parser.feed(Counted("x" * 1000))
    parser.feed(PASTE_END)

    assert 100_000 <= Counted.searched < 110_000


def test_enter_with_text_behind_it_in_one_read_is_a_line_break() -> None:
    keys = [
        KeyPress("a", "a"),
        KeyPress(Keys.ControlM, "\r"),
        KeyPress("b", "b"),
        KeyPress(Keys.ControlM, "\r"),
    ]

    assert [key.key for key in without_enter_in_text(keys)] == ["a", Keys.ControlJ, "b", Keys.ControlM]
