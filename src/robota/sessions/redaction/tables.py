"""Secrets in the cells of tables, under a heading that names them: CSV, tabs, Markdown, what databases print.

A cell is judged by the heading of its column as long as that stands within the stretch a rule may look back.
"""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.sessions.redaction.names import Strength, name_strength
from robota.sessions.redaction.rules import BEHIND, Decision, Rule, take
from robota.sessions.redaction.values import (
    is_code,
    is_dashed,
    is_path,
    is_stand_in,
    looks_chosen,
    looks_issued,
    repeats_name,
)


def _cell(before: str, ahead: str, _ends: bool) -> Decision | None:
    *lines, row = before.split("\n")
    if len(before) >= BEHIND:
        del lines[:1]  # it may have been cut
    lines = [line for line in lines if not _RULER.fullmatch(line)]
    rest = ahead.partition("\n")[0]
    if lines and _GAP.search(lines[-1]) and _delimiter(lines[-1]) is None:  # columns of blanks
        row, rest = _GAP.sub("\t", row.lstrip()), _GAP.sub("\t", rest.rstrip())
        lines = [_GAP.sub("\t", line.strip()) for line in lines]
    if not lines or (delimiter := _delimiter(lines[-1])) is None:
        return None
    width, heading = lines[-1].count(delimiter), ""
    for line in reversed(lines):
        if line.count(delimiter) != width:
            break
        heading = line
    if row.count(delimiter) + rest.count(delimiter) != width or heading.rstrip()[-1:] == ",":
        return None
    names = [cell.strip(" \t\r\"'`*") for cell in _OPENING.sub("", heading).split(delimiter)]
    column = row.count(delimiter)
    if column >= len(names) or not all(map(_HEADING.fullmatch, names)):
        return None
    return _judge(names[column], ahead)


def _delimiter(line: str) -> str | None:
    return next((sign for sign in "\t|│;," if sign in line), None)


def _judge(name: str, ahead: str) -> Decision | None:
    found, strength = _VALUE.match(ahead), _IN_TABLES.get(name.lower(), name_strength(name))
    if found is None or strength is Strength.NONE:
        return None
    secret = found["secret"]
    if is_stand_in(secret) or is_code(secret) or is_path(secret) or repeats_name(name, secret):
        return None
    stated = looks_issued(secret) if strength is Strength.WEAK else looks_chosen(secret) or is_dashed(secret)
    return take(found) if stated else None


_OPENING = lazy_pattern(r"^.*[:=(\[] ?\\*[\"'`](?=\w)")
"""The string of JSON or of a program that a table stands in."""
_IN_TABLES = {"pass": Strength.TEXT, "secret": Strength.WEAK}
"""A column `secret` may list names of secrets."""
_GAP = lazy_pattern(r" {2,}")
_RULER = lazy_pattern(r"[\s|│+:=─-╿-]*")
_HEADING = lazy_pattern(r"(?:[\w.#/-]{1,40}(?: [\w.#/-]{1,24}){0,2})?")
_VALUE = lazy_pattern(r"(?P<secret>[^\s,;|│\"'`\\]+)(?=\\*[\"'`]| {2}|[ \t]*(?:[,;|│\t\r\n]|\Z))")


class CellPattern:
    """Finds the cells that stand near behind a heading that ends in this name."""

    __slots__ = ("_heading",)

    def __init__(self, name: str) -> None:
        self._heading = lazy_pattern(
            rf"{name}[\"'`*]{{0,3}}+[ \t]{{0,24}}+(?:[,;|│\r\n]|(?<=\t)|(?<=  )|\\[nrt\"])"
        )

    def search(self, text: str, position: int, stop: int, /) -> re.Match[str] | None:
        heading = self._heading.search(text, max(0, position - BEHIND), stop)
        while heading is not None:
            end = heading.end() - 1
            near = min(stop, end + BEHIND)
            if near > position and (found := _NEXT.search(text, max(position, end), near)):
                return found
            heading = self._heading.search(text, heading.end(), stop)
        return None


_NEXT = lazy_pattern(r"(?:[\n,;\t|│]| {2}|\\[nt])[ \t]{0,20}\\{0,3}[\"'`]?(?=[^\s,;|│\"'`-])")

TABLES: tuple[Rule, ...] = tuple(
    Rule(literal, CellPattern(literal + rest), _cell, needs=(need,), folded=True)
    for literal, rest, need in (
        ("pass", "(?:w(?:or)?d|phrase)?", "pass"),
        ("pwd", "", "pw"),
        ("secret", "(?:_?key)?", "secret"),
        ("token", "", "token"),
        ("api", "[_ -]?key", "key"),
    )
)
