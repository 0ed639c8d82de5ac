"""What Write does: text to bytes in the format of the file that was there, and these in its place."""

from __future__ import annotations

from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.change import change_file
from robota.tools.files.directory import SYSTEM, Content, SystemCalls
from robota.tools.files.path import FileProblem
from robota.tools.files.text import UTF_8, decode


def write(ctx: ToolContext, file_path: str, content: str, system: SystemCalls | None) -> ToolResult:
    said = ""

    def decide(path: str, current: Content | None) -> bytes:
        nonlocal said
        data, note = _encode(content, current)
        said = f"Written {len(data)} bytes to {path}{note}"
        return data

    try:
        change_file(file_path, ctx.cwd, ctx.files, decide, must_be_read=True, system=system or SYSTEM)
    except FileProblem as problem:
        return ToolResult.failure(str(problem), problem.code)
    return ToolResult(content=said)


def _encode(content: str, current: Content | None) -> tuple[bytes, str]:
    """The bytes to write, and what the model should know about them.

    Text that brings carriage returns of its own is taken as it is.
    """
    old = None if current is None else decode(current.data)
    format = UTF_8 if old is None or old.invalid_at is not None else old.format
    text, kept = content, []
    if format.mark:
        text = text.removeprefix("\ufeff")
    if format != UTF_8:
        kept.append(f"{format.name} with a byte order mark" if format.mark else format.name)
    if old is not None and old.has_crlf and "\r" not in text and "\n" in text:
        text = text.replace("\n", "\r\n")
        kept.append("CRLF line ends")
    try:
        return format.encode(text), f"\n[Kept as the file had it: {', '.join(kept)}.]" if kept else ""
    except UnicodeEncodeError as error:
        odd, position = f"U+{ord(text[error.start]):04X}", error.start + 1
    try:
        return UTF_8.encode(text), f"\n[The file was {format.name}, which has no {odd}; it is UTF-8 now.]"
    except UnicodeEncodeError as error:
        raise FileProblem(
            f"The content is no valid text: its character {position} is half of a surrogate pair ({odd}). "
            "Nothing was written.",
            "invalid_text",
        ) from error
