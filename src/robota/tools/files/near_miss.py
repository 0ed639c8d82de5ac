"""Where a text that a file does not have was probably meant: the hint of an edit that found nothing.

Slips of spelling are undone one after another; if none of them is to blame, the line that is rarest in the
file says where to look, and difflib what is different there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher, get_close_matches
from html import unescape

MAX_LINES = 20_000
"""Lines that are compared one by one when none of them is known."""
MAX_PLACES = 20
MAX_SHOWN = 160
LIKE_LINE = 0.6
LIKE_TEXT = 0.5
_NUMBERED = re.compile(r"(?m)^ *\d+(?:\t|→|[|:] ?)")
_FENCE = re.compile(r"\A\s*(?:```|~~~)[^\n]*\n(.*?)\n?\s*(?:(?:```|~~~)\s*)?\Z", re.DOTALL)
_DIFF = re.compile(r"(?m)^[+\- ]")
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
    longest = max(wanted, key=len)
    if len(longest) < 4:
        return []
    candidates = {key for key in keys[:MAX_LINES] if len(longest) / 2 <= len(key) <= 2 * len(longest)}
    alike = get_close_matches(longest, candidates, n=1, cutoff=LIKE_LINE)
    offset = wanted.index(longest)
    return [max(0, number - offset) for number, key in enumerate(keys) if key in alike][:MAX_PLACES]


def _likeness(there: list[str], wanted: list[str]) -> float:
    return SequenceMatcher(None, "\n".join(there), "\n".join(wanted), autojunk=False).ratio()


def _first_difference(lines: list[str], keys: list[str], wanted: list[str], at: int) -> str:
    for number, (key, line) in enumerate(zip(keys[at:], wanted, strict=False), at):
        if key != line:
            return f"; line {number + 1} is {_show(lines[number].strip())}, not {_show(line)}"
    return ""


def _show(line: str) -> str:
    return f"`{line[:MAX_SHOWN]}…`" if len(line) > MAX_SHOWN else f"`{line}`"
