"""Strings, lists and objects of JSON (and of programs) inside a text, at any level of escaping."""

from __future__ import annotations

import re

_BRACKET = re.compile(r"\\*+\"|[{\[]++|[}\]]++")


def closes(backslashes: int, level: int) -> bool:
    """Whether a quote after so many backslashes ends a string whose own quotes carry `level` of them."""
    return backslashes < level or backslashes % (2 * (level + 1)) == level


def deepen(backslashes: int, level: int) -> int:
    """How many backslashes a quote has after its text was escaped so many times."""
    return ((backslashes + 1) << level) - 1


def find_close(text: str, position: int, quote: str, level: int) -> int:
    """Where the closing quote (with its backslashes) begins, or -1; a line end closes too."""
    while True:
        found = text.find(quote, position)
        line = text.find("\n", position, found if found >= 0 else len(text))
        if line >= 0:
            return line
        if found < 0:
            return -1
        start = found
        while start > 0 and text[start - 1] == "\\":
            start -= 1
        if closes(found - start, level):
            return max(start, found - level) if found - start >= level else start
        position = found + 1


class StringTail:
    """The rest of a string up to its closing quote or the end of its line."""

    __slots__ = ("_level", "_quote")

    def __init__(self, quote: str, level: int) -> None:
        self._quote = quote
        self._level = level

    def inside(self, level: int) -> StringTail:
        return StringTail(self._quote, deepen(self._level, level))

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        end = find_close(text, position, self._quote, self._level)
        if end >= 0:
            return end, False
        if final:
            return len(text), False
        stop = len(text)
        while stop > position and text[stop - 1] == "\\":  # they may belong to the closing quote
            stop -= 1
        return stop, True


class BracketTail:
    """The rest of a list or an object up to the bracket that closes it."""

    __slots__ = ("_depth", "_inside", "_level")

    def __init__(self, level: int) -> None:
        self._level = level
        self._depth = 0
        self._inside = False

    def inside(self, level: int) -> BracketTail:
        return BracketTail(deepen(self._level, level))

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        stop = len(text)
        while not final and stop > position and text[stop - 1] == "\\":
            stop -= 1
        for found in _BRACKET.finditer(text, position, stop):
            sign = found.group()
            if sign[-1] == '"':
                if not self._quote(len(sign) - 1):
                    return found.start(), False
            elif not self._inside:
                if sign[0] in "{[":
                    self._depth += len(sign)
                elif self._depth > len(sign):
                    self._depth -= len(sign)
                else:
                    return found.start() + self._depth, False
        return stop, not final

    def _quote(self, backslashes: int) -> bool:
        """Take a quote; false if it closes the string in which the whole JSON stands."""
        if backslashes < self._level:
            return False
        if not self._inside or closes(backslashes, self._level):
            self._inside = not self._inside
        return True
