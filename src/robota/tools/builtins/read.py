"""The Read tool: a text file as numbered lines, within limits, and never stuck on what is no file.

What was left out is always said. The hash of a file that was read whole is kept in `context.files` under its
real path, so that a later change by somebody else is noticed; files above `MAX_FILE_BYTES` have none.
"""

from __future__ import annotations

import errno
import os
import stat

from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.function_tool import FunctionTool, text_beside

DEFAULT_LIMIT = 2_000
"""Lines returned when the call names no limit."""
MAX_LINE_CHARACTERS = 2_000
MAX_OUTPUT_BYTES = 256 * 1024
MAX_FILE_BYTES = 10 * 1024 * 1024
"""How much of a file is looked at, from its beginning."""
CHUNK_BYTES = 1024 * 1024
BINARY_PROBE = 8_192
"""A NUL among so many first bytes makes a file binary."""

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "file_path": {
            "type": "string",
            "description": "The file: an absolute path, or one relative to the working directory.",
        },
        "offset": {"type": "integer", "description": "The first line to return, counted from 1. Default: 1."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "description": f"How many lines to return. Default: {DEFAULT_LIMIT}.",
        },
    },
    "required": ["file_path"],
    "additionalProperties": False,
}


def read_tool() -> FunctionTool:
    return FunctionTool(
        "Read",
        text_beside(__file__),
        PARAMETERS,
        read_file,
        tool_class="inspect",
        aliases={"filePath": "file_path"},
    )


async def read_file(
    ctx: ToolContext, file_path: str, offset: float = 1, limit: float | None = None
) -> ToolResult:
    """Numbers may arrive as `3.0`, which JSON counts as an integer."""
    from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

    def look() -> tuple[LoadedFile, str]:
        path = _locate(file_path, ctx.cwd)
        loaded = load_file(path)
        return loaded, _render(path, loaded, max(1, int(offset)), None if limit is None else int(limit))

    try:
        loaded, content = await to_thread.run_sync(look, abandon_on_cancel=True)
    except UnreadableError as error:
        return ToolResult.failure(str(error), "unreadable")
    if loaded.sha256 is None:
        ctx.files.forget(loaded.real_path)
    else:
        ctx.files.remember(loaded.real_path, loaded.sha256)
    return ToolResult(content=content)


class UnreadableError(Exception):
    """Why there is nothing to read, as a sentence for the model."""


class LoadedFile(Struct, frozen=True, kw_only=True):
    text: str
    real_path: str
    sha256: str | None
    """Of the file's bytes; `None` when it was not read whole."""
    note: str = ""
    """What the reader should know about the text."""


def _locate(file_path: str, cwd: str) -> str:
    """The path as it is opened and shown. A `..` is left to the system: behind a link it leads elsewhere."""
    if os.path.isabs(file_path):
        return file_path
    path = os.path.join(cwd or os.getcwd(), file_path)
    return path if ".." in file_path.split(os.sep) else os.path.normpath(path)


def load_file(path: str) -> LoadedFile:
    """Open, examine, read and decode a regular file. Blocks; raises `UnreadableError` only."""
    try:
        real_path = os.path.realpath(path)
        _refuse_special(path, os.stat(real_path).st_mode)  # opening some devices already has effects
        descriptor = os.open(real_path, os.O_RDONLY | _SAFE_FLAGS)
        try:
            facts = os.fstat(descriptor)
            _refuse_special(path, facts.st_mode)  # it may have been exchanged since
            data = _read_start(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        raise UnreadableError(_explain(path, error)) from error
    whole = len(data) <= MAX_FILE_BYTES
    text, note = _decode(path, data[:MAX_FILE_BYTES], whole)
    if not whole:
        size = max(facts.st_size, len(data))
        note += (
            f"\n[The file has {size:,} bytes; only the first {MAX_FILE_BYTES:,} were looked at. "
            "Use Grep or a shell command for the rest.]"
        )
    digest = _hash(data) if whole else None
    return LoadedFile(text=text, real_path=real_path, sha256=digest, note=note.strip())


def _read_start(descriptor: int) -> bytes:
    """The file, or one byte more than may be looked at."""
    data = bytearray()
    while len(data) <= MAX_FILE_BYTES:
        chunk = os.read(descriptor, min(CHUNK_BYTES, MAX_FILE_BYTES + 1 - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


# A FIFO or a device that took the file's place must neither block the open nor become our terminal; a link
# that took it must not be followed: the path is resolved already.
_SAFE_FLAGS = sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)

_KINDS = (
    (stat.S_ISDIR, "a directory; use Glob to list it"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _refuse_special(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((words for test, words in _KINDS if test(mode)), "not a regular file")
        raise UnreadableError(f"Path is not a file: {path} (it is {kind})")


def _explain(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"File not found: {path}"
    if isinstance(error, PermissionError):
        return f"Permission denied: {path}"
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return f"File not found: {path} (its links lead in a circle, or it was exchanged just now)"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"File cannot be read: {path} ({reason})"


def _decode(path: str, data: bytes, whole: bool) -> tuple[str, str]:
    """The text and a note on its encoding when that is not UTF-8."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text, note = data.decode("utf-16", "replace"), "[The file is encoded in UTF-16.]"
        binary = "\0" in text[:BINARY_PROBE]
    else:
        text, note = _decode_bytes(data, whole)
        binary = b"\0" in data[:BINARY_PROBE]
    if binary:
        size = f"{len(data):,} bytes" if whole else f"more than {MAX_FILE_BYTES:,} bytes"
        raise UnreadableError(f"Binary file not supported: {path} ({size})")
    return text, note


def _decode_bytes(data: bytes, whole: bool) -> tuple[str, str]:
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError as error:
        if not whole and error.start > len(data) - 4:  # our own cut went through a character
            return data[: error.start].decode("utf-8-sig"), ""
    return data.decode("latin-1"), "[The file is not valid UTF-8 and is shown as Latin-1.]"


def _hash(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - 5 ms that a start does not need

    return sha256(data).hexdigest()


def _render(path: str, loaded: LoadedFile, first: int, limit: int | None) -> str:
    lines = loaded.text.split("\n")
    if not lines[-1]:
        lines.pop()
    total = len(lines)
    chosen = lines[first - 1 : first - 1 + (DEFAULT_LIMIT if limit is None else limit)]
    width = len(str(first - 1 + len(chosen)))
    shown: list[str] = []
    room = MAX_OUTPUT_BYTES
    for number, line in enumerate(chosen, first):
        numbered = f"{number:>{width}}\t{_shorten(line)}"
        room -= len(numbered.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        shown.append(numbered)
    last = first - 1 + len(shown)
    span = f"{total} lines" if len(shown) == total else f"lines {first}-{last} of {total}"
    notes = [loaded.note] if loaded.note else []
    if total and first > total:
        span = f"{total} lines"
        notes.append(f"[There is nothing at line {first}: the file ends at line {total}.]")
    elif last < total and (limit is None or len(shown) < len(chosen)):
        notes.append(f"[{total - last} more lines were left out. Use offset {last + 1} to read on.]")
    return "\n".join([f"[File: {path} ({span})]", *shown, *notes])


def _shorten(line: str) -> str:
    line = line.removesuffix("\r")
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}… [{len(line) - MAX_LINE_CHARACTERS} more characters left out]"
