"""What is looked for in instruction files: imports, comments, the section on compaction; not in code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from robota._lazy_pattern import lazy_pattern

_FENCE = lazy_pattern(r"[ ]{0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_LINE = lazy_pattern(r"[^\n]*\n|[^\n]+")
_TICKS = lazy_pattern(r"`+")
_IMPORT = lazy_pattern(r"(?:^|(?<=[\s(]))@(?P<path>(?:\\ |[^\s\\])+)", re.MULTILINE)
_COMMENT = lazy_pattern(r"^[ ]{0,3}<!--.*?-->[ \t]*\n?", re.DOTALL | re.MULTILINE)
_HEADING = lazy_pattern(r"[ ]{0,3}(?P<level>#{1,6})[ \t]+(?P<title>.*?)[ \t#]*$")
_COMPACT = lazy_pattern(r"compact instructions", re.IGNORECASE)


def find_imports(text: str) -> list[str]:
    """The `@path`s of a text, in order, each once; not those in code."""
    if "@" not in text:
        return []
    found = (match["path"].replace("\\ ", " ") for match in _IMPORT.finditer(mask_code(text)))
    return list(dict.fromkeys(found))


def strip_comments(text: str) -> str:
    """Without the comments that begin a line; those in fences stay, and one that has no end."""
    if "<!--" not in text:
        return text
    masked, kept, at = mask_code(text), [], 0
    for comment in _COMMENT.finditer(masked):
        kept.append(text[at : comment.start()])
        at = comment.end()
    return "".join((*kept, text[at:]))


def find_compact_instructions(text: str) -> str:
    """What stands under a heading "Compact Instructions", up to the next heading that is not below it."""
    if not _COMPACT.search(text):
        return ""
    found: list[str] = []
    level = 0
    for line, masked in zip(text.split("\n"), mask_code(text).split("\n"), strict=True):
        heading = _HEADING.match(masked)
        if heading and (not level or len(heading["level"]) <= level):
            level = len(heading["level"]) if _COMPACT.search(heading["title"]) else 0
        elif level:
            found.append(line)
    return "\n".join(found).strip()


def mask_code(text: str) -> str:
    """The text with blanks in the place of code, each line as long as it was. Linear in the text."""
    masked: list[str] = []
    paragraph: list[str] = []
    fence = ""
    for line in _LINE.findall(text):
        mark = _FENCE.match(line) if "```" in line or "~~~" in line else None
        if fence:
            closed = mark and mark["mark"].startswith(fence) and not mark["info"].strip()
            masked.append(_blank(line))
            fence = "" if closed else fence
        elif mark and not (mark["mark"][0] == "`" and "`" in mark["info"]):
            masked += _mask_spans(paragraph)
            masked.append(_blank(line))
            fence = mark["mark"]
        else:
            paragraph.append(line)
            if not line.strip():
                masked += _mask_spans(paragraph)
    return "".join((*masked, *_mask_spans(paragraph)))


def _mask_spans(paragraph: list[str]) -> list[str]:
    """A paragraph without its code spans; it is emptied."""
    text = "".join(paragraph)
    paragraph.clear()
    if "`" not in text:
        return [text]
    kept, at = [], 0
    for start, end in _find_spans(text):
        kept += [text[at:start], _blank(text[start:end])]
        at = end
    return [*kept, text[at:]]


def _find_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where spans begin and end: a run of backticks closes the nearest run before it of the same length."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    following: list[int] = [0] * len(runs)
    latest: dict[int, int] = {}
    for at in range(len(runs) - 1, -1, -1):
        length = runs[at][1] - runs[at][0]
        following[at] = latest.get(length, 0)
        latest[length] = at
    at = 0
    while at < len(runs):
        if closing := following[at]:
            yield runs[at][0], runs[closing][1]
            at = closing
        at += 1


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))
