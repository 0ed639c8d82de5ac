"""The paths that a word of a shell command names, with `*`, `?` and brackets matched against the disk.

In doubt more is found than bash would find: a bracket stands for any text.
"""

from __future__ import annotations

import os
import re
from typing import TypeAlias

from robota.core.shell.effects import known_path, substitute
from robota.core.shell.script import Word

_Letter: TypeAlias = tuple[str, bool]
"""A character, and whether it may be part of a pattern."""


def expand_word(word: Word, directory: str | None, home: str, assigned: frozenset[str]) -> list[str] | None:
    """Absolute paths; None when only the running command knows."""
    word = substitute(word, directory, home, assigned)
    if not word.globbed or word.computed:
        path = known_path(word, directory, home, assigned)
        return None if path is None else [path]
    letters = _letters(word, home)
    if letters is None or (directory is None and letters[0][0] != "/"):
        return None
    if letters[0][0] != "/":
        letters = [*((letter, False) for letter in f"{directory}/"), *letters]
    literal = "".join(letter for letter, _ in letters)
    return [*_match(_split(letters)), literal]  # a pattern that matches nothing stands for itself


def _letters(word: Word, home: str) -> list[_Letter] | None:
    letters = [(letter, not quoted) for _, text, quoted in word.pieces for letter in text]
    if not word.tilde:
        return letters
    if "".join(letter for letter, _ in letters[:2]) != "~/":
        return None
    return [*((letter, False) for letter in home), *letters[1:]]


def _split(letters: list[_Letter]) -> list[list[_Letter]]:
    parts: list[list[_Letter]] = [[]]
    for letter in letters:
        if letter[0] == "/":
            parts.append([])
        else:
            parts[-1].append(letter)
    return [part for part in parts if part]


def _match(parts: list[list[_Letter]]) -> list[str]:
    found = ["/"]
    for part in parts:
        if any(active and letter in "*?[" for letter, active in part):
            found = [path for folder in found for path in _match_names(folder, part)]
        else:
            name = "".join(letter for letter, _ in part)
            found = [path for folder in found if os.path.lexists(path := os.path.join(folder, name))]
    return found


def _match_names(folder: str, part: list[_Letter]) -> list[str]:
    pattern = re.compile(_translate(part), re.DOTALL)
    hidden = part[0][0] == "."
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if pattern.fullmatch(name) and (hidden or not name.startswith("."))
    ]


def _translate(part: list[_Letter]) -> str:
    first = next((at for at, letter in enumerate(part) if letter == ("[", True)), len(part))
    last = max((at for at, letter in enumerate(part) if letter[0] == "]"), default=-1)
    if first < last:
        return _translate(part[:first]) + ".*" + _translate(part[last + 1 :])
    patterns = {"*": ".*", "?": "."}
    return "".join(
        patterns.get(letter, re.escape(letter)) if active else re.escape(letter) for letter, active in part
    )
