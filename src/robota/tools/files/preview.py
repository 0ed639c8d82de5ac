"""What a call of Edit or Write would change, for whoever is asked about it. Nothing is changed here."""

from __future__ import annotations

import os
from collections.abc import Mapping

from robota.core.messages import Json
from robota.tools.files.change import load_file
from robota.tools.files.diff import Region, find_regions, show_diff
from robota.tools.files.path import FileProblem, locate
from robota.tools.files.replacement import Edit, replace_text
from robota.tools.files.text import decode


def preview_edit(given: Mapping[str, Json], cwd: str) -> str:
    """The diff of arguments that fit the schema of Edit."""
    line = given.get("start_line")
    edit = Edit(
        old=given["old_string"],
        new=given["new_string"],
        replace_all=given.get("replace_all", False),
        start_line=None if line is None else int(line),
    )
    try:
        path = locate(given["file_path"], cwd)
        text = _load_text(path)
        if not edit.old:
            return show_diff(path, [Region("", edit.new)]) if not text and edit.new else ""
        if text is None:
            return ""
        made = replace_text(path, text, edit)
    except (FileProblem, OSError, ValueError):  # the tool itself will say it
        return ""
    return show_diff(path, find_regions(made.compared, made.starts, made.old, made.new))


def preview_write(file_path: str, content: str, cwd: str) -> str:
    try:
        path = locate(file_path, cwd)
        text = _load_text(path) or ""
    except (FileProblem, OSError, ValueError):
        return ""
    if "\r" not in content:  # the file's own line ends are kept
        text = text.replace("\r\n", "\n")
    return "" if text == content else show_diff(path, [Region(text, content)])


def _load_text(path: str) -> str | None:
    """The text of a file, `None` if there is no file; what is no text counts as empty."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return None
    _, content = load_file(path)
    if not content.whole:
        raise FileProblem(f"File is too large to be changed here: {path}", "too_large")
    decoded = decode(content.data)
    return "" if decoded is None else decoded.text
