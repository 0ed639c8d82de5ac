"""Exact replacement of text inside a text: finding the matches, choosing among them, keeping line ends.

LF and CRLF count as the same when text is compared, and what is put in gets the line ends of its place.
Everything outside the matches stays as it is, character by character. A text that
is not there is answered with the places that look like it. Pure functions, no files.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, islice

from msgspec import Struct
from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
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
    from robota.core.plain_text import rearm  # noqa: PLC0415 - few edits are about such marks

    return replace(edit, old=rearm(edit.old), new=rearm(edit.new))


def _with_lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _choose(path: str, text: str, old: str, edit: Edit) -> list[int]:
    count = text.count(old)
    if not count:
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


# --- where a text that is not there was probably meant ---------------------------------------------------

# Slips of spelling are undone one after another; if none of them is to blame, the line that is rarest in the
# file says where to look, and difflib what is different there.

MAX_LINES = 20_000
"""Lines that are compared one by one when none of them is known."""
MAX_PLACES = 20
MAX_SHOWN = 160
LIKE_LINE = 0.6
LIKE_TEXT = 0.5
_NUMBERED = lazy_pattern(r"(?m)^ *\d+(?:\t|→|[|:] ?)")
_FENCE = lazy_pattern(r"\A\s*(?:```|~~~)[^\n]*\n(.*?)\n?\s*(?:(?:```|~~~)\s*)?\Z", re.DOTALL)
_DIFF = lazy_pattern(r"(?m)^[+\- ]")
_QUOTES = str.maketrans(
    {**dict.fromkeys('“”„«»‘’‚`´"', "'"), **dict.fromkeys("–—−‑", "-"), "\u00a0": " ", "…": "..."}
)
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\'": "'", "\\\\": "\\"}

Key = Callable[[str], str]


def suggest(text: str, old: str) -> str:
    """A sentence for the model, with a full stop in front; empty if nothing in the file is like the text."""
    lines = text.split("\n")
    forms: dict[Key, list[str]] = {}
    for words, wanted, key, dense in _spellings(old):
        if key not in forms:
            forms[key] = [key(line) for line in lines]
        if line := _find(forms[key], [key(one) for one in wanted.split("\n")], dense=dense):
            return f". Line {line} has such a text {words}."
    return _nearest(lines, forms[_squeeze], old)


def _spellings(old: str) -> Iterator[tuple[str, str, Key, bool]]:
    """What may be wrong, in words; the text without that; how lines are compared; whether blank ones do not
    count."""
    again = ": read it again and copy it exactly"
    yield f"with other whitespace{again}", old, _squeeze, False
    yield f"with other blank lines{again}", old, _squeeze, True
    plain = _NUMBERED.sub("", old)
    if plain != old:
        yield "without the line numbers: leave them out", plain, _squeeze, True
    fenced = _FENCE.match(plain)
    if fenced:
        yield "without the code fence: leave it out", fenced[1], _squeeze, True
        plain = fenced[1]
    if "\\" in plain:
        real = re.sub(r"\\[nt\"'\\]", lambda found: _ESCAPES[found[0]], plain)
        yield "with real line ends, tabs and quotes: do not escape them", real, _squeeze, True
    if all(map(_DIFF.match, plain.splitlines())) and re.search(r"(?m)^[+-]", plain):
        yield "without the marks of a diff: leave them out", _DIFF.sub("", plain), _squeeze, True
    from html import unescape  # noqa: PLC0415 - for edits that fail; its table of names takes a millisecond

    yield "without HTML entities: write the characters", unescape(plain), _squeeze, True
    yield f"with other quotes or dashes{again}", plain, _straighten, True
    yield f"in other upper and lower case{again}", plain, _fold, True


def _squeeze(line: str) -> str:
    return " ".join(line.split())


def _straighten(line: str) -> str:
    return _squeeze(line.translate(_QUOTES))


def _fold(line: str) -> str:
    return _straighten(line).casefold()


def _find(keys: list[str], sought: list[str], *, dense: bool) -> int:
    """The line where the text begins; 0 if it is not there. `dense`: without blank lines."""
    lines = [(number, key) for number, key in enumerate(keys, 1) if key or not dense]
    joined = "\n".join(line for line in sought if line or not dense).strip("\n")
    whole = "\n".join(line for _, line in lines)
    at = whole.find(joined) if joined else -1
    return 0 if at < 0 else lines[whole.count("\n", 0, at)][0]


# --- the nearest text ------------------------------------------------------------------------------------


def _nearest(lines: list[str], keys: list[str], old: str) -> str:
    wanted = [_squeeze(line) for line in old.strip("\n").split("\n")]
    places = _rarest(keys, wanted) or _most_alike(keys, wanted)
    scored = [(_likeness(keys[at : at + len(wanted)], wanted), at) for at in places]
    score, at = max(scored, key=lambda one: (one[0], -one[1]), default=(0.0, 0))
    if score < LIKE_TEXT:
        return ""
    span = f"lines {at + 1}-{at + len(wanted)} are" if len(wanted) > 1 else f"line {at + 1} is"
    return f". Perhaps {span} meant{_first_difference(lines, keys, wanted, at)}."


def _rarest(keys: list[str], wanted: list[str]) -> list[int]:
    """Where the text would begin if its rarest line is where the file has it."""
    found: dict[str, list[int]] = {line: [] for line in wanted if sum(map(str.isalnum, line)) >= 4}
    for number, key in enumerate(keys):
        if key in found:
            found[key].append(number)
    known = [line for line in found if found[line]]
    if not known:
        return []
    rarest = min(known, key=lambda line: (len(found[line]), -len(line)))
    offset = wanted.index(rarest)
    return [max(0, number - offset) for number in found[rarest][:MAX_PLACES]]


def _most_alike(keys: list[str], wanted: list[str]) -> list[int]:
    """Where the text would begin if its longest line is where the file has one much like it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    longest = max(wanted, key=len)
    if len(longest) < 4:
        return []
    candidates = {key for key in keys[:MAX_LINES] if len(longest) / 2 <= len(key) <= 2 * len(longest)}
    alike = get_close_matches(longest, candidates, n=1, cutoff=LIKE_LINE)
    offset = wanted.index(longest)
    return [max(0, number - offset) for number, key in enumerate(keys) if key in alike][:MAX_PLACES]


def _likeness(there: list[str], wanted: list[str]) -> float:
    from difflib import SequenceMatcher  # noqa: PLC0415 - see above

    return SequenceMatcher(None, "\n".join(there), "\n".join(wanted), autojunk=False).ratio()


def _first_difference(lines: list[str], keys: list[str], wanted: list[str], at: int) -> str:
    for number, (key, line) in enumerate(zip(keys[at:], wanted, strict=False), at):
        if key != line:
            return f"; line {number + 1} is {_show(lines[number].strip())}, not {_show(line)}"
    return ""


def _show(line: str) -> str:
    return f"`{line[:MAX_SHOWN]}…`" if len(line) > MAX_SHOWN else f"`{line}`"
