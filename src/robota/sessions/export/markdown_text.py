"""Text of others inside a Markdown document of ours: it can look like Markdown, but not act.

Content is quoted, line by line, so that it cannot end its own block. Its headings become plain lines, its
links and pictures show their address instead of hiding or loading it, HTML stays text, and fenced code is
fenced anew with a fence longer than any in it. Every function is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from robota.sessions.export.visible import on_one_line, show_hidden

_MARKERS = r"((?:[ \t]*(?:[-+*>]|[0-9]{1,9}[.)]))*[ \t]*)"
_FENCE = re.compile(_MARKERS + r"(`{3,}|~{3,})(.*)")
_HEADING_OR_DEFINITION = re.compile(_MARKERS + r"(?=#{1,6}(?:[ \t]|$)|\[)")
_WITH_MEANING = re.compile(r"([\\`*_\[\]<>#|~&])")
_RUN = re.compile("`+")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#_.-]{1,32}")


def quote(text: str) -> str:
    """Content as a block quote in which Markdown may shape words and lists, and nothing else."""
    lines = list(_shape(show_hidden(text).split("\n")))
    return "\n".join(f"> {line}".rstrip() for line in lines)


def fence(text: str, language: str = "") -> str:
    """Content as code, word for word."""
    shown = show_hidden(text)
    longest = max((len(run) for run in _RUN.findall(shown)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{shown}{'' if shown.endswith(chr(10)) else chr(10)}{ticks}"


def code(text: str) -> str:
    """Content as code within a line."""
    shown = on_one_line(text)
    longest = max((len(run) for run in _RUN.findall(shown)), default=0)
    ticks = "`" * (longest + 1)
    space = " " if not shown or shown[0] == "`" or shown[-1] == "`" else ""
    return f"{ticks}{space}{shown}{space}{ticks}" if shown else ""


def plain(text: str) -> str:
    """Content within a line of ours, without any shape."""
    return _WITH_MEANING.sub(r"\\\1", on_one_line(text))


def _shape(lines: Sequence[str]) -> Iterator[str]:
    """The lines with their fenced code fenced anew; the rest paragraph by paragraph."""
    paragraph: list[str] = []
    place = 0
    while place < len(lines):
        opened = _FENCE.match(lines[place])
        if opened is None or (opened[2][0] == "`" and "`" in opened[3]):
            if lines[place].strip():
                paragraph.append(lines[place])
            else:
                yield from _disarm(paragraph)
                paragraph = []
                yield ""
            place += 1
            continue
        before = paragraph + [opened[1]] * bool(opened[1].strip())
        yield from _disarm(before)
        paragraph = []
        end = _end_of_fence(lines, place + 1, opened[2])
        language = _LANGUAGE.match(opened[3].strip())
        if before:
            yield ""
        yield from fence("\n".join(lines[place + 1 : end]), language[0] if language else "").split("\n")
        place = end + 1
    yield from _disarm(paragraph)


def _end_of_fence(lines: Sequence[str], place: int, opening: str) -> int:
    while place < len(lines):
        inner = lines[place].strip(" \t>")
        if len(inner) >= len(opening) and not inner.strip(opening[0]):
            return place
        place += 1
    return place


def _disarm(paragraph: Sequence[str]) -> Iterator[str]:
    trusted = all(_spans_are_plain(line) for line in paragraph)
    for line in paragraph:
        yield "".join(
            piece if is_code and trusted else _disarm_words(piece)
            for piece, is_code in _split_code(_disarm_line(line))
        )


def _disarm_line(line: str) -> str:
    """The line without what makes it a heading, the underline of one, or the target of a link."""
    found = _HEADING_OR_DEFINITION.match(line)
    if found is not None:
        return f"{found[1]}\\{line[found.end() :]}"
    line = line.rstrip()
    return line if line.strip("> \t=-") else f"{line[:-1]}\\{line[-1:]}"


def _disarm_words(text: str) -> str:
    return text.replace("<", "&lt;").replace("](", "]\\(").replace("![", "!\\[").replace("][", "]\\[")


def _spans_are_plain(line: str) -> bool:
    """Whether everybody agrees which parts of a line are code: each run of backticks closed within it."""
    if "\\`" in line:
        return False
    return all(
        "|" not in piece if is_code else "`" not in piece  # a table ends a cell within code
        for piece, is_code in _split_code(line)
    )


def _split_code(line: str) -> Iterator[tuple[str, bool]]:
    """The line in pieces, and whether each is a code span."""
    runs = [(found.start(), found.end()) for found in _RUN.finditer(line)]
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[number][1] - runs[number][0], []).append(number)
    place = number = 0
    while number < len(runs):
        start, end = runs[number]
        same = later[end - start]
        while same and same[-1] <= number:
            same.pop()
        if not same:
            number += 1
            continue
        closing = same.pop()
        yield line[place:start], False
        yield line[start : runs[closing][1]], True
        place, number = runs[closing][1], closing + 1
    yield line[place:], False
