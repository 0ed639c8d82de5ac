"""Reading assignments: `name=value`, arrays, elements of arrays."""

from __future__ import annotations

import re

from robota.core.permissions.lexer import Reader, read_value, read_word
from robota.core.permissions.script import Assignment
from robota.core.permissions.tokens import skip_blanks
from robota.core.permissions.words import Word

_DECLARATIONS = frozenset({"declare", "typeset", "export", "readonly", "local"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[.*\]\+?=", re.DOTALL)


def read_assignment(reader: Reader, words: list[Word], assignments: list[Assignment]) -> bool:
    """Read `name=value` before the command word, or an array given to a declaration."""
    found = _ASSIGNMENT.match(reader.src, reader.pos)
    if found is None:
        return not words and _read_element(reader, words, assignments)
    array = reader.src.startswith("(", found.end())
    if words and not (array and words[0].text in _DECLARATIONS):
        return False
    start = reader.pos
    reader.pos = found.end()
    value = None if array else read_value(reader)
    if array:
        reader.pos += 1
        _read_array(reader)
    raw = reader.src[start : reader.pos]
    if words:
        words.append(Word(found.group() + "(…)", raw, raw))
    else:
        assignments.append(Assignment(found.group(1), value, raw))
    return True


def _read_element(reader: Reader, words: list[Word], assignments: list[Assignment]) -> bool:
    """A word that turns out to be `name[subscript]=value`; any other word is kept as a word."""
    read = read_word(reader)
    element = _ELEMENT.match(read[0].raw)
    if element is None:
        words.extend(read)
    else:
        reader.script.evaluates_text = True
        assignments.append(Assignment(element.group(1), None, read[0].raw))
    return True


def _read_array(reader: Reader) -> None:
    while True:
        skip_blanks(reader, lines=True)
        if reader.peek() == ")":
            reader.pos += 1
            return
        read_word(reader)
