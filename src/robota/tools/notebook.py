"""A Jupyter notebook as text: its cells with their numbers, outputs shortened, images as notes."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from robota.core.messages import Json
from robota.core.plain_text import clip, shorten, strip_controls

MAX_SOURCE_CHARACTERS = 20_000
MAX_OUTPUT_CHARACTERS = 4_000
"""Of all outputs of one cell."""


class Notebook(Struct, frozen=True):
    language: str
    cells: tuple[str, ...]


def render_notebook(data: bytes) -> Notebook | None:
    """`None` when this is no notebook of format 4, the one in use since 2014."""
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    cells = _get(document, "cells")
    if not isinstance(cells, list):
        return None
    kernel = _get(_get(document, "metadata"), "kernelspec")
    language = _get(kernel, "language") or _get(_get(_get(document, "metadata"), "language_info"), "name")
    rendered = tuple(_render_cell(number, cell) for number, cell in enumerate(cells, 1))
    return Notebook(language if isinstance(language, str) else "", rendered)


def _render_cell(number: int, cell: Json) -> str:
    kind, run = _get(cell, "cell_type"), _get(cell, "execution_count")
    order = f", run as {run}" if isinstance(run, int) else ""
    title = f"--- Cell {number} ({kind if isinstance(kind, str) else 'unknown'}{order}) ---"
    lines = [title, clip(_join(_get(cell, "source")), MAX_SOURCE_CHARACTERS).rstrip("\n")]
    outputs = _get(cell, "outputs")
    shown = [_render_output(output) for output in outputs] if isinstance(outputs, list) else []
    if any(shown):
        text = "\n".join(text.strip("\n") for text in shown if text)
        lines += [f"--- Output of cell {number} ---", shorten(text, MAX_OUTPUT_CHARACTERS)]
    return "\n".join(lines)


def _render_output(output: Json) -> str:
    """A stream, an error or a result, which may come in several forms: the plain one is shown."""
    if _get(output, "output_type") == "error":
        words = f"{_get(output, 'ename')}: {_get(output, 'evalue')}"
        return strip_controls(_join(_get(output, "traceback"), "\n") or words)
    if (data := _get(output, "data")) is None:
        return strip_controls(_join(_get(output, "text")))
    if not isinstance(data, dict):
        return ""
    notes = [
        f"[{kind}: about {len(_join(value)) * 3 // 4:,} bytes, not shown]"
        for kind, value in data.items()
        if kind.startswith("image/")
    ]
    plain = strip_controls(_join(data.get("text/plain")))
    if not plain and not notes:
        return f"[{', '.join(data)}: not shown]" if data else ""
    return "\n".join([plain, *notes] if plain else notes)


def _join(value: Json, separator: str = "") -> str:
    """Text is stored whole or as a list of lines."""
    if isinstance(value, list):
        return separator.join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _get(value: Json, key: str) -> Json:
    return value.get(key) if isinstance(value, dict) else None
