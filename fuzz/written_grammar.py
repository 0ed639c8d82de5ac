"""The grammar that docs/permissions.md writes down, as a generator of shell texts.

Rules are alternatives of sequences; `[…]` is optional, `{…}` repeats, `/…/` is a regular expression of simple
characters. Texts grow shallow: past a depth the shortest alternative is taken.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "permissions.md"
_BLOCK = re.compile(r"```grammar\n(.*?)```", re.DOTALL)
_RULE = re.compile(r"^(\w+) *= (.*(?:\n +\|.*)*)", re.MULTILINE)
_TOKEN = re.compile(r""" *("[^"]*"|'[^']*'|/(?:\\.|[^/\\])+/|\w+|[|()\[\]{}])""")
_REGEX_UNIT = re.compile(
    r"(\((?:\\.|\[(?:\\.|[^\]\\])*\]|[^()\\])*\)|\[(?:\\.|[^\]\\])*\]|\\.|[^()\[\]*+?|])([*+?]?)", re.DOTALL
)
_RESERVED = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "in", "time",
})  # fmt: skip

Maker = Callable[[random.Random, int], str]


def read_page() -> dict[str, str]:
    """The rules of the page by name."""
    block = _BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert block is not None, "docs/permissions.md has no grammar"
    return dict(_RULE.findall(block.group(1)))


class Grammar:
    """Texts of each rule of the page; `depth` bounds how far a rule goes on."""

    def __init__(self, deepest: int = 10) -> None:
        self._deepest = deepest
        self.makers: dict[str, Maker] = {}
        for name, body in read_page().items():
            self.makers[name] = self._read_rule(body)

    def make(self, rng: random.Random, rule: str = "script") -> str:
        return self.makers[rule](rng, 0)

    def _read_rule(self, body: str) -> Maker:
        tokens = _TOKEN.findall(body)
        maker, rest = self._read_choice(tokens)
        assert not rest, f"not understood in the grammar: {rest}"
        return maker

    def _read_choice(self, tokens: list[str]) -> tuple[Maker, list[str]]:
        choices: list[Maker] = []
        while True:
            sequence, tokens = self._read_sequence(tokens)
            choices.append(sequence)
            if tokens[:1] != ["|"]:
                break
            tokens = tokens[1:]

        def choose(rng: random.Random, depth: int) -> str:
            return (choices[0] if depth > self._deepest else rng.choice(choices))(rng, depth)

        return choose, tokens

    def _read_sequence(self, tokens: list[str]) -> tuple[Maker, list[str]]:
        makers: list[Maker] = []
        while tokens and tokens[0] not in ("|", ")", "]", "}"):
            maker, tokens = self._read_item(tokens)
            makers.append(maker)
        return lambda rng, depth: "".join(maker(rng, depth) for maker in makers), tokens

    def _read_item(self, tokens: list[str]) -> tuple[Maker, list[str]]:
        token, tokens = tokens[0], tokens[1:]
        if token in ("(", "[", "{"):
            inner, tokens = self._read_choice(tokens)
            assert tokens[0] == {"(": ")", "[": "]", "{": "}"}[token]
            return _repeat(
                inner, {"(": (1,), "[": (0, 1), "{": (0, 0, 0, 1, 2)}[token], self._deepest
            ), tokens[1:]
        if token[0] in "\"'":
            return lambda rng, depth: token[1:-1], tokens
        if token[0] == "/":
            return lambda rng, depth: make_match(rng, token[1:-1]), tokens
        return lambda rng, depth: self._make_rule(rng, token, depth + 1), tokens

    def _make_rule(self, rng: random.Random, name: str, depth: int) -> str:
        text = self.makers[name](rng, depth)
        while name == "program" and text in _RESERVED:
            text = self.makers[name](rng, depth)
        return text


def _repeat(inner: Maker, times_made: tuple[int, ...], deepest: int) -> Maker:
    def repeat(rng: random.Random, depth: int) -> str:
        times = times_made[0] if depth > deepest else rng.choice(times_made)
        return "".join(inner(rng, depth) for _ in range(times))

    return repeat


def make_match(rng: random.Random, expression: str) -> str:
    """A text that a regular expression of literals, classes, groups and repetitions matches."""
    alternatives = _split_alternatives(expression)
    if len(alternatives) > 1:
        return make_match(rng, rng.choice(alternatives))
    made = []
    for unit, repetition in _units(expression):
        least, most = {"": (1, 1), "?": (0, 1), "*": (0, 5), "+": (1, 5)}[repetition]
        made += [_make_unit(rng, unit) for _ in range(rng.randint(least, most))]
    return "".join(made)


@cache
def _units(expression: str) -> list[tuple[str, str]]:
    return _REGEX_UNIT.findall(expression)


@cache
def _split_alternatives(expression: str) -> list[str]:
    found, depth, start = [], 0, 0
    for unit in re.finditer(r"\\.|\[(?:\\.|[^\]\\])*\]|.", expression, re.DOTALL):
        depth += (unit.group() == "(") - (unit.group() == ")")
        if unit.group() == "|" and not depth:
            found.append(expression[start : unit.start()])
            start = unit.end()
    return [*found, expression[start:]]


def _make_unit(rng: random.Random, unit: str) -> str:
    if unit[0] == "(":
        return make_match(rng, unit[1:-1])
    if unit[0] == "[":
        return rng.choice(_members(unit[1:-1]))
    return _unescape(unit)


@cache
def _members(inside: str) -> list[str]:
    found: list[str] = []
    for first, last in re.findall(r"(\\.|[^\\])(?:-(\\.|[^\\]))?", inside, re.DOTALL):
        low, high = ord(_unescape(first)), ord(_unescape(last or first))
        found += [chr(code) for code in range(low, high + 1)]
    return found


def _unescape(text: str) -> str:
    return {"\\n": "\n", "\\t": "\t"}.get(text, text[-1])
