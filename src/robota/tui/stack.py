"""Rows of text and lines to write in, below each other: the layout of the live region.

Like prompt_toolkit's `HSplit` of windows, but with no more work a frame than there is change: heights are
found out once, and a row that is the same as in the frame before is not made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import AnyContainer, to_container
from prompt_toolkit.layout.containers import Container
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

_char = lru_cache(maxsize=4096)(Char)
_BEHIND = Char("", "")
"""The second cell of a wide letter."""


class Rows(Container):
    """Rows of fragments, each cut at the margin; as high as they are many, and less where they do not fit."""

    def __init__(self, make: Callable[[], Sequence[StyleAndTextTuples]], *, keep_end: bool = False) -> None:
        self._make = make
        self._keep_end = keep_end
        """Whether the last rows are shown where there is no room for all of them."""
        self._made: Sequence[StyleAndTextTuples] = ()
        self._drawn: dict[tuple[object, ...], defaultdict[int, Char]] = {}
        """The cells of the rows of the frame before."""

    def reset(self) -> None: ...

    def get_children(self) -> list[Container]:
        return []

    def preferred_width(self, max_available_width: int) -> Dimension:
        return Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        """The rows are made here, once a frame."""
        self._made = self._make()
        return Dimension(preferred=len(self._made))

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        height, width = write_position.height, write_position.width
        shown = self._made[-height:] if self._keep_end else self._made[:height]
        before, self._drawn = self._drawn, {}
        for y, row in enumerate(shown, write_position.ypos):
            if not row:
                continue
            same = (width, *row)
            cells = before.get(same)
            if cells is None:
                cells = screen.data_buffer[y]
                _fill(cells, row, width)
            else:
                screen.data_buffer[y] = cells
            self._drawn[same] = cells


def _fill(cells: dict[int, Char], row: StyleAndTextTuples, width: int) -> None:
    x = before = 0
    for style, text, *_ in row:
        for letter in text:
            cell = _char(letter, style)
            wide = cell.width
            if x + wide > width:
                return
            if wide:
                cells[x], before = cell, x
                for behind in range(x + 1, x + wide):
                    cells[behind] = _BEHIND
                x += wide
            elif x:  # a sign above or below the letter before
                cells[before] = _char(cells[before].char + letter, cells[before].style)


class Stack(Container):
    """Children below each other, with `padding` blank rows on top of them if there is room."""

    def __init__(self, children: Sequence[AnyContainer], padding: Callable[[], int]) -> None:
        self._children = [to_container(each) for each in children]
        self._padding = padding
        self._measured: tuple[int, int, list[int]] | None = None
        """The heights that are wanted in the frame to come, and in which room."""
        rows = [at for at, each in enumerate(self._children) if isinstance(each, Rows)]
        lines = [at for at in range(len(self._children)) if at not in rows]
        self._giving = [*rows[:1], *lines, *reversed(rows[1:])]
        """Who gives rows away first where there is no room for all."""

    def reset(self) -> None:
        for each in self._children:
            each.reset()

    def get_children(self) -> list[Container]:
        return self._children

    def preferred_width(self, max_available_width: int) -> Dimension:
        return Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        return Dimension(preferred=sum(self._heights(width, max_available_height)) + self._padding())

    def _heights(self, width: int, room: int) -> list[int]:
        if self._measured is None or self._measured[:2] != (width, room):
            wanted = [each.preferred_height(width, room).preferred for each in self._children]
            self._measured = width, room, wanted
        return self._measured[2]

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        x, width, room = write_position.xpos, write_position.width, write_position.height
        wanted = self._measured[2] if self._measured is not None else self._heights(width, room)
        self._measured = None
        heights = self._fit(wanted, room)
        y = write_position.ypos + max(0, min(self._padding(), room - sum(heights)))
        for each, height in zip(self._children, heights, strict=True):
            if height:
                place = WritePosition(x, y, width, height)
                each.write_to_screen(screen, mouse_handlers, place, parent_style, erase_bg, z_index)
            y += height
        screen.width = max(screen.width, x + width)
        screen.height = max(screen.height, write_position.ypos + room)

    def _fit(self, wanted: list[int], room: int) -> list[int]:
        """The same, with fewer rows where there is no room for all; a line to write in keeps one."""
        heights, short = list(wanted), sum(wanted) - room
        for at in self._giving:
            if short <= 0:
                break
            least = 0 if isinstance(self._children[at], Rows) else min(1, heights[at])
            given = min(short, heights[at] - least)
            heights[at] -= given
            short -= given
        return heights
