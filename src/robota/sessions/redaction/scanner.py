"""Finds the secrets of a text that is whole or still arriving, and writes the text without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.commands import COMMANDS
from robota.sessions.redaction.file_lines import FILE_LINES
from robota.sessions.redaction.http import HTTP
from robota.sessions.redaction.links import NAMED
from robota.sessions.redaction.rules import (
    AHEAD,
    BEHIND,
    REDACTED,
    Decide,
    Decision,
    Rule,
    RunTail,
    Tail,
)
from robota.sessions.redaction.tokens import PRIVATE_KEYS, RUN_TOKENS, SHORTEST_RUN, TOKENS, find_runs

if TYPE_CHECKING:
    from robota.sessions.redaction.redactor import Redactor

Span: TypeAlias = tuple[int, int, str]
_Window: TypeAlias = tuple[int, int]

_BY_NEED: dict[str, set[Rule]] = {}
for _rule in (*TOKENS, *PRIVATE_KEYS, *HTTP, *NAMED, *COMMANDS, *FILE_LINES):
    for _need in _rule.needs:
        _BY_NEED.setdefault(_need, set()).add(_rule)
_ALL_NEEDS = tuple(
    (need, lazy_pattern(re.escape(need)) if len(need) > 1 else None, rules)
    for need, rules in _BY_NEED.items()
)
_NEEDS = tuple(need for need in _ALL_NEEDS if need[0].isascii())
"""What a text must hold, and for which rules. A search for each of these is all that most texts cost: they
are few, and one alternation of them all would take longer."""
_LONG = 1000
"""In longer texts a pattern finds a literal of several characters faster than `in` does."""
_WORTHWHILE = 300_000
"""Characters of long texts before which compiling those patterns costs more than they save: a program that
asks one question has fewer."""
_searched = [0]


class _Look(Struct):
    """One look at a text, whole or as far as it arrived, and the spans that were found."""

    plain: str
    lowered: str
    settled: int = 0
    """Places before this one were decided at an earlier look."""
    final: bool = True
    spans: list[Span] = []


def _find_candidates(lowered: str, own: Sequence[Rule], *, is_long: bool) -> set[Rule]:
    """The rules whose text must hold something that this one holds."""
    found = set(own)
    needs = _NEEDS if lowered.isascii() else _ALL_NEEDS
    if is_long:
        for need, pattern, rules in needs:
            if pattern.search(lowered) if pattern else need in lowered:
                found |= rules
        return found
    for need, _, rules in needs:  # without a question about length: this is most of what a text costs
        if need in lowered:
            found |= rules
    return found


def _choose_rules(plain: str, own: Sequence[Rule]) -> tuple[str, dict[Rule, Sequence[_Window]]]:
    """The text in lower case, and the rules that could match in it, each with the stretches where."""
    lowered = plain.lower()
    if len(lowered) != len(plain):  # one letter becomes two
        lowered = plain.replace("İ", "i").lower()
    is_long = len(plain) > _LONG and _searched[0] > _WORTHWHILE
    if not is_long:
        _searched[0] += len(plain)
    chosen: dict[Rule, Sequence[_Window]] = {}
    whole = ((0, len(plain)),)
    for rule in _find_candidates(lowered, own, is_long=is_long):
        if is_long or rule.holds in (lowered if rule.folded else plain):
            chosen[rule] = whole
    if len(plain) >= SHORTEST_RUN and (runs := find_runs(plain)):
        for rule in RUN_TOKENS:
            if rule.holds in plain:
                chosen[rule] = runs
    return lowered, chosen


def may_match(plain: str, own: Sequence[Rule] = ()) -> bool:
    """Whether any rule's pattern matches, which says nothing yet about a secret; much cheaper than a scan."""
    lowered, chosen = _choose_rules(plain, own)
    for rule, windows in chosen.items():
        haystack = lowered if rule.folded else plain
        for start, stop in windows:
            if rule.pattern.search(haystack, start, stop):
                return True
    return False


def redact_text(plain: str, own: Sequence[Rule]) -> str:
    """A whole text; the same object if nothing in it is secret. `own` are rules for secrets that we hold."""
    lowered, chosen = _choose_rules(plain, own)
    spans = Scanner(own).apply(_Look(plain, lowered), chosen) if chosen else None
    return _write(plain, 0, len(plain), _merge([], spans)) if spans else plain


class Scanner(Struct, eq=False):
    """Applies the rules to a text. `scan` may be called again when the text grew or lost its beginning."""

    _own: Sequence[Rule]
    _positions: dict[Rule, int] = {}
    _open: dict[Rule, tuple[int, Tail]] = {}
    _memory: dict[tuple[Rule, str, str, bool], Decision | None] = {}

    @property
    def is_open(self) -> bool:
        """Whether the end of the text is inside a secret."""
        return bool(self._open)

    def cut(self, length: int) -> None:
        """Tell that the text lost its first `length` characters."""
        self._positions = {rule: position - length for rule, position in self._positions.items()}
        self._open = {rule: (end - length, tail) for rule, (end, tail) in self._open.items()}

    def scan(self, plain: str, *, settled: int, final: bool) -> list[Span]:
        """The spans whose place lies at or after `settled`, and those that an open secret reaches now."""
        lowered, chosen = _choose_rules(plain, self._own)
        look = _Look(plain, lowered, settled=settled, final=final)
        return self.apply(look, {**dict.fromkeys(self._open, ()), **chosen})

    def apply(self, look: _Look, chosen: Mapping[Rule, Sequence[_Window]]) -> list[Span]:
        """The spans that these rules find in their windows, in order."""
        plain, lowered = look.plain, look.lowered
        positions, still_open = self._positions, self._open
        for rule, windows in chosen.items():
            position = positions.get(rule, 0)
            if still_open and rule in still_open:
                begin, tail = still_open.pop(rule)
                positions[rule] = position = self._follow(rule, tail, look, begin)
                look.spans.append((begin, position, ""))
                if rule in still_open:
                    continue
            haystack = lowered if rule.folded else plain
            for start, stop in windows:
                found = rule.pattern.search(haystack, max(start, position), stop)
                if found is not None:
                    position, pending = self._settle(rule, look, found, stop)
                    positions[rule] = position
                    if pending or rule in still_open:
                        break
        look.spans.sort()
        return look.spans

    def _settle(self, rule: Rule, look: _Look, found: re.Match[str] | None, stop: int) -> tuple[int, bool]:
        """Decide about this place and the next ones: where to go on, and whether one waits for more text."""
        position = 0
        while found is not None:
            anchor = found.start() if rule.at_start else found.end()
            if not look.final and anchor >= len(look.plain) - AHEAD:  # it needs more text
                return found.pos, True
            decision = self._decide(rule, look.plain, found, anchor) if anchor >= look.settled else None
            if decision is None:
                position = max(found.end(), found.pos + 1)
            else:
                start, end, tail, replacement = decision
                position = anchor + end
                if tail is not None:
                    position = self._follow(rule, tail, look, position)
                look.spans.append((anchor + start, position, replacement))
                if rule in self._open:
                    break
            found = rule.pattern.search(found.string, position, stop)
        return position, False

    def _follow(self, rule: Rule, tail: Tail, look: _Look, position: int) -> int:
        end, is_open = tail.consume(look.plain, position, final=look.final)
        if is_open:
            self._open[rule] = (end, tail)
        return end

    def _decide(self, rule: Rule, text: str, found: re.Match[str], anchor: int) -> Decision | None:
        if rule.decide is None:
            return (0, found.end() - anchor, rule.tails.get(found.lastgroup or "", rule.tail), REDACTED)
        before = text[max(0, anchor - BEHIND) : anchor]
        ahead = text[anchor : anchor + AHEAD]
        ends = anchor + AHEAD > len(text)
        key = (rule, before, ahead, ends)
        if key in self._memory:
            return self._memory[key]
        if len(self._memory) >= _MEMORY:
            self._memory.clear()
        decision = rule.decide(before, ahead, ends) or _decide_escaped(rule.decide, before, ahead, ends)
        if decision is None or decision[2] is None or isinstance(decision[2], RunTail):  # others have state
            self._memory[key] = decision
        return decision


_MEMORY = 256
"""Decisions kept during one scan: text that repeats itself is decided once."""


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
        meaning = _unescape(escape)
        pieces += (ahead[position : escape.start()], meaning)
        kept += places[position : escape.start()]
        kept += places[escape.start() : escape.start() + len(meaning)]
        position = escape.end()
    return "".join((*pieces, ahead[position:])), kept + places[position:]


_LEVELS = 3
_ESCAPE = lazy_pattern(
    r"\\([\"'\\nrt])|\r(?=\n)"
    r"|(?<=\n)(?:[+> ]{0,6}\d{1,6}[\t→]|[+>](?=[ \w\"'<-])|[\w./-]{1,60}:\d{1,6}:|[\w.-]{1,24} {1,4}\| )"
)
_ESCAPED: Mapping[str, str] = {"n": "\n", "r": "\r", "t": "\t"}


def _merge(spans: list[Span], news: Iterable[Span]) -> list[Span]:
    """Add spans that lie behind; those that touch or overlap become one."""
    for start, end, replacement in news:
        if spans and start <= spans[-1][1]:
            first, last, text = spans[-1]
            spans[-1] = (first, max(last, end), text)
        else:
            spans.append((start, end, replacement))
    return spans


def _write(text: str, begin: int, end: int, spans: list[Span]) -> str:
    """A piece of a text: a replacement stands where its secret began. Spans that end there are dropped."""
    parts: list[str] = []
    position, done = begin, 0
    for start, stop, replacement in spans:
        if start >= end:
            break
        if start >= begin:
            parts += (text[position:start], replacement)
        position = max(position, min(stop, end))
        done += stop < end
    del spans[:done]
    return "".join((*parts, text[position:end]))


def _beginnings(text: str, own: Sequence[Rule]) -> Iterator[int]:
    """The lengths of what may be the beginning of a secret, at the end of a text: an unbroken word, some
    words of one that we hold, two lines that a rule has an eye on. Letters beyond ASCII break a word: there
    are scripts without spaces."""
    word = len(text)
    while word and "!" <= text[word - 1] <= "~":
        word -= 1
    yield len(text) - word
    lines = text.rfind("\n", 0, max(text.rfind("\n"), 0)) + 1
    if _BEFORE_A_SECRET.search(text, lines) or may_match(text[lines:], own):
        yield len(text) - lines
    row = text.rfind("\n") + 1
    if "|" in text[row:] or "│" in text[row:]:  # of a table: its heading, far above, may tell what a cell is
        yield len(text) - row
    for rule in own:
        known = rule.holds[:-1]
        yield from (length for length in range(1, len(known) + 1) if text.endswith(known[:length]))


_BEFORE_A_SECRET = lazy_pattern(r"\b(?:echo|printf)\b|-----? ?BEGIN|value *[=:]|(?i:mnemonic|seed.phrase)")
"""What stands before a secret that only the words behind it betray."""
_STRIDE = 96
"""How much new text is worth a scan; with `AHEAD` it makes the 256 characters that may be held back."""
_CONTEXT = 2 * BEHIND + AHEAD


class StreamRedactor:
    """One text stream (a reply, or the arguments of one tool call) that arrives in pieces.

    A piece comes back redacted as soon as nothing that follows can change it. For any way of cutting a text
    into pieces, what is taken joins to `redactor.text(whole)`.
    """

    __slots__ = (
        "_begin", "_buffer", "_own", "_pieces", "_scanned", "_scanner", "_settled", "_spans", "_waiting",
    )  # fmt: skip

    def __init__(self, redactor: Redactor) -> None:
        self._own = redactor.own
        self._scanner = Scanner(redactor.own)
        self._pieces: list[str] = []
        self._waiting = 0  # characters that were pushed and not scanned
        self._buffer = ""
        self._begin = 0  # where in the buffer the first held piece begins
        self._scanned = 0  # the number of held pieces that are in the buffer
        self._settled = 0
        self._spans: list[Span] = []  # the first may have begun in a piece that was written

    @property
    def held(self) -> int:
        """Pieces held back now."""
        return len(self._pieces)

    def push(self, piece: str) -> None:
        """Add the next piece."""
        self._pieces.append(piece)
        self._waiting += len(piece)

    def take(self, *, final: bool = False) -> list[str]:
        """The redacted pieces that are safe to write now, in order; all of them if the stream ended."""
        if not self._pieces or (not final and self._waiting < _STRIDE):
            return []
        self._buffer += "".join(self._pieces[self._scanned :])
        self._waiting = 0
        _merge(self._spans, self._scanner.scan(self._buffer, settled=self._settled, final=final))
        self._settled = len(self._buffer) if final else max(self._settled, len(self._buffer) - AHEAD)
        taken = self._release()
        self._scanned = len(self._pieces)
        self._forget()
        return taken

    def tail(self) -> str:
        """What may be seen of the pieces held back, if no more should come: all but the last unbroken word,
        which may yet become a secret, and but a secret that reaches it."""
        if self._scanner.is_open:
            return ""
        text = self._buffer + "".join(self._pieces[self._scanned :])
        found = Scanner(self._own).scan(text, settled=0, final=True)
        spans = _merge([], sorted([*self._spans, *found]))
        word = len(text) - max(_beginnings(text, self._own))
        end = min((start for start, stop, _ in spans if stop >= word), default=word)
        return _write(text, self._begin, end, spans) if end > self._begin else ""

    def _release(self) -> list[str]:
        taken: list[str] = []
        begin, settled = self._begin, self._settled
        for piece in self._pieces:
            end = begin + len(piece)
            if end > settled:
                break
            taken.append(_write(self._buffer, begin, end, self._spans) if self._spans else piece)
            begin = end
        self._begin = begin
        del self._pieces[: len(taken)]
        return taken

    def _forget(self) -> None:
        """Drop text that no decision can look back to."""
        length = self._begin - _CONTEXT
        if length <= _CONTEXT:
            return
        self._buffer = self._buffer[length:]
        self._begin -= length
        self._settled -= length
        self._spans = [(start - length, end - length, text) for start, end, text in self._spans]
        self._scanner.cut(length)
