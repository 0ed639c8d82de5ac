"""Anchored patterns in which `*` is any text and every other character is literal.

Matching never backtracks: the cost is linear in the text. `may_match` answers the harder question of
whether a text that is only partly known (a variable, a file-name glob) could be one that the pattern
matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

ANY_TEXT = 0  # an unquoted expansion: any text, blanks included
ANY_WORD = 1  # a quoted expansion: any text that stays one word
ANY_NAME = 2  # `*` in a file-name glob: no blank, no slash
VISIBLE_NAME = 3  # the same at the start of a path component, where a dot must be written
ONE_CHARACTER = 4  # `?` or `[…]` in a file-name glob

Item: TypeAlias = str | int
"""One stretch of a partly known text: literal characters, or one of the holes above."""


class Glob(Struct, frozen=True):
    literals: tuple[str, ...]
    """The text between the wildcards; a single entry is a pattern without any."""

    @property
    def exact(self) -> bool:
        return len(self.literals) == 1

    @property
    def everything(self) -> bool:
        return len(self.literals) > 1 and not any(self.literals)

    def matches(self, text: str) -> bool:
        first, last = self.literals[0], self.literals[-1]
        if not text.startswith(first):
            return False
        if len(self.literals) == 1:
            return len(text) == len(first)
        if len(text) < len(first) + len(last) or not text.endswith(last):
            return False
        position, limit = len(first), len(text) - len(last)
        for literal in self.literals[1:-1]:
            position = text.find(literal, position, limit)
            if position < 0:
                return False
            position += len(literal)
        return True


def compile_glob(pattern: str) -> Glob:
    pieces = pattern.split("*")
    # `**` means the same as `*`: drop the empty text between two neighbouring wildcards.
    return Glob(tuple(piece for index, piece in enumerate(pieces) if piece or index in (0, len(pieces) - 1)))


def may_match(glob: Glob, items: Sequence[Item]) -> bool:
    """Whether some value of the holes makes the text match; exact when there are no holes."""
    if all(isinstance(item, str) for item in items):
        return glob.matches("".join(str(item) for item in items))
    head = items[0] if items and isinstance(items[0], str) else ""
    first = glob.literals[0]
    if not (head.startswith(first) or first.startswith(head)):
        return False
    return _simulate(_steps(glob), items)


def _steps(glob: Glob) -> list[str | None]:
    """The pattern as single characters, None standing for a wildcard."""
    steps: list[str | None] = list(glob.literals[0])
    for literal in glob.literals[1:]:
        steps.append(None)
        steps.extend(literal)
    return steps


def _simulate(steps: list[str | None], items: Sequence[Item]) -> bool:
    states = _close({0}, steps)
    for item in items:
        if isinstance(item, str):
            for character in item:
                states = _advance(states, steps, character)
                if not states:
                    return False
        elif item == ONE_CHARACTER:
            states = _advance(states, steps, None)
        else:
            states = _advance_hole(states, steps, item)
        if not states:
            return False
    return len(steps) in states


def _close(states: set[int], steps: list[str | None]) -> set[int]:
    closed = set(states)
    for state in states:
        position = state
        while position < len(steps) and steps[position] is None:
            position += 1
            closed.add(position)
    return closed


def _advance(states: set[int], steps: list[str | None], character: str | None) -> set[int]:
    """The states after one character; None stands for any that a file-name glob puts in the place of `?`."""
    following: set[int] = set()
    for state in states:
        step = steps[state] if state < len(steps) else ""
        if step is None:
            following.add(state)
        elif step == character if character is not None else step not in ("", " ", "/"):
            following.add(state + 1)
    return _close(following, steps)


def _advance_hole(states: set[int], steps: list[str | None], hole: int) -> set[int]:
    barred = {ANY_TEXT: "", ANY_WORD: " ", ANY_NAME: " /", VISIBLE_NAME: " /"}[hole]
    reached = set(states)
    for state in states:
        position = state
        while position < len(steps):
            step = steps[position]
            if step is not None and (
                step in barred or (hole == VISIBLE_NAME and position == state and step == ".")
            ):
                break
            position += 1
            reached.add(position)
    return _close(reached, steps)
