"""Glob patterns as regular expressions: `*`, `?`, `[…]`, `{a,b}`, `\\` and, between slashes, `**`.

`*`, `?` and `[…]` never match a slash. An unclosed `[` is a plain character. The expressions are built so
that no pattern, however many stars it has, takes exponential time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_ALTERNATIVES = 256


class GlobError(ValueError):
    """Why a pattern cannot be used."""


def expand_braces(pattern: str) -> list[str]:
    """The patterns without braces that a pattern stands for; raises `GlobError`."""
    start = _find(pattern, 0, "{}")
    if start < 0:
        return [pattern]
    if pattern[start] == "}":
        raise GlobError("there is a `}` without `{`")
    alternatives, end = _split_alternatives(pattern, start + 1)
    rests = expand_braces(pattern[end:])
    heads = [pattern[:start] + one for text in alternatives for one in expand_braces(text)]
    if len(heads) * len(rests) > MAX_ALTERNATIVES:
        raise GlobError(f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return [head + rest for head in heads for rest in rests]


def _split_alternatives(pattern: str, start: int) -> tuple[list[str], int]:
    """The texts between commas up to the `}` that closes the brace before `start`, and where to go on."""
    alternatives, depth, begin, position = [], 0, start, start
    while (position := _find(pattern, position, "{},")) >= 0:
        mark = pattern[position]
        if depth == 0 and mark != "{":
            alternatives.append(pattern[begin:position])
            begin = position + 1
            if mark == "}":
                return alternatives, begin
        depth += (mark == "{") - (mark == "}")
        position += 1
    raise GlobError("there is a `{` without `}`")


def _find(pattern: str, position: int, wanted: str) -> int:
    """Where one of the wanted characters stands, outside of `[…]` and not escaped; -1 if nowhere."""
    while position < len(pattern):
        if pattern[position] in wanted:
            return position
        position = _next(pattern, position)
    return -1


def _next(pattern: str, position: int) -> int:
    """Where the next token begins."""
    if pattern[position] == "\\":
        return position + 2
    return (_class_end(pattern, position) if pattern[position] == "[" else 0) or position + 1


def _class_end(pattern: str, position: int) -> int:
    """Just behind the `]` of the class that begins here; 0 if it has none."""
    first = position + 1
    if pattern[first : first + 1] in ("!", "^"):
        first += 1
    return pattern.find("]", first + 1) + 1


def split_path(pattern: str) -> list[str]:
    """The parts of a pattern between its slashes."""
    parts, begin, position = [], 0, 0
    while (position := _find(pattern, position, "/")) >= 0:
        parts.append(pattern[begin:position])
        begin = position = position + 1
    return [*parts, pattern[begin:]]


def has_wildcard(part: str) -> bool:
    return _find(part, 0, "*?[\\") >= 0


def translate(pattern: str) -> str:
    """The source of an expression that must match a whole relative path; the pattern has no braces."""
    given = split_path(pattern)
    parts = [
        part for part, before in zip(given, ["", *given], strict=False) if (part, before) != ("**", "**")
    ]
    pieces = []
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        if part == "**":
            pieces.append(".*" if last else "(?:.*/)?")
        else:
            pieces.append(translate_part(part) + ("" if last else "/"))
    return "".join(pieces)


def translate_part(part: str) -> str:
    """The same for a pattern of one file or directory name."""
    texts: list[str] = [""]
    position = 0
    while position < len(part):
        end = _next(part, position)
        if part[position] == "*":
            texts.append("")
        else:
            texts[-1] += _translate_token(part[position:end])
        position = end
    first, *others = texts
    if not others:
        return first
    # The first place where a text fits is as good as any other as long as a star follows: no way back.
    middle = "".join(f"(?>[^/]*?{text})" for text in others[:-1] if text)
    return f"{first}{middle}[^/]*{others[-1]}"


def _translate_token(token: str) -> str:
    if token == "?":
        return "[^/]"
    if token[0] == "\\":
        if len(token) == 1:
            raise GlobError("it ends with a `\\`")
        return re.escape(token[1])
    return _translate_class(token[1:-1]) if token[0] == "[" and len(token) > 1 else re.escape(token)


def _translate_class(body: str) -> str:
    negated = body[0] in "!^"
    body = body[negated:]
    members, position = [], 0
    while position < len(body):
        first = body[position]
        if body[position + 1 : position + 2] == "-" and position + 2 < len(body):
            last = body[position + 2]
            if first > last:
                raise GlobError(f"the range `{first}-{last}` is empty")
            members.append(f"{re.escape(first)}-{re.escape(last)}")
            position += 3
        else:
            members.append(re.escape(first))
            position += 1
    text = "".join(members)
    return f"[^/{text}]" if negated else f"(?!/)[{text}]"


class NameSet:
    """File names that fit one of many patterns, found without trying them one by one where possible."""

    __slots__ = ("_endings", "_expression", "_names")

    def __init__(self, patterns: Iterable[str]) -> None:
        """Patterns have no slash and no braces."""
        names, endings, others = set(), [], []
        for pattern in patterns:
            if not has_wildcard(pattern):
                names.add(_encode(pattern))
            elif pattern[0] == "*" and not has_wildcard(pattern[1:]):
                endings.append(_encode(pattern[1:]))
            else:
                others.append(translate_part(pattern))
        self._names = frozenset(names)
        self._endings = tuple(endings)
        self._expression = compile_paths(others)

    def __contains__(self, name: bytes) -> bool:
        if name in self._names or (self._endings and name.endswith(self._endings)):
            return True
        return self._expression is not None and self._expression.fullmatch(name) is not None


def compile_paths(sources: list[str]) -> re.Pattern[bytes] | None:
    """One expression for all of them, to be matched against whole paths."""
    return re.compile(_encode("|".join(sources)), re.DOTALL) if sources else None


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
