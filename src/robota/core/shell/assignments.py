"""Reading assignments: `name=value`, arrays, elements of arrays."""

from __future__ import annotations

import re

from robota.core.shell.lexer import Reader, ends_word, read_value, read_word
from robota.core.shell.script import Assignment, ShellSyntaxError
from robota.core.shell.tokens import skip_blanks
from robota.core.shell.words import Word

_DECLARATIONS = frozenset({"declare", "typeset", "export", "readonly", "local"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[.*\]\+?=", re.DOTALL)


def read_assignment(reader: Reader, words: list[Word], assignments: list[Assignment]) -> bool:
    """Read `name=value` before the command word, or an array given to a declaration."""
    found = _ASSIGNMENT.match(reader.src, reader.pos)
    if found is None:
        return _read_element(reader, words, assignments) if not words else _read_timed(reader, words)
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
    read = _read_subscripted(reader)
    element = _ELEMENT.match(read[0].raw)
    if element is None:
        words.extend(read)
    else:
        reader.script.evaluates_text = True
        assignments.append(Assignment(element.group(1), None, read[0].raw))
    return True


def _read_timed(reader: Reader, words: list[Word]) -> bool:
    """After the keyword `time`, words are read as at the beginning of a command."""
    if words[0].raw != "time" or not (words[-1].text in ("time", "-p", "--") or "=" in words[-1].text):
        return False
    words.extend(_read_subscripted(reader))
    return True


def _read_subscripted(reader: Reader, *, in_array: bool = False) -> list[Word]:
    """A word that may begin with a subscript: bash reads on to its bracket over blanks and operators."""
    read = read_word(reader)
    if _SUBSCRIPTED.match(read[0].raw) or (in_array and read[0].raw.startswith("[")):
        pieces = read[0].pieces or (("text", read[0].text, False),)
        unquoted = "".join(text for kind, text, quoted in pieces if kind == "text" and not quoted)
        if not _closes(unquoted):
            raise ShellSyntaxError("a subscript holds blanks or operators")
    return read


def _closes(text: str) -> bool:
    """Whether the first bracket is closed; brackets nest."""
    depth = 0
    for character in text[text.index("[") :]:
        depth += (character == "[") - (character == "]")
        if depth == 0:
            return True
    return False


def _read_array(reader: Reader) -> None:
    while True:
        skip_blanks(reader, lines=True)
        if reader.peek() == ")":
            reader.pos += 1
            break
        if reader.peek() == "[":
            reader.script.evaluates_text = True
        _read_subscripted(reader, in_array=True)
    if not ends_word(reader.src, reader.pos):
        raise ShellSyntaxError("text follows the parenthesis of an array")
