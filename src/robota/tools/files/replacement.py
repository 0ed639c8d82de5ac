"""Exact replacement of text inside a text: finding the matches, choosing among them, keeping line ends.

LF and CRLF count as the same when text is compared, and what is put in gets the line ends of its place.
Everything outside the matches stays as it is, character by character. Pure functions, no files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, islice

from msgspec import Struct
from msgspec.structs import replace

from robota.tools.files.path import FileProblem

MAX_REPLACEMENTS = 100_000
SAME_TEXT = "old_string and new_string are the same: nothing to change in"
_LISTED = 5


class Edit(Struct, frozen=True, kw_only=True):
    old: str
    new: str
    replace_all: bool = False
    start_line: int | None = None
    """Only matches that begin in this line or behind it count, if there are several."""


class Replacement(Struct, frozen=True, kw_only=True):
    text: str
    compared: str
    """The original as it was compared: with LF, unless the edit itself is about carriage returns."""
    starts: list[int]
    """Where in `compared` the matches begin."""
    old: str
    new: str
    """Both as they were compared."""
    start_line: int
    """The line of the first match."""


def replace_text(path: str, text: str, edit: Edit) -> Replacement:
    """`path` is for the words of the `FileProblem` that says why nothing was replaced."""
    if "&lt;" in edit.old and _with_lf(edit.old) not in _with_lf(text):
        edit = _as_in_file(edit)
    if "\r" in edit.old and edit.old in text:  # spelled out as it is in the file: taken literally
        compared, old, new = text, edit.old, edit.new
    else:
        compared, old, new = _with_lf(text), _with_lf(edit.old), _with_lf(edit.new)
    if old == new:
        raise FileProblem(f"{SAME_TEXT} {path}", "no_change")
    starts = _choose(path, compared, old, edit)
    spans = [(start, start + len(old)) for start in starts]
    changed = _splice(text, spans, new) if compared == text else _splice_mixed(text, spans, new)
    line = compared.count("\n", 0, starts[0]) + 1
    return Replacement(text=changed, compared=compared, starts=starts, old=old, new=new, start_line=line)


def _as_in_file(edit: Edit) -> Edit:
    """The model is shown files without marks in which only hooks may speak; it copies what it was shown."""
    from robota.core.hooks.frame import rearm  # noqa: PLC0415 - few edits are about such marks

    return replace(edit, old=rearm(edit.old), new=rearm(edit.new))


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _choose(path: str, text: str, old: str, edit: Edit) -> list[int]:
    count = text.count(old)
    if not count:
        from robota.tools.files.near_miss import suggest  # noqa: PLC0415 - only a mistake needs it

        raise FileProblem(f"old_string not found in file: {path}{suggest(text, old)}", "not_found")
    if count > MAX_REPLACEMENTS:
        raise FileProblem(
            f"old_string occurs {count:,} times in {path}: give a longer text, or use a shell command.",
            "too_many",
        )
    if count == 1:
        return [text.index(old)]
    if not edit.replace_all and edit.start_line is None:
        raise FileProblem(
            f"old_string is not unique in file: {path} ({_name_matches(text, old, count)}). "
            "Add surrounding text to make it unique, give start_line, or use replace_all: true.",
            "not_unique",
        )
    matches = list(_find_all(text, old, _line_offset(text, edit.start_line or 1)))
    if not matches:
        raise FileProblem(
            f"old_string does not occur in line {edit.start_line} or behind it in file: {path} "
            f"({_name_matches(text, old, count)})",
            "not_found",
        )
    return matches if edit.replace_all else matches[:1]


def _find_all(text: str, old: str, at: int) -> Iterator[int]:
    while (at := text.find(old, at)) >= 0:
        yield at
        at += len(old)


def _line_offset(text: str, line: int) -> int:
    """Where a line begins, or the end of the text when there are fewer."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def _name_matches(text: str, old: str, count: int) -> str:
    lines, line, at = [], 1, 0
    for start in islice(_find_all(text, old, 0), _LISTED):
        line += text.count("\n", at, start)
        lines.append(str(line))
        at = start
    return f"{count} occurrences, at lines {', '.join(lines)}{' and more' if count > _LISTED else ''}"


def _splice(text: str, spans: list[tuple[int, int]], new: str) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], new)
        at = end
    return "".join((*pieces, text[at:]))


def _splice_mixed(text: str, spans: list[tuple[int, int]], new: str) -> str:
    """`spans` are counted without the carriage returns of line ends, which `text` has here and there."""
    lengths = (len(piece) + 1 for piece in text.split("\r\n"))
    begins = [0, *accumulate(lengths)]  # of the pieces between CRLFs, counted without carriage returns

    def place(offset: int) -> int:
        return offset + bisect_right(begins, offset) - 1

    pieces: list[str] = []
    at, ending = 0, -1
    with_crlf = new.replace("\n", "\r\n")
    for first, last in spans:
        start, end = place(first), place(last)
        if ending < start:
            # The line's own end decides; behind the last one, the one before.
            ending = text.find("\n", start)
            ending = len(text) if ending < 0 else ending
            known = text.rfind("\n", 0, ending + 1)
        crlf = known > 0 and text[known - 1] == "\r"
        pieces += (text[at:start], with_crlf if crlf else new)
        at = end
    return "".join((*pieces, text[at:]))
