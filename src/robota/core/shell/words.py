"""One word of a shell command: its text after quote removal, and which pieces are only known when it runs."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

PieceKind: TypeAlias = Literal["text", "variable", "substitution", "arithmetic"]
Piece: TypeAlias = tuple[PieceKind, str, bool]
"""Kind, text as written (a variable's own name), quoted."""

# Marks inside `Word.key`: control characters, since a command that holds such characters is never allowed.
QUOTED_BLANK = "\x1f"
COMPUTED = "\x1e"
LIVE = "\x1c"

MAXIMUM_BRACE_WORDS = 256
MAXIMUM_BRACE_LENGTH = 4_000
MAXIMUM_BRACES = 32

_LIVE_CHARACTERS = re.compile(r"([?\[])")


class Word(Struct, frozen=True):
    text: str
    """After quote removal; an expansion stays as written."""
    raw: str
    key: str
    """`text` with marks that keep apart what quoting keeps apart: `a b` and `"a b"`, `$x` and `'$x'`."""
    pieces: tuple[Piece, ...] = ()
    """Empty for a plain literal word."""
    expanded: bool = False
    """Whether it is one of the words of a brace expansion."""

    @property
    def computed(self) -> bool:
        """Whether an expansion decides the value."""
        return any(piece[0] != "text" for piece in self.pieces)

    @property
    def globbed(self) -> bool:
        return any(kind == "text" and not quoted and has_glob(text) for kind, text, quoted in self.pieces)

    @property
    def literal(self) -> bool:
        """Whether the value is exactly `text`."""
        return not self.pieces or not (self.computed or self.globbed)

    @property
    def tilde(self) -> bool:
        return self.raw.startswith("~")

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(text for kind, text, _ in self.pieces if kind == "variable")


def plain_word(text: str) -> Word:
    return Word(text, text, text)


UNKNOWN_WORD = Word("…", "…", COMPUTED + "…", (("substitution", "…", False),))
"""Stands for arguments that arrive at run time (`xargs`, `find -exec {}`)."""


def build_words(pieces: list[Piece], raw: str) -> list[Word]:
    """The words that one written word becomes: brace expansion can make several."""
    if any(kind == "text" and not quoted and "{" in text for kind, text, quoted in pieces):
        expanded = _expand_braces(pieces)
        if len(expanded) != 1 or expanded[0] != pieces:
            # Only the first carries the source, so that joining the words' sources gives it again.
            return [
                build_word(each, "" if index else raw, expanded=True) for index, each in enumerate(expanded)
            ]
    return [build_word(pieces, raw)]


def build_word(pieces: list[Piece], raw: str, *, expanded: bool = False) -> Word:
    text = "".join(piece[1] if piece[0] == "text" else _show(piece) for piece in pieces)
    key = "".join(_key(piece) for piece in pieces)
    if raw.startswith("~"):
        key = LIVE + key
    return Word(text, raw, key, tuple(pieces), expanded)


def _show(piece: Piece) -> str:
    return "$" + piece[1] if piece[0] == "variable" else piece[1]


def _key(piece: Piece) -> str:
    kind, text, quoted = piece
    if kind != "text":
        return COMPUTED + _show(piece)
    text = text.replace(" ", QUOTED_BLANK)
    return text if quoted else _LIVE_CHARACTERS.sub(LIVE + r"\1", text)


def has_glob(text: str) -> bool:
    """Whether the shell would look for files that an unquoted text names."""
    return "*" in text or "?" in text or ("[" in text and "]" in text)


_Unit: TypeAlias = tuple[PieceKind, str, bool]


def _expand_braces(pieces: list[Piece]) -> list[list[Piece]]:
    """`a{b,c}` as bash expands it; past the limit the word counts as computed, never as plain text."""
    units: list[_Unit] = []
    for kind, text, quoted in pieces:
        if kind == "text" and not quoted:
            units.extend((kind, character, quoted) for character in text)
        else:
            units.append((kind, text, quoted))
    if len(units) > MAXIMUM_BRACE_LENGTH or units.count(("text", "{", False)) > MAXIMUM_BRACES:
        return [[("substitution", "{…}", False)]]
    pending, done = [units], list[list[_Unit]]()
    while pending:
        current = pending.pop(0)
        group = _find_group(current)
        if group is None:
            done.append(current)
        else:
            start, end, choices = group
            pending = [current[:start] + choice + current[end:] for choice in choices] + pending
        if len(pending) + len(done) > MAXIMUM_BRACE_WORDS:
            return [[("substitution", "{…}", False)]]
    return [_join_units(each) for each in done]


def _is(unit: _Unit, character: str) -> bool:
    return unit == ("text", character, False)


def _find_group(units: list[_Unit]) -> tuple[int, int, list[list[_Unit]]] | None:
    for start, unit in enumerate(units):
        if _is(unit, "{") and not (start and units[start - 1] == ("text", "$", False)):
            found = _read_group(units, start)
            if found is not None:
                return (start, *found)
    return None


def _read_group(units: list[_Unit], start: int) -> tuple[int, list[list[_Unit]]] | None:
    depth, choices, choice = 0, list[list[_Unit]](), list[_Unit]()
    for index in range(start + 1, len(units)):
        unit = units[index]
        if _is(unit, "}") and depth == 0:
            if choices:
                return index + 1, [*choices, choice]
            return _read_sequence(choice, index + 1)
        if _is(unit, ",") and depth == 0:
            choices.append(choice)
            choice = []
            continue
        depth += _is(unit, "{") - _is(unit, "}")
        choice.append(unit)
    return None


def _read_sequence(units: list[_Unit], end: int) -> tuple[int, list[list[_Unit]]] | None:
    text = "".join(unit[1] for unit in units)
    if ".." not in text or any(unit[0] != "text" for unit in units):
        return None
    return end, [[("arithmetic", "{" + text + "}", False)]]


def _join_units(units: list[_Unit]) -> list[Piece]:
    joined: list[Piece] = []
    for kind, text, quoted in units:
        if joined and kind == "text" and joined[-1][0] == "text" and joined[-1][2] == quoted:
            joined[-1] = ("text", joined[-1][1] + text, quoted)
        else:
            joined.append((kind, text, quoted))
    return joined
