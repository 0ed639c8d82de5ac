"""What Edit and Write do to a file: only to a version the conversation knows, one at a time, all or nothing.

`preview_edit` and `preview_write` change nothing: they show whoever is asked what a call would do. Without an
editor the disk counts; whatever an editor says, a call was judged by its path before, the file has to be one
that may be read or written here, and undo has saved what was on the disk.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Callable
from hashlib import sha256
from threading import Lock
from typing import Protocol

from msgspec.structs import replace

from robota.core.messages import JsonObject
from robota.core.tool import FileVersions, ToolContext, ToolResult
from robota.tools.files.diff import Region, find_regions, show_diff
from robota.tools.files.directory import SYSTEM, Content, Directory, SystemCalls, is_same
from robota.tools.files.path import FileProblem, Use, contained, explain, locate
from robota.tools.files.replacement import SAME_TEXT, Edit, replace_text
from robota.tools.files.text import UTF_8, DecodedText, decode

MAX_FILE_BYTES = 10 * 1024 * 1024
"""How much of a file is looked at, from its beginning. A longer one cannot be changed here."""

# The calls of one answer run at the same time, and several edits of one file are normal. Locks are shared by
# paths, so that there is nothing to clean up; whoever holds one never waits for another.
_LOCKS = tuple(Lock() for _ in range(64))


def lock_of(real_path: str) -> Lock:
    return _LOCKS[hash(real_path) % len(_LOCKS)]


def hash_content(data: bytes) -> str:
    return sha256(data).hexdigest()


def resolve(path: str, judged: str | None, use: Use) -> str:
    """The real path, which must be the one that was judged: a link may have been exchanged since."""
    real = os.path.realpath(path)
    if judged is not None and real != judged:
        raise FileProblem(
            f"File was not {use}: {path} leads to {real} now, and led to {judged} when the call was "
            "approved. Find out why before you repeat it.",
            "moved",
        )
    return real


def load_file(path: str, judged: str | None = None) -> tuple[str, Content]:
    """A file's real path and its content, or of a longer one the beginning."""
    try:
        real = resolve(path, judged, "read")
        with Directory(os.path.dirname(real)) as directory:
            content = directory.read(os.path.basename(real), MAX_FILE_BYTES)
        if content is None:
            raise FileNotFoundError
    except (OSError, ValueError) as error:
        raise explain(path, error, "read") from error
    return real, content


def remember(files: FileVersions, real: str, content: Content) -> None:
    """Note the version that was read; one that was not read whole counts as not read."""
    version = hash_content(content.data) if content.whole else None
    with lock_of(real):
        if version is None:
            files.forget(real)
        elif _is_current(real, content):  # else a change of our own came in between, and that one is noted
            files.remember(real, version)


def _is_current(real: str, content: Content) -> bool:
    try:
        return is_same(content.facts, os.stat(real))
    except OSError:
        return False


def change_file(
    ctx: ToolContext,
    file_path: str,
    decide: Callable[[str, Content | None], tuple[bytes, ToolResult]],
    *,
    create: bool = True,
    must_be_read: bool = False,
    system: SystemCalls | None = None,
    editor: EditorFiles | None = None,
) -> ToolResult:
    """Replace a file by what `decide` makes of its path and content; without `create` it has to be there.

    The version that was read before must still be the one on disk. A file that was never read is refused
    only if `must_be_read`. The result is that of `decide`, or says why the file is as it was.
    """
    path = locate(file_path, ctx.cwd)
    try:
        if os.path.basename(file_path) in ("", os.curdir, os.pardir):
            raise FileProblem(f"Path is not a file: {path} (it names a directory)", "unwritable")
        real = resolve(path, ctx.resolved.get(file_path), "written")
        _refuse_dangling(path, real, ctx.cwd)
        where = Directory(os.path.dirname(real), create=create, system=system or SYSTEM)
        with lock_of(real), where as directory:
            name = os.path.basename(real)
            current = directory.read(name, MAX_FILE_BYTES, writable=True)
            if current is not None:
                current = as_edited(path, current, editor)
                _check_version(path, current, ctx.files.get(real), must_be_read)
            elif not create:
                raise FileNotFoundError
            data, result = decide(path, current)
            facts = None if current is None else current.facts
            if not write_in_editor(path, data, editor) and not directory.replace(name, data, facts):
                raise _changed(path)
            ctx.files.remember(real, hash_content(data))
        return result
    except (FileProblem, OSError, ValueError) as error:
        problem = error if isinstance(error, FileProblem) else explain(path, error, "written")
        return ToolResult.failure(str(problem), problem.code)


def _check_version(path: str, current: Content, known: str | None, must_be_read: bool) -> None:
    if not current.whole:
        raise _too_large(path, current)
    if known is None:
        if must_be_read:
            raise FileProblem(
                f"File exists and has not been read yet: {path}. Read it first, then write it again; "
                "if Read cannot show it and it is not needed, remove it first.",
                "not_read",
            )
    elif known != hash_content(current.data):
        raise _changed(path)


def _too_large(path: str, current: Content) -> FileProblem:
    return FileProblem(
        f"File is too large to be changed here: {path} ({current.facts.st_size:,} bytes; at most "
        f"{MAX_FILE_BYTES:,}). Use a shell command.",
        "too_large",
    )


def _changed(path: str) -> FileProblem:
    return FileProblem(
        f"File has changed on disk since it was last read: {path}. Read it again, then repeat the change.",
        "changed",
    )


def _refuse_dangling(path: str, real: str, cwd: str) -> None:
    """A link to nothing hides where a new file would appear; outside, that must be spelled out."""
    seen = path
    while not os.path.lexists(seen) and seen != os.path.dirname(seen):
        seen = os.path.dirname(seen)
    dangling = os.path.islink(seen) and not os.path.exists(seen) and not os.path.islink(real)
    if dangling and not contained(real, (cwd or os.getcwd(),)):
        raise FileProblem(
            f"File cannot be written: {path} (a link in it leads to {real}, which does not exist and is "
            "outside the working directory). Name that path itself if it is meant.",
            "unwritable",
        )


# --- Edit ----------------------------------------------------------------------------------------------


def edit_file(
    ctx: ToolContext,
    arguments: JsonObject,
    system: SystemCalls | None = None,
    editor: EditorFiles | None = None,
) -> ToolResult:
    """One piece of a file's text exchanged, every byte around it kept."""
    edit = _read_edit(arguments)

    def decide(path: str, current: Content | None) -> tuple[bytes, ToolResult]:
        return _edit(path, current, edit)

    create = not edit.old
    return change_file(ctx, arguments["file_path"], decide, create=create, system=system, editor=editor)


def preview_edit(arguments: JsonObject, cwd: str) -> str:
    """The diff of what a call would change; empty if it would fail, which the tool itself will explain."""
    edit = _read_edit(arguments)
    try:
        path = locate(arguments["file_path"], cwd)
        current = _load_if_there(path)
        if current is None and edit.old:
            return ""
        return str(_edit(path, current, edit)[1].metadata["diff"])
    except (FileProblem, OSError, ValueError):
        return ""


def _read_edit(arguments: JsonObject) -> Edit:
    """From arguments that fit the schema; a number may arrive as `3.0`, which JSON counts as an integer."""
    line = arguments.get("start_line")
    return Edit(
        old=arguments["old_string"],
        new=arguments["new_string"],
        replace_all=arguments.get("replace_all", False),
        start_line=None if line is None else int(line),
    )


def _edit(path: str, current: Content | None, edit: Edit) -> tuple[bytes, ToolResult]:
    old = _decode(path, current)
    if edit.old:
        made = replace_text(path, old.text, edit)
        diff = show_diff(path, find_regions(made.compared, made.starts, made.old, made.new))
        said = f"Replaced {len(made.starts)} occurrence(s) in {path}"
        data, line = _encode_edited(path, old, made.text), made.start_line
    else:  # a new file, or one that is empty
        if old.text:
            raise FileProblem(
                f"old_string is empty, but the file is not: {path}. Give the text to replace, or use Write.",
                "empty_old_string",
            )
        if not edit.new:
            raise FileProblem(f"{SAME_TEXT} {path}", "no_change")
        data, line = _encode_edited(path, old, edit.new), 1
        said, diff = f"Written {len(data)} bytes to {path}", show_diff(path, [Region("", edit.new)])
    return data, ToolResult(content=said, metadata={"startLine": line, "diff": diff})


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


def _encode_edited(path: str, old: DecodedText, text: str) -> bytes:
    try:
        return old.format.encode(text)
    except UnicodeEncodeError as error:
        odd = f"U+{ord(text[error.start]):04X}"
        raise FileProblem(
            f"new_string does not fit the file's encoding: {path} is {old.format.name}, which has no {odd}. "
            "Nothing was changed.",
            "unencodable",
        ) from error


def _load_if_there(path: str) -> Content | None:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return None
    _, content = load_file(path)
    if not content.whole:
        raise _too_large(path, content)
    return content


# --- Write ---------------------------------------------------------------------------------------------


def write_file(
    ctx: ToolContext,
    file_path: str,
    content: str,
    system: SystemCalls | None = None,
    editor: EditorFiles | None = None,
) -> ToolResult:
    """Text as bytes in the format of the file that was there, and these in its place."""

    def decide(path: str, current: Content | None) -> tuple[bytes, ToolResult]:
        data, note = _encode_written(content, current)
        return data, ToolResult(content=f"Written {len(data)} bytes to {path}{note}")

    return change_file(ctx, file_path, decide, must_be_read=True, system=system, editor=editor)


def preview_write(arguments: JsonObject, cwd: str) -> str:
    """The diff of what a call would change; what is not text now counts as empty."""
    content = arguments["content"]
    try:
        path = locate(arguments["file_path"], cwd)
        current = _load_if_there(path)
    except (FileProblem, OSError, ValueError):
        return ""
    old = None if current is None else decode(current.data)
    text = "" if old is None else old.text
    if "\r" not in content:  # the file's own line ends are kept
        text = text.replace("\r\n", "\n")
    return "" if text == content else show_diff(path, [Region(text, content)])


def _encode_written(content: str, current: Content | None) -> tuple[bytes, str]:
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
            f"The content is not valid text: its character {position} is half of a surrogate pair ({odd}). "
            "Nothing was written.",
            "invalid_text",
        ) from error


# --- an editor -----------------------------------------------------------------------------------------


class EditorFiles(Protocol):
    """Files as an editor has them: what its user sees counts, also what is not saved yet.

    Called in worker threads, so both may block; neither raises.
    """

    def read(self, path: str) -> str | None:
        """The text of a file; `None` if the editor has none to give."""
        ...

    def write(self, path: str, text: str) -> bool:
        """Put a text into a file, on the disk too; `False` if that has to be done without the editor."""
        ...


def as_edited(path: str, content: Content, editor: EditorFiles | None) -> Content:
    """What a file holds in the editor, in the encoding that it has on the disk."""
    if editor is None or not content.whole:
        return content
    known = decode(content.data)
    if known is None or known.invalid_at is not None:
        return content
    text = editor.read(path)
    if text is None or text == known.text:
        return content
    try:
        return replace(content, data=known.format.encode(text))
    except UnicodeEncodeError:
        return content


def write_in_editor(path: str, data: bytes, editor: EditorFiles | None) -> bool:
    """Let the editor write it; only UTF-8 is sure to arrive as it is."""
    if editor is None or data.startswith(BOM_UTF8):
        return False
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return editor.write(path, text)
