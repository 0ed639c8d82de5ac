"""The scanner under every text rule: where secrets lie in a text that is whole or still arriving.

A rule decides about one place from at most `BEHIND` characters before it and `AHEAD` after it; once it said
"secret", a tail follows the secret as far as it goes. That bound is what lets a stream be written while it
arrives: a place further than `AHEAD` from the end is settled, whatever comes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

REDACTED = "[REDACTED]"
_RARE = re.compile(r"[^\w\s.,:/()=-]")
BEHIND = 200
AHEAD = 160


class Tail(Protocol):
    """Follows a secret that began; says where it ends and whether more text could carry it on."""

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]: ...

    def inside(self, level: int) -> Tail:
        """The same tail for text that was escaped so many times."""
        ...


Decision: TypeAlias = tuple[int, int, Tail | None, str]
"""Start and end of the secret from the anchor on, what may follow, and the text that replaces it."""
Decide: TypeAlias = Callable[[str, str, bool], Decision | None]
"""Takes the text before the anchor, the text after it, and whether that text ends there."""
Span: TypeAlias = tuple[int, int, str]


class Rule:
    """One kind of secret: lower-case literals (one must occur), a bounded pattern, a decision.

    The anchor is the end of the pattern's match for rules with a decision (the value that follows a name) and
    its start otherwise (the match is the beginning of the secret). A pattern should begin with a literal:
    such a search is ten times faster than any other.
    """

    __slots__ = ("at_start", "decide", "folded", "guards", "in_runs", "needles", "pattern", "tail")

    def __init__(
        self,
        needles: Sequence[str],
        pattern: str,
        tail: Tail | None = None,
        *,
        decide: Decide | None = None,
        folded: bool = False,
        at_start: bool | None = None,
        in_runs: bool = False,
    ) -> None:
        self.needles = frozenset(needles)
        """Without them the rule cannot match; none at all: it is always tried."""
        rare = [_RARE.search(needle) for needle in needles]
        self.guards = "".join(found.group() for found in rare if found) if needles and all(rare) else None
        """Characters one of which must occur, each rare enough to be worth a search; none: no such bound."""
        self.pattern = re.compile(pattern)
        self.tail = tail
        self.decide = decide
        self.folded = folded
        """Whether the pattern is written for lower-case text."""
        self.in_runs = in_runs
        """Whether only the neighbourhood of long runs of letters and digits is searched."""
        self.at_start = decide is None if at_start is None else at_start

    def finds(self, text: Text, window: tuple[int, int]) -> bool:
        """Whether the pattern matches in the window."""
        look = self.pattern.match if self.in_runs else self.pattern.search
        return look(text.lowered if self.folded else text.plain, *window) is not None

    def windows(self, text: Text) -> Sequence[tuple[int, int]]:
        """The stretches of the text that are worth searching."""
        if self.in_runs:
            return text.runs
        return text.whole


class Text:
    """A text with what the rules share: its lower-case form and its long runs."""

    __slots__ = ("_runs", "lowered", "plain", "whole")

    def __init__(self, plain: str) -> None:
        self.plain = plain
        lowered = plain.lower()
        if len(lowered) != len(plain):  # one letter becomes two
            lowered = plain.replace("İ", "i").lower()
        self.lowered = lowered
        self.whole = ((0, len(plain)),)
        self._runs: list[tuple[int, int]] | None = None

    @property
    def runs(self) -> list[tuple[int, int]]:
        """Where an issued token could stand: around stretches without blanks and punctuation."""
        if self._runs is None:
            self._runs = find_runs(self.plain)
        return self._runs


_RUN = b"a" * 16
_RUN_TABLE = bytes(97 if chr(code).isalnum() or code in b"_-." else 32 for code in range(256))
_MARGIN = 24
_TOKEN_LETTER = re.compile(r"[A-Zg-z]")
_TOKEN_DIGIT = re.compile(r"[A-Z0-9]")


def find_runs(text: str) -> list[tuple[int, int]]:
    """The long runs of a text, each with some margin; runs whose margins touch are one."""
    classes = text.encode("latin-1", "replace").translate(_RUN_TABLE)
    runs: list[tuple[int, int]] = []
    position = classes.find(_RUN)
    while position >= 0:
        end = classes.find(b" ", position)
        end = len(classes) if end < 0 else end
        start = max(0, position - _MARGIN)
        if not _TOKEN_DIGIT.search(text, position, end) or not _TOKEN_LETTER.search(text, position, end):
            pass  # a word, or a hash
        elif runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], end + _MARGIN)
        else:
            runs.append((start, end + _MARGIN))
        position = classes.find(_RUN, end)
    return runs


class RunTail:
    """A secret goes on while its characters match."""

    __slots__ = ("_look", "_match")

    def __init__(self, characters: str, look: int = 1) -> None:
        self._match = re.compile(f"(?:{characters})*+").match
        self._look = look  # how many characters the pattern must see to know that the secret ended

    def inside(self, level: int) -> RunTail:
        return self

    def consume(self, text: str, position: int, *, final: bool) -> tuple[int, bool]:
        found = self._match(text, position)
        end = found.end() if found else position
        return end, not final and len(text) - end < self._look


class RuleSet:
    """Rules, and which of them a text needs."""

    __slots__ = ("_always", "_by_needle", "_only_runs", "_some_needle", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._always = tuple(rule for rule in rules if not rule.needles)
        self._by_needle: dict[str, list[Rule]] = {}
        for rule in rules:
            for needle in rule.needles:
                self._by_needle.setdefault(needle, []).append(rule)
        self._some_needle = re.compile("|".join(map(re.escape, sorted(self._by_needle))))
        self._only_runs = all(rule.in_runs for rule in self._always)

    def may_match(self, text: Text) -> bool:
        """False if no rule can match anywhere."""
        lowered = text.lowered
        if self._some_needle.search(lowered):
            for rules in [rules for needle, rules in self._by_needle.items() if needle in lowered]:
                if any(rule.finds(text, text.whole[0]) for rule in rules):
                    return True
        if not text.runs and self._only_runs:
            return False
        return any(rule.finds(text, window) for rule in self._always for window in rule.windows(text))

    def choose(self, text: Text) -> Iterable[Rule]:
        """The rules that could match."""
        if len(text.plain) > _SHORT:
            return [rule for rule in self.rules if rule.guards is None or _has_any(text.plain, rule.guards)]
        chosen = dict.fromkeys(self._always)
        for needle, rules in self._by_needle.items():
            if needle in text.lowered:
                chosen.update(dict.fromkeys(rules))
        return chosen


def _has_any(text: str, characters: str) -> bool:
    return any(character in text for character in characters)


_SHORT = 1024
"""In longer texts the patterns are faster than a search for their needles, but for single characters."""


class Scanner:
    """Applies rules to a text. `scan` may be called again when the text has grown or lost its beginning."""

    __slots__ = ("_memory", "_open", "_positions", "_rules")

    def __init__(self, rules: RuleSet) -> None:
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
        shared = Text(text)
        spans: list[Span] = []
        for rule in {**self._open, **dict.fromkeys(self._rules.choose(shared))}:
            windows = rule.windows(shared)
            if windows or rule in self._open:
                self._apply(rule, shared, (settled, limit, final), windows, spans)
        spans.sort()
        return spans

    def _apply(
        self,
        rule: Rule,
        text: Text,
        bounds: tuple[int, int, bool],
        windows: Sequence[tuple[int, int]],
        spans: list[Span],
    ) -> None:
        position = max(0, self._positions.get(rule, 0))
        if rule in self._open:
            begin, tail = self._open.pop(rule)
            position = self._follow(rule, tail, (text.plain, begin, bounds[2]))
            spans.append((begin, position, ""))
        for start, end in windows:
            if rule in self._open:
                break
            position, pending = self._search(rule, text, bounds, (max(position, start), end), spans)
            if pending:
                break
        self._positions[rule] = position

    def _search(
        self,
        rule: Rule,
        text: Text,
        bounds: tuple[int, int, bool],
        window: tuple[int, int],
        spans: list[Span],
    ) -> tuple[int, bool]:
        """Find the secrets of one window: where to go on, and whether a place is not settled."""
        settled, limit, final = bounds
        position, stop = window
        haystack = text.lowered if rule.folded else text.plain
        search = rule.pattern.match if rule.in_runs else rule.pattern.search
        while found := search(haystack, position, stop):
            anchor = (
                found.start("secret") if rule.in_runs else found.start() if rule.at_start else found.end()
            )
            if anchor >= limit and not final:
                return position, True
            decision = self._decide(rule, text.plain, found, anchor) if anchor >= settled else None
            if decision is None:
                position = max(found.end(), position + 1)
                continue
            start, end, tail, replacement = decision
            position = anchor + end
            if tail is not None:
                position = self._follow(rule, tail, (text.plain, position, final))
            spans.append((anchor + start, position, replacement))
            if rule in self._open:
                break
        return position, False

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
        decision = rule.decide(before, ahead, ends) or _decide_escaped(rule.decide, before, ahead, ends)
        if (
            decision is None or decision[2] is None or isinstance(decision[2], RunTail)
        ):  # the others have state
            self._memory[key] = decision
        return decision


def _decide_escaped(decide: Decide, before: str, ahead: str, ends: bool) -> Decision | None:
    """Decide as if the text had no line numbers and stood in no string of JSON, or in one within one."""
    places = list(range(len(ahead) + 1))
    level = 0
    for _ in range(_LEVELS):
        found = _ESCAPE.search(ahead) or _ESCAPE.search(before)
        if found is None:
            return None
        level += "\\" in ahead or "\\" in before
        before = _ESCAPE.sub(_unescape, before)
        ahead, places = _unescape_ahead(ahead, places)
        decision = decide(before, ahead, ends)
        if decision is not None:
            start, end, tail, replacement = decision
            return places[start], places[end], tail and tail.inside(level), replacement
    return None


def _unescape(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1]) if escape[1] else ""


def _unescape_ahead(ahead: str, places: list[int]) -> tuple[str, list[int]]:
    """The text without one level of escapes, and where each of its characters stands in the original."""
    pieces: list[str] = []
    kept: list[int] = []
    position = 0
    for escape in _ESCAPE.finditer(ahead):
        pieces += (ahead[position : escape.start()], _unescape(escape))
        kept += (*places[position : escape.start()], places[escape.start()])
        position = escape.end()
    return "".join((*pieces, ahead[position:])), kept + places[position:]


_LEVELS = 3
_ESCAPE = re.compile(
    r"\\([\"'\\nrt])|\r(?=\n)"
    r"|(?<=\n)(?:[+> ]{0,6}\d{1,6}[\t→]|[+>](?=[ \w\"'<-])|[\w./-]{1,60}:\d{1,6}:|[\w.-]{1,24} {1,4}\| )"
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
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
