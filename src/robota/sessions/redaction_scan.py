"""The scanner under every text rule: where secrets lie in a text that is whole or still arriving.

A rule decides about one place from at most `BEHIND` characters before it and `AHEAD` after it; once it said
"secret", a tail follows the secret as far as it goes. That bound is what lets a stream be written while it
arrives: a place further than `AHEAD` from the end is settled, whatever comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

REDACTED = "[REDACTED]"
BEHIND = 200
AHEAD = 160


class Tail(Protocol):
    """Follows a secret that began; says where it ends and whether more text could carry it on."""

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]: ...


Decision: TypeAlias = tuple[int, int, Tail | None, str]
"""Start and end of the secret from the anchor on, what may follow, and the text that replaces it."""
Decide: TypeAlias = Callable[[str, str, bool], Decision | None]
"""Takes the text before the anchor, the text after it, and whether that text ends there."""
Span: TypeAlias = tuple[int, int, str]


class Rule:
    """One kind of secret: a literal that must be there, a bounded pattern that finds it, a decision.

    The anchor is the end of the pattern's match for rules with a decision (the value that follows a name) and
    its start otherwise (the match is the beginning of the secret).
    """

    __slots__ = ("at_start", "decide", "folded", "hint", "needles", "pattern", "tail")

    def __init__(
        self,
        needles: Sequence[str],
        pattern: str,
        tail: Tail | None = None,
        *,
        decide: Decide | None = None,
        folded: bool = False,
        at_start: bool | None = None,
        hint: Callable[[str], bool] | None = None,
    ) -> None:
        self.needles = tuple(needles)
        self.pattern = re.compile(pattern)
        self.tail = tail
        self.decide = decide
        self.folded = folded
        self.hint = hint
        self.at_start = decide is None if at_start is None else at_start

    def may_match(self, haystack: str) -> bool:
        """Whether the text is worth searching."""
        if self.hint is not None:
            return self.hint(haystack)
        return any(needle in haystack for needle in self.needles)


class RunTail:
    """A secret goes on while its characters match."""

    __slots__ = ("_look", "_match")

    def __init__(self, characters: str, look: int = 1) -> None:
        self._match = re.compile(f"(?:{characters})*+").match
        self._look = look  # how many characters the pattern must see to know that the secret ended

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        found = self._match(text, position)
        end = found.end() if found else position
        return end, not final and len(text) - end < self._look


class Scanner:
    """Applies rules to a text. `scan` may be called again when the text has grown or lost its beginning."""

    __slots__ = ("_memory", "_open", "_positions", "_rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._positions: dict[Rule, int] = {}
        self._open: dict[Rule, tuple[int, Tail]] = {}
        self._memory: dict[tuple[Rule, str, str, bool], Decision | None] = {}

    @property
    def is_open(self) -> bool:
        """Whether a secret that began has not ended yet."""
        return bool(self._open)

    def cut(self, length: int) -> None:
        """Tell that the text lost its first `length` characters."""
        self._positions = {rule: position - length for rule, position in self._positions.items()}
        self._open = {rule: (end - length, tail) for rule, (end, tail) in self._open.items()}

    def scan(self, text: str, *, settled: int = 0, final: bool = True) -> list[Span]:
        """The spans whose place lies at or after `settled`, and those that an open secret reaches now."""
        limit = len(text) if final else len(text) - AHEAD
        lowered = text.lower()
        if len(lowered) != len(text):  # a few letters change their length
            lowered = "".join(letter if len(letter.lower()) != 1 else letter.lower() for letter in text)
        spans: list[Span] = []
        for rule in self._rules:
            haystack = lowered if rule.folded else text
            if rule in self._open or rule.may_match(haystack):
                self._apply(rule, text, haystack, (settled, limit, final), spans)
        spans.sort()
        return spans

    def _apply(
        self, rule: Rule, text: str, haystack: str, bounds: tuple[int, int, bool], spans: list[Span]
    ) -> None:
        settled, limit, final = bounds
        position = max(0, self._positions.get(rule, 0))
        if rule in self._open:
            begin, tail = self._open.pop(rule)
            position = self._follow(rule, tail, (text, begin, final))
            spans.append((begin, position, ""))
        search = rule.pattern.search
        while found := search(haystack, position):
            anchor = found.start() if rule.at_start else found.end()
            if anchor >= limit and not final:
                break
            decision = self._decide(rule, text, found, anchor) if anchor >= settled else None
            if decision is None:
                position = max(found.end(), position + 1)
                continue
            start, end, tail, replacement = decision
            position = anchor + end
            if tail is not None:
                position = self._follow(rule, tail, (text, position, final))
            spans.append((anchor + start, position, replacement))
            if rule in self._open:
                break
        self._positions[rule] = position

    def _follow(self, rule: Rule, tail: Tail, place: tuple[str, int, bool]) -> int:
        text, position, final = place
        end, is_open = tail.consume(text, position, final=final)
        if is_open:
            self._open[rule] = (end, tail)
        return end

    def _decide(self, rule: Rule, text: str, found: re.Match[str], anchor: int) -> Decision | None:
        if rule.decide is None:
            return (0, found.end() - anchor, rule.tail, REDACTED)
        before = text[max(0, anchor - BEHIND) : anchor]
        ahead = text[anchor : anchor + AHEAD]
        ends = anchor + AHEAD > len(text)
        key = (rule, before, ahead, ends)
        if key in self._memory:
            return self._memory[key]
        if len(self._memory) >= _MEMORY:
            self._memory.clear()
        decision = rule.decide(before, ahead, ends)
        if (
            decision is None or decision[2] is None or isinstance(decision[2], RunTail)
        ):  # the others have state
            self._memory[key] = decision
        return decision


_MEMORY = 256
"""Decisions kept during one scan: text that repeats itself is decided once."""


def apply_spans(text: str, spans: Sequence[Span]) -> str:
    """The text with every span replaced; spans that touch or overlap become one."""
    pieces: list[str] = []
    covered = -1
    for start, end, replacement in spans:
        if start > covered:
            pieces += (text[max(covered, 0) : start], replacement)
        covered = max(covered, end)
    pieces.append(text[max(covered, 0) :])
    return "".join(pieces)
