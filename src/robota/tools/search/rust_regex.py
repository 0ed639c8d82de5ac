"""Patterns in Rust's regex syntax, which ripgrep has, for Python's `re`.

The translation is strict: what Rust refuses is refused here, so that a pattern means the same with and
without ripgrep or is an error. Groups capture nothing. Unless a pattern may span lines no part of it matches
a newline, so that a whole file can be searched at once.
"""

from __future__ import annotations

import re
from typing import NamedTuple

POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
SPACE_WITHOUT_NEWLINE = "\\t\\v\\f\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
_MEMBERS = {kind: f"\\{kind}" for kind in "dDwW"} | {
    "s": SPACE_WITHOUT_NEWLINE + "\\n",
    "S": "\\S\\x1c-\\x1f",  # which Python counts as space
}
_HOLDS_NEWLINE = "DWs"
_SINGLE = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_NEEDS_RIPGREP = "nested sets and set operations need ripgrep"
MAX_DEPTH = 100
_COUNT = re.compile(r"\{[ ]*(\d+)[ ]*(,?)[ ]*(\d*)[ ]*\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAME = re.compile(r"\(\?P?<([A-Za-z_][\w.\[\]]*)>")
_AFTER_NO_STRAY_BYTE = "(?<![\\udc80-\\udcff])"
_ASSERTIONS = {"b": "\\b", "B": "\\B", "<": "\\b(?=\\w)", ">": "\\b(?<=\\w)"}
_CLASSES = {"d": "\\d", "w": "\\w", "S": "[\\S\\x1c-\\x1f]"}
_NO_STRAY_BYTE = "(?![\udc80-\udcff])"
_MISSING = "repetition operator missing expression"


class RegexError(ValueError):
    """Why a pattern cannot be used, in the words that ripgrep finds for it where it would refuse it too."""


class _Cursor:
    """A pattern, and how far it is read."""

    __slots__ = ("pattern", "position")

    def __init__(self, pattern: str, position: int = 0) -> None:
        self.pattern = pattern
        self.position = position

    def _take(self, mark: str) -> bool:
        found = self.pattern.startswith(mark, self.position)
        self.position += len(mark) if found else 0
        return found

    def _read_character(self) -> str | None:
        """What the escape whose backslash was read stands for."""
        mark = self.pattern[self.position : self.position + 1]
        if mark in _HEX_DIGITS:
            return self._read_hexadecimal(_HEX_DIGITS[mark])
        self.position += 1
        if mark in _SINGLE:
            return _SINGLE[mark]
        return mark if mark and mark.isascii() and not mark.isalnum() and mark.isprintable() else None

    def _read_hexadecimal(self, length: int) -> str:
        start = self.position + 1
        braced = re.compile(r"\{([0-9A-Fa-f]+)\}").match(self.pattern, start)
        self.position = braced.end() if braced else start + length
        digits = braced[1] if braced else self.pattern[start : self.position]
        if not re.fullmatch("[0-9A-Fa-f]+", digits) or self.position > len(self.pattern):
            raise RegexError("invalid hexadecimal escape")
        number = int(digits, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise RegexError("the escape is not a Unicode character")
        return chr(number)


class BracketClass(_Cursor):
    """A `[…]` while it is read, from behind the opening bracket."""

    __slots__ = ("_has_newline", "_members", "_negated", "_singles")

    def __init__(self, pattern: str, position: int) -> None:
        super().__init__(pattern, position)
        self._members: list[str] = []
        self._singles: set[str] = set()
        self._has_newline = False
        self._negated = False

    @property
    def matches_newline(self) -> bool:
        return self._has_newline is not self._negated

    def read(self) -> BracketClass:
        self._negated = self._take("^")
        first = True
        while first or not self._take("]"):
            if self.position >= len(self.pattern):
                raise RegexError("unclosed character class")
            if not self._read_posix():
                self._read_member()
            first = False
        return self

    def translate(self, *, allow_newline: bool) -> str:
        """In Python's words; what matches a newline is refused or left out unless it is allowed."""
        if self._singles == {"\n"} and not self._members and not self._negated and not allow_newline:
            raise RegexError('the literal "\\n" is not allowed in a regex unless `multiline` is set')
        members = "".join([*self._members, *sorted(map(re.escape, self._singles))])
        if self._negated:
            return f"[^{members}]" if allow_newline or self._has_newline else f"[^{members}\\n]"
        guard = "(?!\\n)" if self._has_newline and not allow_newline else ""
        return f"{guard}[{members}]"

    def _read_posix(self) -> bool:
        if not self.pattern.startswith("[", self.position):
            return False
        named = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.position)
        if named is None or named[1] or named[2] not in POSIX:
            raise RegexError(_NEEDS_RIPGREP)
        self._members.append(POSIX[named[2]])
        self._has_newline |= named[2] in ("space", "cntrl", "ascii")
        self.position = named.end()
        return True

    def _read_member(self) -> None:
        if self.pattern[self.position : self.position + 2] in ("&&", "--", "~~"):
            raise RegexError(_NEEDS_RIPGREP)
        first = self._read_one()
        is_range = self.pattern.startswith("-", self.position) and not self.pattern.startswith(
            ("-]", "--"), self.position
        )
        if not is_range:
            if first is not None:
                self._singles.add(first)
                self._has_newline |= first == "\n"
            return
        self.position += 1
        last = self._read_one()
        if first is None or last is None:
            raise RegexError("invalid range boundary, must be a literal")
        if first > last:
            raise RegexError("invalid character class range, the start must be <= the end")
        self._members.append(f"{re.escape(first)}-{re.escape(last)}")
        self._has_newline |= first <= "\n" <= last

    def _read_one(self) -> str | None:
        """A character, or `None` for something like `\\d`, which is added at once."""
        mark = self.pattern[self.position : self.position + 1]
        self.position += 1
        if mark == "[":
            raise RegexError(_NEEDS_RIPGREP)
        if mark != "\\":
            return mark
        kind = self.pattern[self.position : self.position + 1]
        if kind in _MEMBERS:
            self.position += 1
            self._members.append(_MEMBERS[kind])
            self._has_newline |= kind in _HOLDS_NEWLINE
            return None
        character = self._read_character()
        if character is None or kind in ("<", ">"):
            raise RegexError(
                "unicode classes need ripgrep" if kind in ("p", "P") else "unrecognized escape sequence"
            )
        return character


class Translation(NamedTuple):
    """A pattern for Python, and what is known of the text that it can match."""

    expression: re.Pattern[str]
    literals: tuple[bytes, ...]
    """One of these is in every text that matches; empty if nothing can be said."""
    spans_lines: bool


def translate_regex(
    pattern: str, *, ignore_case: bool = False, multiline: bool = False, only_text: bool = False
) -> Translation:
    """Raises `RegexError`. `multiline` lets a match span lines and the dot match a newline.

    `only_text`: for text with bytes that are not UTF-8, decoded with `surrogateescape`. No set matches those,
    which takes a slower expression.
    """
    reader = _Reader(pattern, multiline=multiline, guard=_NO_STRAY_BYTE if only_text else "")
    scope = _Scope(dot_all=multiline, ignore_case=ignore_case)
    source, runs = reader.read_alternatives(scope, depth=0)
    if reader.position < len(pattern):
        raise RegexError("unopened group")
    try:
        expression = re.compile(source, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except (re.error, OverflowError, RecursionError) as error:
        raise RegexError(f"{error}") from error
    literals = tuple(run.encode("utf-8", "surrogateescape") for run in runs) if all(runs) else ()
    return Translation(expression, literals, reader.spans_lines)


class _Scope(NamedTuple):
    """The flags that count from here to the end of the group."""

    dot_all: bool
    ignore_case: bool

    def mark(self, text: str, outside: bool) -> str:
        """Text that was read with these flags, for a place where case is ignored or not."""
        if self.ignore_case is outside:
            return text
        return f"(?{'' if self.ignore_case else '-'}i:{text})"


class _Reader(_Cursor):
    __slots__ = ("_guard", "_multiline", "_names", "spans_lines")

    def __init__(self, pattern: str, *, multiline: bool, guard: str) -> None:
        super().__init__(pattern)
        self.spans_lines = False
        self._multiline = multiline
        self._names: set[str] = set()
        self._guard = guard
        """What stands before every set."""

    def read_alternatives(self, scope: _Scope, depth: int) -> tuple[str, list[str]]:
        """Their text for Python, and for each the longest text that it needs."""
        if depth > MAX_DEPTH:
            raise RegexError("groups are nested too deeply")
        outside = scope.ignore_case
        texts, runs = [], []
        while True:
            before = scope
            text, run, scope = self._read_sequence(scope, depth)
            texts.append(before.mark(text, outside))
            runs.append(run)
            if not self._take("|"):
                return "|".join(texts), runs

    def _read_sequence(self, scope: _Scope, depth: int) -> tuple[str, str, _Scope]:
        """One alternative, and the flags set in it, which also count for those that follow."""
        pieces: list[str] = []
        runs = [""]
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            flags = _FLAGS.match(self.pattern, self.position)
            if flags and flags[3] == ")":
                self.position = flags.end()
                changed = _set_flags(scope, flags)
                rest, run, after = self._read_sequence(changed, depth + 1)
                pieces.append(changed.mark(rest, scope.ignore_case))
                runs.append(run)
                scope = after
                break
            literal, piece = self._read_atom(scope, depth)
            repeated, piece = self._read_repetition(piece)
            if literal is None or repeated or scope.ignore_case:
                runs.append("")
            else:
                runs[-1] += literal
            pieces.append(piece)
        return "".join(pieces), max(runs, key=len), scope

    def _read_atom(self, scope: _Scope, depth: int) -> tuple[str | None, str]:
        """The character that it stands for, if it is one, and its text for Python."""
        mark = self.pattern[self.position]
        if mark in "*+?{":
            raise RegexError(_MISSING)
        if mark == "(":
            return None, self._read_group(scope, depth)
        if mark == "\\":
            return self._read_escape()
        self.position += 1
        if mark == "[":
            return None, self._read_class()
        if mark == ".":
            self.spans_lines |= scope.dot_all and self._multiline
            return None, self._guard + ("(?s:.)" if scope.dot_all and self._multiline else ".")
        if mark in "^$":
            return None, f"(?:{mark})"
        return self._literal(mark)

    def _literal(self, character: str) -> tuple[str, str]:
        if character == "\n":
            if not self._multiline:
                raise RegexError('the literal "\\n" is not allowed in a regex unless `multiline` is set')
            self.spans_lines = True
        return character, re.escape(character)

    def _read_class(self) -> str:
        found = BracketClass(self.pattern, self.position).read()
        self.position = found.position
        self.spans_lines |= self._multiline and found.matches_newline
        return self._guard + found.translate(allow_newline=self._multiline)

    def _read_escape(self) -> tuple[str | None, str]:
        self.position += 1
        kind = self.pattern[self.position : self.position + 1]
        if kind in _ASSERTIONS and kind:
            if self.pattern.startswith(("b{start", "b{end"), self.position):
                raise RegexError("`\\b{…}` needs ripgrep")
            self.position += 1
            beside = f"{_AFTER_NO_STRAY_BYTE}{self._guard}" if kind == "B" and self._guard else ""
            return None, f"(?:{beside}{_ASSERTIONS[kind]})"
        if kind in "dDwWsS" and kind:
            self.position += 1
            return None, self._guard + self._translate_class(kind)
        character = self._read_character()
        if character is None:
            raise RegexError(_explain_escape(kind))
        return self._literal(character)

    def _translate_class(self, kind: str) -> str:
        if kind in _CLASSES:
            return _CLASSES[kind]
        self.spans_lines |= self._multiline
        if kind == "s":
            return f"[{SPACE_WITHOUT_NEWLINE}\\n]" if self._multiline else f"[{SPACE_WITHOUT_NEWLINE}]"
        return f"\\{kind}" if self._multiline else f"[^\\{kind.lower()}\\n]"

    def _read_group(self, scope: _Scope, depth: int) -> str:
        inner = scope
        flags = _FLAGS.match(self.pattern, self.position)
        named = _NAME.match(self.pattern, self.position)
        if flags:
            inner = _set_flags(scope, flags)
            self.position = flags.end()
        elif named:
            if named[1] in self._names:
                raise RegexError("duplicate capture group name")
            self._names.add(named[1])
            self.position = named.end()
        elif self.pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), self.position):
            raise RegexError("look-around, including look-ahead and look-behind, is not supported")
        elif self.pattern.startswith("(?", self.position):
            raise RegexError("unrecognized flag")
        else:
            self.position += 1
        text, _ = self.read_alternatives(inner, depth + 1)
        if not self._take(")"):
            raise RegexError("unclosed group")
        return inner.mark(f"(?:{text})", scope.ignore_case)

    def _read_repetition(self, piece: str) -> tuple[bool, str]:
        """The piece with the operators that follow it; Rust lets several stand in a row."""
        repeated = False
        while (operator := self._take_operator()) is not None:
            piece = f"(?:{piece}){operator}{'?' if self._take('?') else ''}"
            repeated = True
        return repeated, piece

    def _take_operator(self) -> str | None:
        mark = self.pattern[self.position : self.position + 1]
        if mark and mark in "*+?":
            self.position += 1
            return mark
        if mark != "{":
            return None
        count = _COUNT.match(self.pattern, self.position)
        if count is None or (count[3] and not count[2]):
            raise RegexError("repetition quantifier expects a valid decimal")
        if count[3] and int(count[3]) < int(count[1]):
            raise RegexError("invalid repetition count range, the start must be <= the end")
        self.position = count.end()
        return f"{{{count[1]}{count[2]}{count[3]}}}"


def _set_flags(scope: _Scope, flags: re.Match[str]) -> _Scope:
    on, off = flags[1], flags[2] or ""
    if not on and not off and flags[3] == ")":
        raise RegexError(_MISSING)
    unknown = set(on + off) - set("imsuxUR")
    if unknown:
        raise RegexError("unrecognized flag")
    if set(on) & set("xUR") or set(off) & set("mu"):
        raise RegexError("the flags x, U, R, -m and -u need ripgrep")
    return _Scope(
        dot_all="s" in on or (scope.dot_all and "s" not in off),
        ignore_case="i" in on or (scope.ignore_case and "i" not in off),
    )


def _explain_escape(kind: str) -> str:
    if not kind:
        return "incomplete escape sequence, reached end of pattern prematurely"
    if kind.isdigit():
        return "backreferences are not supported"
    if kind in "pPAz":
        return f"`\\{kind}` needs ripgrep"
    return "unrecognized escape sequence"
