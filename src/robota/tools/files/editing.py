"""What Edit does: one piece of a file's text exchanged, every byte around it kept."""

from __future__ import annotations

from robota.core.messages import JsonObject
from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.change import change_file
from robota.tools.files.diff import Region, find_regions, show_diff
from robota.tools.files.directory import SYSTEM, Content, SystemCalls
from robota.tools.files.path import FileProblem
from robota.tools.files.replacement import Edit, replace_text
from robota.tools.files.text import DecodedText, decode


def edit_file(ctx: ToolContext, file_path: str, edit: Edit, system: SystemCalls | None) -> ToolResult:
    said = ""
    facts: JsonObject = {}

    def decide(path: str, current: Content | None) -> bytes:
        nonlocal said, facts
        make = _replace if edit.old else _fill
        data, said, facts = make(path, current, edit)
        return data

    try:
        change_file(file_path, ctx.cwd, ctx.files, decide, create=not edit.old, system=system or SYSTEM)
    except FileProblem as problem:
        return ToolResult.failure(str(problem), problem.code)
    return ToolResult(content=said, metadata=facts)


def _replace(path: str, current: Content | None, edit: Edit) -> tuple[bytes, str, JsonObject]:
    old = _decode(path, current)
    made = replace_text(path, old.text, edit)
    diff = show_diff(path, find_regions(made.compared, made.starts, made.old, made.new))
    said = f"Replaced {len(made.starts)} occurrence(s) in {path}"
    return _encode(path, old, made.text), said, {"startLine": made.start_line, "diff": diff}


def _fill(path: str, current: Content | None, edit: Edit) -> tuple[bytes, str, JsonObject]:
    """Without a text to replace: a new file, or one that is empty."""
    old = _decode(path, current)
    if old.text:
        raise FileProblem(
            f"old_string is empty, but the file is not: {path}. Give the text to replace, or use Write.",
            "empty_old_string",
        )
    if not edit.new:
        raise FileProblem(f"old_string and new_string are the same: nothing to change in {path}", "no_change")
    data = _encode(path, old, edit.new)
    diff = show_diff(path, [Region("", edit.new)])
    return data, f"Written {len(data)} bytes to {path}", {"startLine": 1, "diff": diff}


def _decode(path: str, current: Content | None) -> DecodedText:
    data = b"" if current is None else current.data
    old = decode(data)
    if old is None:
        raise FileProblem(f"Binary file not supported: {path} ({len(data):,} bytes)", "binary")
    if old.invalid_at is not None:
        raise FileProblem(
            f"File is not valid {old.format.name}: {path} (byte {old.invalid_at:,}). It was left as it is, "
            "a shell command may repair it.",
            "invalid_encoding",
        )
    return old


def _encode(path: str, old: DecodedText, text: str) -> bytes:
    try:
        return old.format.encode(text)
    except UnicodeEncodeError as error:
        odd = f"U+{ord(text[error.start]):04X}"
        raise FileProblem(
            f"new_string does not fit the file's encoding: {path} is {old.format.name}, which has no {odd}. "
            "Nothing was changed.",
            "unencodable",
        ) from error
