"""The layout of the live region: rows on a screen, and who gives way where there is no room."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Screen, WritePosition

from robota.tui.stack import Rows, Stack


def plain(*texts: str) -> list[StyleAndTextTuples]:
    return [[("", text)] for text in texts]


def draw(stack: Stack, width: int, height: int) -> Screen:
    screen = Screen()
    stack.preferred_height(width, height)
    stack.write_to_screen(screen, MouseHandlers(), WritePosition(0, 0, width, height), "", False, None)
    return screen


def shown(screen: Screen) -> list[str]:
    rows = (screen.data_buffer[y] for y in range(screen.height))
    return ["".join(row[x].char for x in range(screen.width)).rstrip() for row in rows]


def stack_of(
    above: Sequence[StyleAndTextTuples], below: Sequence[StyleAndTextTuples], *, padding: int = 0
) -> Stack:
    children = [Rows(lambda: above, keep_end=True), Window(height=2), Rows(lambda: below)]
    return Stack(children, lambda: padding)


def test_rows_are_cut_at_the_margin_between_letters() -> None:
    stack = Stack([Rows(lambda: plain("abcdef", "漢字漢字", "e\u0301a\u0301"))], lambda: 0)

    assert shown(draw(stack, 5, 3)) == ["abcde", "漢字", "e\u0301a\u0301"]


def test_a_row_that_stays_is_not_made_again_and_another_is() -> None:
    rows = plain("one", "two")
    stack = Stack([Rows(lambda: rows)], lambda: 0)
    first = draw(stack, 10, 2)
    rows = plain("two", "three")
    second = draw(stack, 10, 2)

    assert shown(second) == ["two", "three"]
    assert second.data_buffer[0] is first.data_buffer[1]
    assert shown(draw(stack, 2, 2)) == ["tw", "th"]


def test_rows_are_made_once_a_frame() -> None:
    made = 0

    def make() -> list[StyleAndTextTuples]:
        nonlocal made
        made += 1
        return plain(f"frame {made}")

    stack = Stack([Rows(make)], lambda: 0)
    stack.preferred_height(20, 5)

    assert shown(draw(stack, 20, 5))[0] == "frame 1"
    assert shown(draw(stack, 20, 5))[0] == "frame 2"


def test_blank_rows_on_top_keep_the_rest_where_it_was() -> None:
    stack = stack_of(plain("a"), plain("z"), padding=2)

    assert stack.preferred_height(10, 9).preferred == 6
    assert shown(draw(stack, 10, 6)) == ["", "", "a", "", "", "z"]
    assert shown(draw(stack, 10, 5)) == ["", "a", "", "", "z"]


def test_without_room_the_beginning_of_what_is_above_goes_first_and_one_line_to_write_in_stays() -> None:
    stack = stack_of(plain("a", "b"), plain("y", "z"))

    assert shown(draw(stack, 10, 5)) == ["b", "", "", "y", "z"]
    assert shown(draw(stack, 10, 3)) == ["", "y", "z"]
    assert shown(draw(stack, 10, 2)) == ["", "y"]
