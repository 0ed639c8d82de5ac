"""What Read does: a file as numbered lines, as something to look at, or as the cells of a notebook.

What was left out is always said.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from robota.core.messages import FilePart, ImagePart
from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.change import MAX_FILE_BYTES, load_file, remember
from robota.tools.files.directory import Content
from robota.tools.files.media import Medium, recognise
from robota.tools.files.path import FileProblem, locate
from robota.tools.files.text import DecodedText, decode
from robota.tools.notebook import Notebook, render_notebook

DEFAULT_LIMIT = 2_000
"""Lines returned when the call names no limit."""
MAX_LINE_CHARACTERS = 2_000
MAX_OUTPUT_BYTES = 256 * 1024


def read(ctx: ToolContext, file_path: str, first: int, limit: int | None) -> ToolResult:
    path = locate(file_path, ctx.cwd)
    try:
        real, content = load_file(path)
        result = _show(path, content, first, limit)
    except FileProblem as problem:
        return ToolResult.failure(str(problem), problem.code)
    remember(ctx.files, real, content)
    return result


def _show(path: str, content: Content, first: int, limit: int | None) -> ToolResult:
    size = max(content.facts.st_size, len(content.data))
    medium = recognise(content.data, size)
    if medium is not None:
        return _attach(path, content.data, medium)
    if path.endswith(".ipynb") and content.whole:
        notebook = render_notebook(content.data)
        if notebook is not None:
            return ToolResult(content=_show_cells(path, notebook, first, limit))
    decoded = decode(content.data, cut=not content.whole)
    if decoded is None:
        amount = f"{size:,} bytes" if content.whole else f"more than {MAX_FILE_BYTES:,} bytes"
        raise FileProblem(f"Binary file not supported: {path} ({amount})", "unreadable")
    notes = _describe_encoding(decoded)
    if not content.whole:
        notes.append(
            f"[The file has {size:,} bytes; only the first {MAX_FILE_BYTES:,} were looked at. "
            "Use Grep or a shell command for the rest.]"
        )
    return ToolResult(content=_show_lines(path, decoded.text, notes, first, limit))


def _attach(path: str, data: bytes, medium: Medium) -> ToolResult:
    from base64 import b64encode  # noqa: PLC0415 - few files are pictures

    noun = "PDF" if medium.kind == "PDF" else "Image"
    if medium.problem:
        raise FileProblem(f"{noun} cannot be shown: {path} ({medium.problem})", "unreadable")
    encoded = b64encode(data).decode()
    if medium.kind == "PDF":
        part = FilePart(encoded, medium.mime_type, os.path.basename(path))
        return ToolResult(content=f"[PDF: {path} ({len(data):,} bytes), attached]", parts=(part,))
    facts = f"{medium.kind}, {medium.width}x{medium.height}, {len(data):,} bytes"
    return ToolResult(
        content=f"[Image: {path} ({facts}), attached]", parts=(ImagePart(encoded, medium.mime_type),)
    )


def _describe_encoding(decoded: DecodedText) -> list[str]:
    if decoded.invalid_at is not None:
        return [
            f"[The file is not valid {decoded.format.name}, first at byte {decoded.invalid_at:,}; "
            "what does not fit is shown as \ufffd, and Edit refuses it.]"
        ]
    if decoded.format.encoding == "latin-1":
        return ["[The file is not valid UTF-8 and is shown as Latin-1.]"]
    if decoded.format.encoding != "utf-8":
        return [f"[The file is encoded in {decoded.format.name}.]"]
    return []


def _show_lines(path: str, text: str, notes: list[str], first: int, limit: int | None) -> str:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    total = len(lines)
    chosen = lines[first - 1 : first - 1 + (DEFAULT_LIMIT if limit is None else limit)]
    width = len(str(first - 1 + len(chosen)))
    shown = _fit(f"{number:>{width}}\t{_shorten(line)}" for number, line in enumerate(chosen, first))
    cut = limit is None or len(shown) < len(chosen)
    span, more = _describe_span("line", first, len(shown), total, cut=cut)
    return "\n".join([f"[File: {path} ({span})]", *shown, *notes, *more])


def _show_cells(path: str, notebook: Notebook, first: int, limit: int | None) -> str:
    total = len(notebook.cells)
    shown = _fit(notebook.cells[first - 1 :][:limit])
    span, more = _describe_span("cell", first, len(shown), total, cut=True)
    language = f" of {notebook.language}" if notebook.language else ""
    note = "[This shows the notebook's cells. The file itself is JSON, and Edit works on that.]"
    return "\n".join([f"[Notebook: {path} ({span}{language})]", *shown, note, *more])


def _fit(pieces: Iterable[str]) -> list[str]:
    """As many of the pieces as the result may hold."""
    fitting, room = [], MAX_OUTPUT_BYTES
    for piece in pieces:
        room -= len(piece.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        fitting.append(piece)
    return fitting


def _describe_span(unit: str, first: int, shown: int, total: int, *, cut: bool) -> tuple[str, list[str]]:
    """Which lines or cells these are, and a note on what is missing unless just so many were asked for."""
    last = first - 1 + shown
    if total and first > total:
        return f"{total} {unit}s", [f"[There is nothing at {unit} {first}: the file ends at {unit} {total}.]"]
    span = f"{total} {unit}s" if shown == total else f"{unit}s {first}-{last} of {total}"
    if last < total and cut:
        return span, [f"[{total - last} more {unit}s were left out. Use offset {last + 1} to read on.]"]
    return span, []


def _shorten(line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}… [{len(line) - MAX_LINE_CHARACTERS} more characters left out]"
