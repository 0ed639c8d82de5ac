"""Arguments whose first character is decided at run time, and so might turn out to be options.

A value from the environment that the command was started in is trusted; one that the command text itself
sets or produces is followed back to where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from robota.core.permissions.hazards import find_hazards
from robota.core.permissions.programs import load_programs
from robota.core.permissions.script import Command, Script, ShellSyntaxError
from robota.core.permissions.shell import parse_shell
from robota.core.permissions.words import Piece, Word

_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[@*0-9])(\[[@*0-9]+\])?(:?[-=+])?(.?)")
_POSITIONAL = frozenset("@*123456789")
_CONSUMER_WORDS = 16  # enough to know the program and its subcommand
_ANY_NAME = "*"
_SETS_POSITIONAL = frozenset({"set", "shift", "getopts"})


def find_risky(words: Sequence[Word], script: Script) -> frozenset[int]:
    """The positions of words that might be options, or be split into some."""
    return frozenset(
        index
        for index, word in enumerate(words)
        if index
        and word.pieces
        and not all(
            _is_harmless(piece, words[: min(index, _CONSUMER_WORDS)], script) for piece in _open_pieces(word)
        )
    )


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
    return all(
        value is not None and not any(part.startswith("-") for part in value.split())
        for value in script.assigned.get(name, ())
    )


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
