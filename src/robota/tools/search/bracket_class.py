"""A set of characters in Rust's regex syntax, `[…]`, as Python's `re` writes it."""

from __future__ import annotations

import re


class RegexError(ValueError):
    """Why a pattern cannot be used, in the words that ripgrep finds for it where it would refuse it too."""


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
_MEMBERS = {
    "d": "\\d",
    "D": "\\D",
    "w": "\\w",
    "W": "\\W",
    "s": SPACE_WITHOUT_NEWLINE + "\\n",
    "S": "\\S\\x1c-\\x1f",  # which Python counts as space
}
_HOLDS_NEWLINE = "DWs"
_SINGLE = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_NEEDS_RIPGREP = "nested sets and set operations need ripgrep"


def read_character(pattern: str, position: int) -> tuple[str, int] | None:
    """The character that the escape at `position` (behind the backslash) stands for, and where it ends."""
    mark = pattern[position : position + 1]
    if mark in _HEX_DIGITS:
        return _read_hexadecimal(pattern, position)
    if mark in _SINGLE:
        return _SINGLE[mark], position + 1
    if mark and mark.isascii() and not mark.isalnum() and mark.isprintable():
        return mark, position + 1
    return None


def _read_hexadecimal(pattern: str, position: int) -> tuple[str, int]:
    braced = re.compile(r"\{([0-9A-Fa-f]+)\}").match(pattern, position + 1)
    end = braced.end() if braced else position + 1 + _HEX_DIGITS[pattern[position]]
    digits = braced[1] if braced else pattern[position + 1 : end]
    if not re.fullmatch("[0-9A-Fa-f]+", digits) or end > len(pattern):
        raise RegexError("invalid hexadecimal escape")
    number = int(digits, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise RegexError("the escape is no Unicode character")
    return chr(number), end


class BracketClass:
    """A `[…]` while it is read."""

    __slots__ = ("_has_newline", "_members", "_negated", "_position", "_singles", "pattern")

    def __init__(self, pattern: str, position: int) -> None:
        """`position` is behind the opening bracket."""
        self.pattern = pattern
        self._position = position
        self._members: list[str] = []
        self._singles: set[str] = set()
        self._has_newline = False
        self._negated = False

    @property
    def matches_newline(self) -> bool:
        return self._has_newline is not self._negated

    @property
    def end(self) -> int:
        return self._position

    def read(self) -> BracketClass:
        self._negated = self._take("^")
        first = True
        while first or not self._take("]"):
            if self._position >= len(self.pattern):
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

    def _take(self, mark: str) -> bool:
        found = self.pattern.startswith(mark, self._position)
        self._position += len(mark) if found else 0
        return found

    def _read_posix(self) -> bool:
        if not self.pattern.startswith("[", self._position):
            return False
        named = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self._position)
        if named is None or named[1] or named[2] not in POSIX:
            raise RegexError(_NEEDS_RIPGREP)
        self._members.append(POSIX[named[2]])
        self._has_newline |= named[2] in ("space", "cntrl", "ascii")
        self._position = named.end()
        return True

    def _read_member(self) -> None:
        if self.pattern[self._position : self._position + 2] in ("&&", "--", "~~"):
            raise RegexError(_NEEDS_RIPGREP)
        first = self._read_one()
        is_range = self.pattern.startswith("-", self._position) and not self.pattern.startswith(
            ("-]", "--"), self._position
        )
        if not is_range:
            if first is not None:
                self._singles.add(first)
                self._has_newline |= first == "\n"
            return
        self._position += 1
        last = self._read_one()
        if first is None or last is None:
            raise RegexError("invalid range boundary, must be a literal")
        if first > last:
            raise RegexError("invalid character class range, the start must be <= the end")
        self._members.append(f"{re.escape(first)}-{re.escape(last)}")
        self._has_newline |= first <= "\n" <= last

    def _read_one(self) -> str | None:
        """A character, or `None` for something like `\\d`, which is added at once."""
        mark = self.pattern[self._position : self._position + 1]
        self._position += 1
        if mark == "[":
            raise RegexError(_NEEDS_RIPGREP)
        if mark != "\\":
            return mark
        kind = self.pattern[self._position : self._position + 1]
        if kind in _MEMBERS:
            self._position += 1
            self._members.append(_MEMBERS[kind])
            self._has_newline |= kind in _HOLDS_NEWLINE
            return None
        found = read_character(self.pattern, self._position)
        if found is None or kind in ("<", ">"):
            raise RegexError(
                "unicode classes need ripgrep" if kind in ("p", "P") else "unrecognized escape sequence"
            )
        character, self._position = found
        return character
