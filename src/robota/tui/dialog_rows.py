"""A dialog as rows of the screen: what is asked, both ends of it if it is long, and the options below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.tui.cells import count_cells, cut, wrap_line

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples as Row

    from robota.tui.dialogs import Dialog, Line, Option
    from robota.tui.words import Words

MOST_OPTIONS = 10
DETAIL_ROWS, DETAIL_INDENT = 4, 5
LEAST_HEAD = 4
"""Rows of what is asked about that stay in sight when all answers are."""
HINT_ROWS = 5
"""With less room than this, the answers need the row of the hint."""


def dialog_rows(dialog: Dialog, words: Words, width: int, room: int, *, armed: bool) -> list[Row]:
    """At most `room` rows, of which the options may take half, or what the question leaves them."""
    head = [row for line in dialog.lines for row in _line_rows(line, width)]
    most = max(room // 2, room - max(LEAST_HEAD, len(head)), min(room - LEAST_HEAD, len(dialog.options) + 1))
    options = _options(dialog, words, width, most, armed=armed)
    if room < HINT_ROWS and len(options) > 1:
        options.pop()
    left = max(2, room - len(options))
    if len(head) > left:  # the end of what is asked about matters as much as its beginning
        start, hidden = (left + 1) // 2, len(head) - left + 1
        more = f"  {words('permission.more', count=hidden)}"
        head[start : start + hidden] = [[("class:dialog.part", cut(more, width))]]
    return [*head, *options]


def _line_rows(line: Line, width: int) -> list[Row]:
    style = f"class:{line.style}" if line.style else ""
    if line.mark is None:
        return [[(style, cut(line.text, width))]]
    pieces = wrap_line(line.text, max(1, width - len(line.mark)))
    return [[("class:dim", line.mark), (style, piece)] for piece in pieces]


def _options(dialog: Dialog, words: Words, width: int, room: int, *, armed: bool) -> list[Row]:
    if dialog.entry is not None:
        label = cut(dialog.entry.label, width)
        hint = cut(f"  {words('dialog.entry')}", width - count_cells(label))
        return [[("class:dialog.key", label), ("class:dim", hint)]]
    shown = dialog.shown
    made: list[Row] = []
    if dialog.filtered and (dialog.needle or not shown):
        made.append([("class:dialog.key", cut(f"/{dialog.needle}", width))])
        if not shown:
            made.append([("class:dim", cut(f"  {words('dialog.nothing-found')}", width))])
    at = min(dialog.at, len(shown) - 1)
    rows = [_option(dialog, each, place, width, armed=armed) for place, each in enumerate(shown)]
    left = room - len(made) - 1
    if sum(map(len, rows)) > left:  # what an option says is whole where it is marked
        rows = [
            rows[at] if place == at else _option(dialog, each, place, width, armed=armed, short=True)
            for place, each in enumerate(shown)
        ]
    count = max(1, min(left + 1 - (len(rows[at]) if rows else 0), MOST_OPTIONS))
    start = max(0, min(at - count // 2, len(shown) - count))
    for each in rows[start : start + count]:
        made += each
    hint = words("dialog.armed" if armed else "dialog.typing")
    if dialog.closable and armed:
        hint = words("dialog.many" if dialog.many else "dialog.list")
    hidden = (("↑", start), ("↓", len(shown) - start - count))
    signs = "".join(f"{sign}{number} " for sign, number in hidden if number > 0)
    return [*made, [("class:dialog.key", cut(signs, width)), ("class:dim", cut(hint, width - len(signs)))]]


def _option(
    dialog: Dialog, option: Option, at: int, width: int, *, armed: bool, short: bool = False
) -> list[Row]:
    """All it says, unless it is an entry of a list; below the marked one also what does not fit beside it."""
    marked = at == dialog.at
    mark = "› " if marked else "  "
    box = ("[x] " if at in dialog.chosen else "[ ] ") if dialog.many and not option.entry else ""
    key = f"{option.key.split()[0]}  " if option.key else ""
    indent = len(mark) + len(key)
    label = f"{box}{option.label}"
    words = (
        [cut(label, width - indent)] if short or dialog.filtered else wrap_line(label, max(1, width - indent))
    )
    style = "class:dialog.marked" if marked and armed else ""
    row: Row = [(style, mark), ("class:dialog.key", key), (style, words[0])]
    more: list[Row] = [[(style, f"{'':{indent}}{each}")] for each in words[1:]]
    left = width - indent - count_cells(words[0]) - 2
    if marked and not dialog.filtered and count_cells(option.detail) > left:
        pieces = wrap_line(option.detail, max(1, width - DETAIL_INDENT))[:DETAIL_ROWS]
        details: list[Row] = [[("class:dim", f"{'':{DETAIL_INDENT}}{piece}")] for piece in pieces]
        return [row, *more, *details]
    if option.detail and left > 8 and not more:
        row.append(("class:dim", f"  {cut(option.detail, left)}"))
    return [row, *more]
