"""What a word with variables stands for, where the command itself says what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from robota.core.shell.expansions import names_set_by_commands
from robota.core.shell.invocations import Invocation
from robota.core.shell.script import Piece, Script, Word, build_word, plain_word

_EMPTY = plain_word("")
_MAXIMUM_VALUES = 24
"""Of the words that variables make of one word, as many are looked at."""


def find_values(word: Word, script: Script, every: Sequence[Invocation]) -> dict[Word, bool]:
    """The words that loops and assignments make of it, and whether they surely do: a variable may be empty
    where it was not set yet, or for others only. None when not all are known."""
    names = dict.fromkeys(text for kind, text, _ in word.pieces if kind == "variable")
    if not names or any(kind not in ("text", "variable") for kind, _, _ in word.pieces):
        return {}
    values = [_known_values(name, script, every) for name in names]
    if not all(values) or prod(len(each) + 1 for each in values) > _MAXIMUM_VALUES:
        return {}
    made: dict[Word, bool] = {}
    for each in product(*([*known, _EMPTY] for known in values)):
        value = _fill_in(word, dict(zip(names, each, strict=True)))
        if value is None:
            return {}
        if value.text:
            made.setdefault(value, _EMPTY not in each)
    return made


def _known_values(name: str, script: Script, every: Sequence[Invocation]) -> list[Word]:
    set_names = names_set_by_commands(script)
    if name in set_names or "*" in set_names or any(each.scripts for each in every):
        return []
    values = script.assigned.get(name, [])
    return [] if any(value.computed for value in values) else values


def _fill_in(word: Word, values: dict[str, Word]) -> Word | None:
    """The word with its variables filled in; None where bash would do more with a value."""
    written = [piece for piece in word.pieces if piece[1]]
    if len(written) == 1 and written[0][2]:
        return values[written[0][1]]
    pieces: list[Piece] = []
    for kind, text, quoted in word.pieces:
        if kind != "variable":
            pieces.append((kind, text, quoted))
            continue
        value = values[text]
        plain = value.literal and set(value.text).isdisjoint(" \t\n*?[")
        if value.tilde or not (quoted or plain):
            return None
        pieces += value.pieces or [("text", value.text, True)]
    return build_word(pieces, word.raw)
