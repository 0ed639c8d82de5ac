"""A dialog as rows of the screen: what is asked, both ends of it if it is long, and the options below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.tui.cells import cut, wrap_line

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples as Row

    from robota.tui.dialogs import Dialog, Line, Option
    from robota.tui.words import Words

MOST_OPTIONS = 10


def dialog_rows(dialog: Dialog, words: Words, width: int, room: int, *, armed: bool) -> list[Row]:
    """At most `room` rows; the options are never among those left out."""
    options = _options(dialog, words, width, max(1, room - 2), armed=armed)
    head = [row for line in dialog.lines for row in _line_rows(line, width)]
    left = max(2, room - len(options))
    if len(head) > left:  # the end of what is asked about matters as much as its beginning
        start, hidden = left // 2, len(head) - left + 1
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
        return [[("class:dialog.key", cut(dialog.entry.label, width))]]
    shown = dialog.shown
    made: list[Row] = []
    if dialog.filtered and (dialog.needle or not shown):
        made.append([("class:dialog.key", cut(f"/{dialog.needle}", width))])
    count = max(1, min(room - len(made) - 1, MOST_OPTIONS))
    start = max(0, min(dialog.at - count // 2, len(shown) - count))
    last = min(start + count, len(shown))
    made += [_option(dialog, shown[at], at, width, armed=armed) for at in range(start, last)]
    hint = words("dialog.armed" if armed else "dialog.typing")
    if dialog.closable and armed:
        hint = words("dialog.list")
    return [*made, [("class:dim", cut(hint, width))]]


def _option(dialog: Dialog, option: Option, at: int, width: int, *, armed: bool) -> Row:
    marked = at == dialog.at
    mark = "› " if marked else "  "
    box = ("[x] " if at in dialog.chosen else "[ ] ") if dialog.many else ""
    key = f"{option.key.split()[0]}  " if option.key else ""
    text = cut(f"{box}{option.label}", width - len(mark) - len(key))
    style = "class:dialog.marked" if marked and armed else ""
    row: Row = [(style, mark), ("class:dialog.key", key), (style, text)]
    left = width - len(mark) - len(key) - len(text) - 2
    if option.detail and left > 8:
        row.append(("class:dim", f"  {cut(option.detail, left)}"))
    return row
