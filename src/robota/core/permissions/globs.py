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
ANY_NAME = 2  # `*` in a file-name glob: no slash, and no blank where words are compared
VISIBLE_NAME = 3  # the same at the start of a path component, where a dot must be written
ONE_CHARACTER = 4  # `?` or `[…]` in a file-name glob

Item: TypeAlias = str | int
"""One stretch of a partly known text: literal characters, or one of the holes above."""

_BARRED: dict[Item, str] = {ANY_TEXT: "", ANY_WORD: " ", ANY_NAME: " /", VISIBLE_NAME: " /"}
"""The characters that a hole of any length cannot hold."""
_BARRED_IN_PATHS = {item: barred.strip() for item, barred in _BARRED.items()}


class Glob(Struct, frozen=True):
    literals: tuple[str, ...]
    """The text between the wildcards; a single entry is a pattern without any."""

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


def may_match(glob: Glob, items: Sequence[Item], *, path: bool = False) -> bool:
    """Whether some value of the holes makes the text match; exact when there are no holes.

    In a path a blank is a character like any other, in a command it parts two words.
    """
    barred = _BARRED_IN_PATHS if path else _BARRED
    if all(isinstance(item, str) for item in items):
        return glob.matches("".join(str(item) for item in items))
    first, head = glob.literals[0], items[0] if isinstance(items[0], str) else ""
    if not (head.startswith(first) or first.startswith(head)):
        return False
    steps: list[str | None] = [*first]  # the pattern as single characters, None standing for a wildcard
    for literal in glob.literals[1:]:
        steps += [None, *literal]
    states = _close({0}, steps)
    for item in items:
        for token in item if isinstance(item, str) else (item,):
            states = _advance(states, steps, token, barred)
            if not states:
                return False
    return len(steps) in states


def _close(states: set[int], steps: list[str | None]) -> set[int]:
    """With the positions behind wildcards that stand for nothing."""
    closed = set(states)
    for state in states:
        position = state
        while position < len(steps) and steps[position] is None:
            position += 1
            closed.add(position)
    return closed


def _advance(states: set[int], steps: list[str | None], token: Item, barred: dict[Item, str]) -> set[int]:
    """Where in the pattern a match may be after one more character or hole of the text."""
    if token in barred:
        return _close(_fill(states, steps, token, barred[token]), steps)
    parting = barred[ANY_NAME]
    following: set[int] = set()
    for state in states:
        step = steps[state] if state < len(steps) else ""
        if step is None:
            following.add(state)
        elif step == token or (token == ONE_CHARACTER and step and step not in parting):
            following.add(state + 1)
    return _close(following, steps)


def _fill(states: set[int], steps: list[str | None], hole: Item, barred: str) -> set[int]:
    reached = set(states)
    for state in states:
        for position in range(state, len(steps)):
            step = steps[position]
            hidden = hole == VISIBLE_NAME and position == state and step == "."
            if step is not None and (step in barred or hidden):
                break
            reached.add(position + 1)
    return reached
