"""What expansions may turn out to be: options, or several words.

A value from the environment that the command was started in is trusted; one that the command text itself
sets or produces is followed back to where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from robota.core.shell.grammar import parse_shell
from robota.core.shell.hazards import Hazard, find_hazards
from robota.core.shell.programs import load_programs
from robota.core.shell.script import Command, Piece, Script, ShellSyntaxError, Word, plain_word

_DEFAULT = re.compile(r"\$\{[A-Za-z0-9_@*]+(?:\[[^\]]*\])?:?[-+=?](.*)\}\Z", re.DOTALL)
_QUOTES = str.maketrans("", "", "'\"\\")
_SPLIT = "\0"
_BLANKS = re.compile(r"\s+")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[@*0-9])(\[[@*0-9]+\])?(:?[-=+])?(.?)")
_POSITIONAL = frozenset("@*123456789")
_CONSUMER_WORDS = 16  # enough to know the program and its subcommand
_ANY_NAME = "*"
_SETS_POSITIONAL = frozenset({"set", "shift", "getopts"})


def find_possible_hazards(words: Sequence[Word], script: Script) -> list[Hazard]:
    """The hazards of a command, also of words that may turn out to be options when it runs."""
    return find_hazards(words, find_possible_options(words, script))


def find_possible_options(words: Sequence[Word], script: Script) -> frozenset[int]:
    """The positions of words whose first character is decided at run time, or that may be split."""
    return frozenset(
        index
        for index, word in enumerate(words)
        if index
        and word.pieces
        and not all(
            _is_harmless(piece, words[: min(index, _CONSUMER_WORDS)], script) for piece in _open_pieces(word)
        )
    )


def hides_hazard(words: Sequence[Word]) -> bool:
    """Whether a value that is empty, a default or a blank leaves an option that is a hazard (`$x-delete`)."""
    mixed = [word for word in words if word.computed and any(_shows(piece) for piece in word.pieces)]
    if not mixed:
        return False
    known = len(find_hazards(words))
    readings = (_read_as(words, show) for show in (_show_nothing, _show_default, _show_blank))
    return any(len(find_hazards(reading)) > known for reading in readings)


def _shows(piece: Piece) -> bool:
    return bool(piece[1]) if piece[0] == "text" else _show_default(piece) != ""


def _read_as(words: Sequence[Word], show: Callable[[Piece], str]) -> list[Word]:
    read: list[Word] = []
    for word in words:
        if word.computed and any(_shows(piece) for piece in word.pieces):
            text = "".join(piece[1] if piece[0] == "text" else show(piece) for piece in word.pieces)
            read.extend(plain_word(part) for part in text.split(_SPLIT) if part)
        else:
            read.append(word)
    return read


def _show_nothing(piece: Piece) -> str:
    return "0" if piece[0] == "arithmetic" else ""


def _show_default(piece: Piece) -> str:
    kind, text, quoted = piece
    default = _DEFAULT.match(text) if kind == "substitution" else None
    if default is None:
        return _show_nothing(piece)
    shown = default.group(1).translate(_QUOTES)
    return shown if quoted else _BLANKS.sub(_SPLIT, shown)


def _show_blank(piece: Piece) -> str:
    return _show_nothing(piece) if piece[2] else _SPLIT


def may_split(word: Word, script: Script) -> bool:
    """Whether the text itself makes the shell cut the word in two: at `$IFS`, or at a blank in a value."""
    return any(_holds_blank(piece, script) for piece in word.pieces if piece[0] != "text" and not piece[2])


def _holds_blank(piece: Piece, script: Script) -> bool:
    kind, text, _ = piece
    braced = _BRACED.match(text)
    name = text if kind == "variable" else braced.group(1) if braced is not None else ""
    if name == "IFS" or _SPLIT in _show_default(piece):
        return True
    fact = name, "blank"
    if fact not in script.facts:
        script.facts[fact] = any(" " in (value or "") for value in values_of(name, script))
    return script.facts[fact]


def _open_pieces(word: Word) -> list[Piece]:
    """The expansions that may begin a word: those outside quotes, and a quoted one at the start."""
    found: list[Piece] = []
    begun = False
    for piece in word.pieces:
        kind, text, quoted = piece
        if kind in ("variable", "substitution") and not (quoted and begun):
            found.append(piece)
        begun = begun or kind != "text" or bool(text)
    return found


def _is_harmless(piece: Piece, consumer: Sequence[Word], script: Script) -> bool:
    kind, text, _ = piece
    if kind == "variable":
        return _variable_is_harmless(text, script)
    if text.startswith("${"):
        braced = _BRACED.match(text)
        if braced is None or (braced.group(4) and braced.group(4) in "-\"'$`\\"):
            return False
        return _variable_is_harmless(braced.group(1), script)
    if text.startswith("$("):
        return _output_is_harmless(text[2:-1], consumer)
    return text.startswith(("<(", ">("))


def _variable_is_harmless(name: str, script: Script) -> bool:
    set_names = names_set_by_commands(script)
    if name in _POSITIONAL:
        return not (script.parameters or script.functions or "@" in set_names)
    if name in set_names or _ANY_NAME in set_names:
        return False
    fact = name, "harmless"
    if fact not in script.facts:
        script.facts[fact] = all(
            value is not None and not any(part.startswith("-") for part in value.split())
            for value in values_of(name, script)
        )
    return script.facts[fact]


def values_of(name: str, script: Script) -> Iterator[str | None]:
    """The values that a text and those around it give a variable; None for one that is not known."""
    yield from script.assigned.get(name, ())
    outer = script.outer
    while outer is not None:
        yield from outer.assigned.get(name, ())
        if not names_set_by_commands(outer).isdisjoint((name, _ANY_NAME)):
            yield None
        outer = outer.outer


def names_set_by_commands(script: Script) -> frozenset[str]:
    """Variables that builtins such as `read` and `export` set, `@` for the positional parameters."""
    if script.set_names is None:
        script.set_names = frozenset(name for command in script.commands for name in _names_set_by(command))
    return script.set_names


def _names_set_by(command: Command) -> Iterator[str]:
    builtin = command.words[0].text
    if builtin in _SETS_POSITIONAL:
        yield "@"
    if builtin not in load_programs().setters:
        return
    for word in command.words[1:]:
        text = word.text.removeprefix("-v") if builtin == "printf" else word.text
        name = text.partition("=")[0].partition("[")[0].rstrip("+")
        yield _ANY_NAME if word.computed and not name.isidentifier() else name


def _output_is_harmless(source: str, consumer: Sequence[Word]) -> bool:
    """Whether a substitution prints something its author does not choose (`git merge-base`, `pwd`)."""
    try:
        commands = parse_shell(source).commands
    except ShellSyntaxError:
        return False
    return bool(commands) and all(_prints_facts(command, consumer) for command in commands)


def _prints_facts(command: Command, consumer: Sequence[Word]) -> bool:
    known = load_programs().fixed_output
    names = [word.text for word in command.words[:2]]
    if names[0] not in known and " ".join(names) not in known:
        return False
    return all(word.literal for word in command.words) and not find_hazards((*consumer, *command.words[1:]))
