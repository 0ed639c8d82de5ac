"""A unified diff of bounded length. The places that differ are known, and only they are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

MAX_DIFF_CHARACTERS = 20_000
MAX_COMPARED_LINES = 400
"""More changed lines than that in one place are shown as removed and added: comparing takes time squared."""
_CONTEXT = 3

OpCode: TypeAlias = tuple[str, int, int, int, int]


class Region(Struct, frozen=True):
    """Whole lines before and after, and the number of the first on either side."""

    before: str
    after: str
    before_line: int = 1
    after_line: int = 1


def show_diff(path: str, regions: Iterator[Region] | Sequence[Region]) -> str:
    lines = [f"--- {path}\n", f"+++ {path}\n"]
    room = MAX_DIFF_CHARACTERS
    for region in regions:
        for line in _show_region(region):
            if len(line) > room:
                return "".join((*lines, line[:room], "\n[The diff goes on; the rest was left out.]\n"))
            room -= len(line)
            lines.append(line)
    return "".join(lines)


def find_regions(text: str, starts: Sequence[int], old: str, new: str) -> Iterator[Region]:
    """The surroundings of replacements of `old` by `new`; those that touch are one region."""
    index = counted = shift = 0
    line = 1
    while index < len(starts):
        low = at = _step_back(text, starts[index])
        high = line_end = low
        pieces: list[str] = []
        while index < len(starts) and (
            not pieces or starts[index] < high or _step_back(text, starts[index]) < high
        ):
            pieces += (text[at : starts[index]], new)
            at = starts[index] + len(old)
            if at > line_end or high == low:
                line_end, high = _step_forward(text, at)
            index += 1
        after = "".join((*pieces, text[at:high]))
        line += text.count("\n", counted, low)
        counted = low
        yield Region(text[low:high], after, line, line + shift)
        shift += after.count("\n") - text.count("\n", low, high)


def _step_back(text: str, at: int) -> int:
    for _ in range(_CONTEXT + 1):
        at = text.rfind("\n", 0, at)
        if at < 0:
            return 0
    return at + 1


def _step_forward(text: str, at: int) -> tuple[int, int]:
    """The end of the line at an offset, and where the context behind it ends."""
    line_end = end = text.find("\n", at)
    for _ in range(_CONTEXT):
        if end < 0:
            break
        end = text.find("\n", end + 1)
    return (len(text) if line_end < 0 else line_end), (len(text) if end < 0 else end + 1)


def _show_region(region: Region) -> Iterator[str]:
    before, after = _split(region.before), _split(region.after)
    head = _count_common(before, after)
    tail = _count_common(before[head:][::-1], after[head:][::-1])
    skipped = max(0, head - _CONTEXT)
    before = before[skipped : len(before) - max(0, tail - _CONTEXT)]
    after = after[skipped : len(after) - max(0, tail - _CONTEXT)]
    for group in _compare(before, after, min(head, _CONTEXT), min(tail, _CONTEXT)):
        (_, a, _, b, _), (_, _, c, _, d) = group[0], group[-1]
        a_range = _show_range(region.before_line + skipped + a, c - a)
        b_range = _show_range(region.after_line + skipped + b, d - b)
        yield f"@@ -{a_range} +{b_range} @@\n"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (_mark(" ", line) for line in before[start:end])
            else:
                yield from (_mark("-", line) for line in before[start:end])
                yield from (_mark("+", line) for line in after[new_start:new_end])


def _compare(before: list[str], after: list[str], head: int, tail: int) -> Iterator[list[OpCode]]:
    from difflib import SequenceMatcher  # noqa: PLC0415 - with the first change

    a, b = len(before), len(after)
    if max(a, b) <= MAX_COMPARED_LINES:
        yield from SequenceMatcher(None, before, after).get_grouped_opcodes(_CONTEXT)
        return
    yield [
        ("equal", 0, head, 0, head),
        ("replace", head, a - tail, head, b - tail),
        ("equal", a - tail, a, b - tail, b),
    ]


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _count_common(one: list[str], other: list[str]) -> int:
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _show_range(first: int, count: int) -> str:
    """An empty range is named by the line before it."""
    return str(first) if count == 1 else f"{first if count else first - 1},{count}"


def _mark(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
