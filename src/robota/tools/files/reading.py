"""What Read does: a file as numbered lines, as something to look at, or as the cells of a notebook.

What was left out is always said. An image or PDF that is cut off is none: in a conversation it would spoil
every later request.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.messages import FilePart, ImagePart, Json
from robota.core.plain_text import clip, shorten, strip_controls
from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.change import MAX_FILE_BYTES, EditorFiles, as_edited, load_file, remember
from robota.tools.files.directory import Content, Directory
from robota.tools.files.path import FileProblem, explain, locate
from robota.tools.files.text import DecodedText, TextFormat, decode

DEFAULT_LIMIT = 2_000
"""Lines returned when the call names no limit."""
MAX_LINE_CHARACTERS = 2_000
MAX_OUTPUT_BYTES = 256 * 1024


def read(
    ctx: ToolContext, file_path: str, first: int, limit: int | None, editor: EditorFiles | None = None
) -> ToolResult:
    path = locate(file_path, ctx.cwd)
    try:
        real, content = load_file(path, ctx.resolved.get(file_path))
        content = as_edited(path, content, editor)
        result = _show(path, real, content, first, limit)
    except FileProblem as problem:
        return ToolResult.failure(str(problem), problem.code)
    remember(ctx.files, real, content)
    return result


def _show(path: str, real: str, content: Content, first: int, limit: int | None) -> ToolResult:
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
    if content.whole:
        return ToolResult(content=_show_lines(path, decoded.text, notes, first, limit))
    try:
        window = read_window(real, decoded.format, first, DEFAULT_LIMIT if limit is None else limit)
    except OSError as error:
        raise explain(path, error, "read") from error
    return ToolResult(content=_show_window(path, window, notes, first, size))


def _attach(path: str, data: bytes, medium: Medium) -> ToolResult:
    noun = "PDF" if medium.kind == "PDF" else "Image"
    if medium.problem:
        raise FileProblem(f"{noun} cannot be shown: {path} ({medium.problem})", "unreadable")
    facts = f"{len(data):,} bytes"
    if medium.kind != "PDF":
        facts = f"{medium.kind}, {medium.width}x{medium.height}, {facts}"
    part = medium.carry(data, os.path.basename(path))
    return ToolResult(content=f"[{noun}: {path} ({facts}), attached]", parts=(part,))


def _describe_encoding(decoded: DecodedText) -> list[str]:
    if decoded.invalid_at is not None:
        return [
            f"[The file is not valid {decoded.format.name}, first at byte {decoded.invalid_at:,}; "
            "what does not fit is shown as \ufffd, and Edit refuses it.]"
        ]
    if decoded.format.encoding == "latin-1":
        return ["[The file is not valid UTF-8 and its encoding was not recognised: it is shown as Latin-1.]"]
    if decoded.format.encoding.startswith("utf-"):
        return (
            [] if decoded.format.encoding == "utf-8" else [f"[The file is encoded in {decoded.format.name}.]"]
        )
    return [f"[The file is not valid UTF-8 and is shown as {decoded.format.name}; Edit and Write keep that.]"]


def _show_window(path: str, window: Window, notes: list[str], first: int, size: int) -> str:
    last = first - 1 + len(window.lines)
    shown = _fit(
        f"{number:>{len(str(last))}}\t{_shorten(*line)}" for number, line in enumerate(window.lines, first)
    )
    more = [f"[There is more. Use offset {first + len(shown)} to read on.]"]
    if not window.lines:
        more = [f"[There is nothing at line {first}: the file ends at line {window.passed}.]"]
    elif window.ended and len(shown) == len(window.lines):
        more = []
    span = f"lines {first}-{first - 1 + len(shown)} of {size:,} bytes" if shown else f"{size:,} bytes"
    return "\n".join([f"[File: {path} ({span})]", *shown, *notes, *more])


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


def _shorten(line: str, hidden: int = 0) -> str:
    """`hidden`: how many characters the line has behind these."""
    line = line.removesuffix("\r")
    if len(line) + hidden <= MAX_LINE_CHARACTERS:
        return line
    rest = len(line) + hidden - MAX_LINE_CHARACTERS
    return f"{line[:MAX_LINE_CHARACTERS]}… [{rest} more characters left out]"


# --- images and PDFs -----------------------------------------------------------------------------------

MAX_IMAGE_BYTES = 5 * 1024 * 1024
MAX_IMAGE_SIDE = 8_000
MAX_PDF_BYTES = 10 * 1024 * 1024

Kind: TypeAlias = Literal["PNG", "JPEG", "GIF", "WebP", "PDF"]
_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"%PDF-", "PDF"),
)


class Medium(Struct, frozen=True):
    kind: Kind
    width: int = 0
    height: int = 0
    problem: str = ""
    """Why it cannot be shown, and what to do about it."""

    def carry(self, data: bytes, name: str = "") -> FilePart | ImagePart:
        """It as a part of a conversation; of an image the name is not told."""
        from base64 import b64encode  # noqa: PLC0415 - few files are pictures

        encoded = b64encode(data).decode()
        if self.kind == "PDF":
            return FilePart(encoded, "application/pdf", name)
        return ImagePart(encoded, f"image/{self.kind.lower()}")


def recognise(data: bytes, size: int) -> Medium | None:
    """What begins with `data` and has `size` bytes; `None` when it is no sound file of these kinds."""
    kind = next((kind for start, kind in _STARTS if data.startswith(start)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "WebP"
    if kind is None:
        return None
    limit = MAX_PDF_BYTES if kind == "PDF" else MAX_IMAGE_BYTES
    if size > limit:
        advice = "use a shell command such as pdftotext" if kind == "PDF" else "make it smaller first"
        return Medium(kind, problem=f"{size:,} bytes are too many, the limit is {limit:,}; {advice}")
    return _inspect_pdf(data) if kind == "PDF" else _inspect_image(kind, data)


def _inspect_pdf(data: bytes) -> Medium | None:
    if b"%%EOF" not in data[-1_024:]:
        return None
    return Medium("PDF", problem="it is encrypted; decrypt it first" if b"/Encrypt" in data else "")


def _inspect_image(kind: Kind, data: bytes) -> Medium | None:
    width, height = _MEASURES[kind](data)
    if not width or not height:
        return None
    if max(width, height) <= MAX_IMAGE_SIDE:
        return Medium(kind, width, height)
    problem = f"{width}x{height} is too large, the limit is {MAX_IMAGE_SIDE} a side; make it smaller first"
    return Medium(kind, problem=problem)


def _measure_png(data: bytes) -> tuple[int, int]:
    sound = data[12:16] == b"IHDR" and b"IEND" in data[24:]
    return (_big(data[16:20]), _big(data[20:24])) if sound else (0, 0)


def _measure_gif(data: bytes) -> tuple[int, int]:
    sound = len(data) > 13 and data.rstrip(b"\0").endswith(b";")
    return (_little(data[6:8]), _little(data[8:10])) if sound else (0, 0)


def _measure_webp(data: bytes) -> tuple[int, int]:
    if _little(data[4:8]) + 8 > len(data):
        return 0, 0
    if data[12:16] == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if data[12:16] == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    """From the frame header, found by hopping over the segments before it."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            sound = data.find(b"\xff\xd9", at) > 0
            return (_big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])) if sound else (0, 0)
        # a fill byte stands alone, every other segment names its length
        at += 1 if marker == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return 0, 0


_MEASURES = {"PNG": _measure_png, "JPEG": _measure_jpeg, "GIF": _measure_gif, "WebP": _measure_webp}


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


# --- notebooks -----------------------------------------------------------------------------------------

MAX_SOURCE_CHARACTERS = 20_000
MAX_OUTPUT_CHARACTERS = 4_000
"""Of all outputs of one cell."""


class Notebook(Struct, frozen=True):
    language: str
    cells: tuple[str, ...]


def render_notebook(data: bytes) -> Notebook | None:
    """`None` when this is not a notebook of format 4, the one in use since 2014."""
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


# --- lines of a text that is too long to be held ---------------------------------------------------------

KEPT_CHARACTERS = 4_000
"""Of one line; the others are counted."""


class Window(Struct):
    lines: list[tuple[str, int]] = []
    """The beginning of each line, and how many characters follow it."""
    passed: int = 0
    """How many lines were read, these included."""
    ended: bool = False
    """Whether the file ends with them."""


def read_window(real: str, format: TextFormat, first: int, count: int) -> Window:
    """So many lines from the first on, which counts from 1."""
    with Directory(os.path.dirname(real)) as directory:
        chunks = directory.stream(os.path.basename(real))
        return _collect(_decode(chunks, format), first, count)


def _decode(chunks: Iterable[bytes], format: TextFormat) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(format.encoding)("replace")
    skip = len(format.mark)
    for chunk in chunks:
        yield decoder.decode(chunk[skip:])
        skip = 0
    yield decoder.decode(b"", final=True)


def _collect(texts: Iterable[str], first: int, count: int) -> Window:
    window, kept, length, is_open = Window(), "", 0, False
    for text in filter(None, texts):
        is_open = not text.endswith("\n")
        ends = text.count("\n")
        if window.passed + ends < first - 1:  # all of it lies before
            window.passed += ends
            continue
        *whole, rest = text.split("\n")
        for line in whole:
            if window.passed >= first - 1:
                kept += line[: KEPT_CHARACTERS - len(kept)]
                window.lines.append((kept, length + len(line) - len(kept)))
            window.passed, kept, length = window.passed + 1, "", 0
            if len(window.lines) == count:
                return window
        if window.passed >= first - 1:
            kept += rest[: KEPT_CHARACTERS - len(kept)]
            length += len(rest)
    window.ended = True
    if is_open:
        window.passed += 1
        if window.passed >= first:
            window.lines.append((kept, length - len(kept)))
    return window
