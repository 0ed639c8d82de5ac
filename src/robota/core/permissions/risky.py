"""Arguments whose first character is decided at run time, and so might turn out to be options.

A value from the environment that the command was started in is trusted; one that the command text itself
sets or produces is followed back to where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from robota.core.permissions.hazards import find_hazards
from robota.core.permissions.lexer import ShellSyntaxError
from robota.core.permissions.programs import load_programs
from robota.core.permissions.script import Command, Script
from robota.core.permissions.shell import parse_shell
from robota.core.permissions.words import Word

_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[@*0-9])(\[[@*0-9]+\])?(:?[-=+])?(.?)")
_POSITIONAL = frozenset("@*123456789")
_SETS_POSITIONAL = frozenset({"set", "shift", "getopts"})


def find_risky(words: Sequence[Word], script: Script) -> frozenset[int]:
    """The positions of words that might be options."""
    return frozenset(
        index
        for index, word in enumerate(words)
        if index and word.starts_unknown and not _is_harmless(words, index, script)
    )


def _is_harmless(words: Sequence[Word], index: int, script: Script) -> bool:
    kind, text, _ = next(piece for piece in words[index].pieces if piece[0] != "text" or piece[1])
    if kind == "variable":
        return _variable_is_harmless(text, script)
    if text.startswith("${"):
        braced = _BRACED.match(text)
        return (
            braced is not None and braced.group(4) != "-" and _variable_is_harmless(braced.group(1), script)
        )
    if text.startswith("$("):
        return _output_is_harmless(text[2:-1], words[:index])
    return text.startswith(("<(", ">("))


def _variable_is_harmless(name: str, script: Script) -> bool:
    if name in _POSITIONAL:
        calls = (command.words[0].text for command in script.commands)
        return not script.functions and _SETS_POSITIONAL.isdisjoint(calls)
    if _is_set_by_command(name, script):
        return False
    return all(
        value is not None and not any(part.startswith("-") for part in value.split())
        for value in script.assigned.get(name, ())
    )


def _is_set_by_command(name: str, script: Script) -> bool:
    setters = load_programs().setters
    return any(
        command.words[0].text in setters and any(_sets(word, name) for word in command.words[1:])
        for command in script.commands
    )


def _sets(word: Word, name: str) -> bool:
    return word.computed or word.text == name or word.text.startswith((name + "=", name + "[", name + "+="))


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
