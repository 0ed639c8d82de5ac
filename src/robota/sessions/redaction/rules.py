"""What a rule is made of: how its places are found, what it decides there, how far a secret goes on.

A rule decides about one place from at most `BEHIND` characters before it and `AHEAD` after it; once it said
"secret", a tail follows the secret as far as it goes. That bound is what lets a stream be written while it
arrives: a place further than `AHEAD` from the end is settled, whatever comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern

REDACTED = "[REDACTED]"
BEHIND = 200
AHEAD = 160


class Searched(Protocol):
    """What a rule's places are found with."""

    def search(self, text: str, position: int, stop: int, /) -> re.Match[str] | None: ...


class Tail(Struct, eq=False):
    """Follows a secret that began."""

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        """Where it ends, and whether more text could carry it on."""
        raise NotImplementedError

    def inside(self, level: int) -> Tail:
        """The same tail for text that was escaped so many times."""
        return self


Decision: TypeAlias = tuple[int, int, Tail | None, str]
"""Start and end of the secret from the anchor on, what may follow, and the text that replaces it."""
Decide: TypeAlias = Callable[[str, str, bool], Decision | None]
"""Takes the text before the anchor, the text after it, and whether that text ends there."""


def word_set(text: str) -> frozenset[str]:
    """The words of a table that is written as text."""
    return frozenset(text.split())


def take(found: re.Match[str], tail: Tail | None = None) -> Decision:
    """The group `secret` is one."""
    return found.start("secret"), found.end("secret"), tail, REDACTED


def move(decision: Decision | None, distance: int) -> Decision | None:
    """A decision about the rest of a text, seen from where the text begins."""
    if decision is None:
        return None
    start, end, tail, replacement = decision
    return start + distance, end + distance, tail, replacement


def follows(
    source: str,
    tail: Tail | None = None,
    *,
    quoted: str = "(?!)",
    looks: Callable[[str], bool] = bool,
    after: str = "",
) -> Decide:
    """The group `secret` of a pattern that matches at the anchor, if it looks like one. A `quoted` one goes
    before and has no tail; `after` is a pattern that what stands before must have."""
    closed, open_ended, lead = lazy_pattern(quoted), lazy_pattern(source), lazy_pattern(after)

    def decide(before: str, ahead: str, _ends: bool) -> Decision | None:
        if after and not lead.search(before):
            return None
        full = closed.match(ahead)
        found = full or open_ended.match(ahead)
        return take(found, None if full else tail) if found and looks(found["secret"]) else None

    return decide


def whole(source: str) -> Callable[[str], bool]:
    """Whether a text as a whole has this form."""
    pattern = lazy_pattern(source)
    return lambda text: pattern.fullmatch(text) is not None


class Rule:
    """One kind of secret: literals that a text must hold, a bounded pattern that finds places, what then.

    The pattern begins with `literal`: no search is faster. `then` is a decision about what follows the match
    (the value after a name), or the tail of a secret that begins with the match.
    """

    __slots__ = ("at_start", "decide", "folded", "holds", "needs", "pattern", "tail", "tails")

    def __init__(
        self,
        literal: str,
        rest: str | Searched,
        then: Decide | Tail,
        *,
        needs: tuple[str, ...] = (),
        holds: str = "",
        folded: bool = False,
        at_start: bool = False,
        tails: Mapping[str, Tail] | None = None,
    ) -> None:
        self.needs = needs or (literal.lower(),)
        """Without one of these, in lower case, the rule cannot match. Each costs a search, so rules share."""
        self.holds = holds or literal
        """And without this neither."""
        self.pattern = lazy_pattern(re.escape(literal) + rest) if isinstance(rest, str) else rest
        self.folded = folded
        """Whether literal and pattern are written for lower-case text."""
        self.decide = then if callable(then) else None
        self.tail = None if callable(then) else then
        self.tails = tails or {}
        """Other tails, for matches of these groups of the pattern."""
        self.at_start = at_start or self.decide is None
        """Whether the anchor, the place that is decided about, is the start of the match or its end."""


class RunTail(Tail):
    """A secret goes on while its characters match."""

    characters: str
    look: int = 1
    """How many of them must be seen to know that the secret ended."""
    _pattern: Any = None

    def __post_init__(self) -> None:
        self._pattern = lazy_pattern(f"(?:{self.characters})*+")

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        found = self._pattern.match(text, position)
        end = found.end() if found else position
        return end, not final and len(text) - end < self.look


# --- strings, lists and objects of JSON (and of programs) inside a text, at any level of escaping ---


def closes(backslashes: int, level: int) -> bool:
    """Whether a quote after so many backslashes ends a string whose own quotes carry `level` of them."""
    return backslashes < level or backslashes % (2 * (level + 1)) == level


def deepen(backslashes: int, level: int) -> int:
    """How many backslashes a quote has after its text was escaped so many times."""
    return ((backslashes + 1) << level) - 1


def find_close(text: str, position: int, quote: str, level: int, *, begun: bool = False) -> int:
    """Where the closing quote (with its backslashes) begins, or -1; a line end closes too. A doubled quote
    is one of the text, unless the text would only begin with it; `begun` says that some of it came before."""
    first = -1 if begun else position
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
        if level == 0 and start == found > first and _is_doubled(text, found):
            position = found + 2
            continue
        if closes(found - start, level):
            return max(start, found - level) if found - start >= level else start
        position = found + 1


def _is_doubled(text: str, quote: int) -> bool:
    return (
        text[quote : quote + 1] == text[quote + 1 : quote + 2] and _GOES_ON.match(text, quote + 2) is not None
    )


_GOES_ON = lazy_pattern(r"[^\s\"'`,;:)\]}>\\]| [\w ]")
"""More of a text, and not what stands behind one."""
_TO_CLOSE = 4
"""How many characters must be seen, from a quote on, to know that it closes."""


def may_go_on(text: str, close: int) -> bool:
    """Whether too little is seen to know that a quote there is not the first of two."""
    return text[close + 1 : close + 2] in ("", text[close : close + 1]) and len(text) - close < _TO_CLOSE


class StringTail(Tail):
    """The rest of a string up to its closing quote or the end of its line."""

    _quote: str
    _level: int

    def inside(self, level: int) -> StringTail:
        return StringTail(self._quote, deepen(self._level, level))

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        end = find_close(text, position, self._quote, self._level, begun=True)
        if end >= 0:
            return end, not final and self._level == 0 and text[end] == self._quote and may_go_on(text, end)
        if final:
            return len(text), False
        stop = len(text)
        while stop > position and text[stop - 1] == "\\":  # they may belong to the closing quote
            stop -= 1
        return stop, True


class BracketTail(Tail):
    """The rest of a list or an object up to the bracket that closes it."""

    _level: int
    _depth: int = 0
    _inside: bool = False

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


_BRACKET = lazy_pattern(r"\\*+\"|[{\[]++|[}\]]++")
