"""The live region: what is being said and done, the dialog or the input, the list of completions, the status.

Rows are made here as styled fragments; windows have no style of their own, which would paint blanks to the
margin with every frame.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import BufferControl, ConditionalContainer, Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.widgets import SearchToolbar

from robota.sdk.view.model import Live, Status
from robota.sdk.view.neutral import neutral_line
from robota.tui.cells import count_cells, cut, cut_front, tail_height, tail_page
from robota.tui.complete import first_offer
from robota.tui.dialog_rows import dialog_rows
from robota.tui.stack import Rows, Stack
from robota.tui.status import status_row

if TYPE_CHECKING:
    from robota.tui.dialogs import Dialogs
    from robota.tui.surface import Surface
    from robota.tui.words import Words

Row: TypeAlias = StyleAndTextTuples
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINS_A_SECOND = 4
COMPLETION_ROWS = 8
QUESTION_LEAVES = 3
"""Rows above a question, which needs the others."""
QUESTION_ROWS = 20
"""On a screen with fewer rows it needs them all."""
ROOMY = 12
"""Rows of a screen that has room for more than what is needed."""
STATUS_ROWS = 6
"""Rows of a screen that has one for the status."""
TOOL_LINES, SHOWN_TOOLS, SHOWN_TODOS, SHOWN_TASKS = 4, 3, 6, 3
TODO_SIGNS = {"pending": "·", "in_progress": "▸", "completed": "✓"}


class Region:
    """What is shown, and the layout that shows it."""

    def __init__(self, input: Buffer, entry: Buffer, dialogs: Dialogs, words: Words) -> None:
        self.live = Live()
        self.status = Status()
        self.input = input
        self.entry = entry
        self.dialogs = dialogs
        self.words = words
        self.hint = ""
        """One line for the moment, such as what a second Ctrl-C would do."""
        self.script: tuple[str, ...] = ()
        """What the user's own status line says."""
        self.show_thinking = False
        self.prompt_sign = "> "
        self.surface: Surface | None = None
        self._tail_rows = 0
        self._above_rows = 0
        self.dialog_keys = Window(FormattedTextControl(focusable=True), height=0, always_hide_cursor=True)
        """Has the focus while keys are answers; what is asked is shown in rows above it."""
        self._search = SearchToolbar(
            forward_search_prompt=words("search.forward"), backward_search_prompt=words("search.back")
        )
        self.layout = Layout(self._container(), focused_element=input)

    def _container(self) -> Stack:
        has_entry = Condition(lambda: self._entry_open)
        shows_input = Condition(lambda: not self._entry_open and self._input_shown)
        return Stack(
            [
                Rows(self._above, keep_end=True),
                Rows(self._dialog),
                self.dialog_keys,
                ConditionalContainer(self._line(self.entry, lambda: "  "), has_entry),
                ConditionalContainer(self._line(self.input, lambda: self.prompt_sign), shows_input),
                self._search,
                Rows(lambda: [*self._completions(), *self._below()]),
            ],
            self._padding,
        )

    def _line(self, buffer: Buffer, sign: Callable[[], str]) -> Window:
        def prefix(line: int, wrapped: int) -> Row:
            return [("class:prompt", sign() if line == wrapped == 0 else "  ")]

        return Window(
            BufferControl(buffer, search_buffer_control=self._search.control, preview_search=True),
            height=lambda: Dimension(min=1, max=max(1, self._size[0] // 2)),
            wrap_lines=True,
            get_line_prefix=prefix,
        )

    @property
    def _size(self) -> tuple[int, int]:
        if self.surface is None:
            return 24, 80
        size = self.surface.size
        return size.rows, size.columns

    def focus(self) -> None:
        """Have the keys go where they belong: to a dialog only when it is armed."""
        wanted: Buffer | Window = self.input
        if self._entry_open:
            wanted = self.entry
        elif self.dialogs.armed and not self.input.text:
            wanted = self.dialog_keys
        if not self.layout.has_focus(wanted):  # the layout notes every change for good
            self.layout.focus(wanted)

    @property
    def _entry_open(self) -> bool:
        dialog = self.dialogs.current
        return dialog is not None and dialog.entry is not None

    @property
    def _input_shown(self) -> bool:
        """The input gives way to a dialog that takes the keys, unless something stands in it."""
        return not self.dialogs.armed or bool(self.input.text)

    # --- rows above the input -----------------------------------------------------------------------

    def _padding(self) -> int:
        if self.surface is None or self.dialogs.current is not None:
            return 0  # a question needs the rows
        return self.surface.padding

    def _above(self) -> list[Row]:
        made = self._make_above()
        self._above_rows = len(made)
        return made

    def _make_above(self) -> list[Row]:
        rows, columns = self._size
        width, live = columns - 1, self.live
        if self.surface is not None and self.surface.resizing:
            return []
        apart: list[Row] = [[]] if rows >= ROOMY else []
        if live.activity == "idle":
            self._tail_rows = 0
            return [*apart, *self._tasks(width)][: max(0, rows - 4)]
        shown = [*apart, *self._tail(width, rows)]
        shown += self._tools(width)
        if rows >= ROOMY:
            shown += [*self._todos(width), *self._tasks(width)]
        shown.append(self._activity(width))
        if live.queued is not None:
            waits = self.words("queued", prompt=neutral_line(live.queued))
            shown.append([("class:queued", cut(f"  {waits}", width))])
        if self.dialogs.current is None:
            return shown[-max(1, rows - 4) :]
        return shown[-QUESTION_LEAVES:] if rows >= QUESTION_ROWS else []

    def _tail(self, width: int, rows: int) -> list[Row]:
        """The unfinished answer. Its height only grows while a turn runs: a region that changes its height
        has to be drawn anew."""
        text, style = self.live.tail, ""
        if not text and self.show_thinking:
            text, style = self.live.thinking, "class:thinking"
        page = tail_page(text, width, tail_height(rows))
        if self.dialogs.current is not None:
            self._tail_rows = 0  # the rows are the question's now
        self._tail_rows = max(self._tail_rows, len(page)) if page or self._tail_rows else 0
        rows_shown: list[Row] = [[(style, line)] for line in page]
        return rows_shown + [[] for _ in range(self._tail_rows - len(page))]

    def _tools(self, width: int) -> list[Row]:
        shown: list[Row] = []
        for tool in self.live.tools[-SHOWN_TOOLS:]:
            took = seconds_shown(time.monotonic() - tool.since) if tool.since else ""
            about = cut(tool.shown, max(4, width - 12))
            shown.append([("class:running", "⟳ "), ("", about), ("class:dim", f"  {took}")])
            room = TOOL_LINES if len(self.live.tools) == 1 else 1
            shown += [[("class:dim", cut(f"  │ {line}", width))] for line in tool.lines[-room:]]
        left = len(self.live.tools) - SHOWN_TOOLS
        return shown if left <= 0 else [[("class:dim", f"  +{left}")], *shown]

    def _todos(self, width: int) -> list[Row]:
        todos = self.live.todos
        if not todos or all(each.state == "completed" for each in todos):
            return []
        current = next((at for at, each in enumerate(todos) if each.state != "completed"), 0)
        start = max(0, min(current - 1, len(todos) - SHOWN_TODOS))
        return [
            [(f"class:todo.{each.state}", cut(f"  {TODO_SIGNS[each.state]} {each.text}", width))]
            for each in todos[start : start + SHOWN_TODOS]
        ]

    def _tasks(self, width: int) -> list[Row]:
        shown: list[Row] = []
        for task in self.live.tasks[:SHOWN_TASKS]:
            doing = f": {task.doing}" if task.doing else ""
            text = f"  ◦ {task.label} [{task.task_id}] {task.state}{doing}"
            shown.append([("class:task", cut(text, width))])
        left = len(self.live.tasks) - SHOWN_TASKS
        return [*shown, [("class:dim", f"  +{left}")]] if left > 0 else shown

    def _activity(self, width: int) -> Row:
        now = time.monotonic()
        live = self.live
        sign = SPINNER[int(now * SPINS_A_SECOND) % len(SPINNER)]
        parts = [self.words(f"activity.{live.activity}")]
        if live.since:
            parts.append(seconds_shown(now - live.since))
        if live.tokens:
            parts.append(self.words("tokens", count=count_shown(live.tokens)))
        if live.activity != "waiting":
            parts.append(self.words("esc-stops"))
        return [("class:spinner", f"{sign} "), ("class:activity", cut(" · ".join(parts), width - 2))]

    # --- the dialog ---------------------------------------------------------------------------------

    def _dialog(self) -> list[Row]:
        dialog = self.dialogs.current
        if dialog is None:
            return []
        rows, columns = self._size
        room = rows - self._above_rows - (2 if rows >= STATUS_ROWS else 1)
        return dialog_rows(dialog, self.words, columns - 1, room, armed=self.dialogs.armed)

    # --- rows below the input -----------------------------------------------------------------------

    def _completions(self) -> list[Row]:
        state = self.input.complete_state
        rows, columns = self._size
        if state is None or self._entry_open or not self._input_shown:
            return []
        count = max(1, min(COMPLETION_ROWS, rows - 5))
        at = 0 if first_offer(self.input) else state.complete_index
        start = max(0, min((at or 0) - count // 2, len(state.completions) - count))
        found = state.completions[start : start + count]
        width = columns - 1
        widest = max((count_cells(each.display_text) for each in found), default=0)
        column = min(widest, width // 2) + 2
        shown: list[Row] = []
        for place, each in enumerate(found, start):
            style = "class:completion.marked" if place == at else "class:completion"
            name = (
                cut(each.display_text, column)
                if each.text[:1] == "/"
                else cut_front(each.display_text, column)
            )
            about = cut(each.display_meta_text, width - column - 4)
            blanks = " " * (column - count_cells(name))
            shown.append([(style, f"  {name}{blanks}"), ("class:dim", about)])
        return shown

    def _below(self) -> list[Row]:
        rows, columns = self._size
        if rows < STATUS_ROWS:
            return []
        width = columns - 1
        if self.hint:
            return [[("class:hint", cut(self.hint, width))]]
        if self.script:
            return [self._scripted(line, width) for line in self.script]
        return [status_row(self.status, width, self.words)]

    def _scripted(self, line: str, width: int) -> Row:
        from robota.tui.status import styled_row  # noqa: PLC0415 - for those who have one

        return styled_row(line, width)


def seconds_shown(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m {whole % 60:02}s"


def count_shown(count: int) -> str:
    return str(count) if count < 1000 else f"{count / 1000:.1f}k"
