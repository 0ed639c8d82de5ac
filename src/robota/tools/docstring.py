"""What a docstring says about a function and each of its arguments: Google, NumPy and Sphinx style."""

from __future__ import annotations

import re
from functools import partial
from inspect import cleandoc

_GOOGLE_HEADER = re.compile(r"(?:keyword )?(?:args|arguments|parameters|params):\s*$", re.IGNORECASE)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*)")
_NUMPY_HEADER = re.compile(r"(?:other )?parameters\s*$", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_ENTRY = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)"
)
_SPHINX_TYPE = re.compile(r":type\s+\w+\s*:")


def read_docstring(function: object) -> str | None:
    """The docstring of the function that is meant: a partial's own is that of its class."""
    meant = function.func if isinstance(function, partial) else function
    return getattr(meant, "__doc__", None)


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The text without its argument sections, and what they say about each argument."""
    lines = cleandoc(text or "").splitlines()
    kept: list[str] = []
    arguments: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        follower = lines[at + 1] if at + 1 < len(lines) else ""
        if _GOOGLE_HEADER.match(line) and follower[:1].isspace():
            end = _end_of_block(lines, at + 1)
            _read_google(lines[at + 1 : end], arguments)
        elif _NUMPY_HEADER.match(line) and _is_rule(follower):
            end = _end_of_section(lines, at + 2)
            _read_numpy(lines[at + 2 : end], arguments)
        elif match := _SPHINX_ENTRY.match(line):
            end = _end_of_block(lines, at + 1, stop_at_blank=True)
            arguments[match[1]] = _join([match[2], *lines[at + 1 : end]])
        elif _SPHINX_TYPE.match(line):
            end = at + 1
        else:
            kept.append(line)
            end = at + 1
        at = end
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), arguments


def _read_google(block: list[str], arguments: dict[str, str]) -> None:
    margin = min((_indent(line) for line in block if line.strip()), default=0)
    name = ""
    for line in block:
        match = _GOOGLE_ENTRY.match(line[margin:]) if _indent(line) == margin else None
        if match:
            name = match[1]
            arguments[name] = match[2].strip()
        elif name and line.strip():
            arguments[name] = _join([arguments[name], line])


def _read_numpy(block: list[str], arguments: dict[str, str]) -> None:
    names: list[str] = []
    for line in block:
        match = None if line[:1].isspace() else _NUMPY_ENTRY.match(line)
        if match:
            names = [name.strip(" *") for name in match[1].split(",")]
            arguments.update(dict.fromkeys(names, ""))
        elif line.strip():
            arguments.update({name: _join([arguments[name], line]) for name in names})


def _end_of_block(lines: list[str], start: int, *, stop_at_blank: bool = False) -> int:
    """The first line at the margin again."""
    for at in range(start, len(lines)):
        line = lines[at]
        if (line.strip() and not line[:1].isspace()) or (stop_at_blank and not line.strip()):
            return at
    return len(lines)


def _end_of_section(lines: list[str], start: int) -> int:
    """The next underlined header."""
    for at in range(start, len(lines) - 1):
        if lines[at].strip() and _is_rule(lines[at + 1]):
            return at
    return len(lines)


def _is_rule(line: str) -> bool:
    return len(line.strip()) >= 3 and not line.strip().strip("-")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))
