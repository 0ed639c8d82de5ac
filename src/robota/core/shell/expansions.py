"""What expansions may turn out to be: options, or several words.

A value is known when the text itself sets it to plain words everywhere. Every other expansion, substitution
or glob may be an option, in quotes too, unless a literal character that is no dash begins the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from robota.core.shell.hazards import Hazard, find_hazards
from robota.core.shell.programs import find_options, load_programs, program_name
from robota.core.shell.script import Command, Piece, Script, Word

_KNOWN = frozenset({"HOME", "PWD"})
_SEVERAL = frozenset("@*")
_ANY_NAME = "*"
_NONE: frozenset[int] = frozenset()
_FACTS = re.compile(
    r"\$\((?:pwd|nproc|whoami|uname(?: -[amnrs])?|id -[ugn]{1,2}|date \+[%A-Za-z0-9]+|npm (?:root|prefix)"
    r"|go env GO(?:PATH|ROOT|OS|ARCH|BIN|MOD)"
    r"|git rev-parse (?:--(?:show-toplevel|git-dir|show-prefix)|(?:--short )?HEAD)"
    r"|docker (?:ps|images|container ls|image ls)(?: -[aq]*q[aq]*| -a)+"
    r"|git merge-base(?: [A-Za-z0-9_./@^~][A-Za-z0-9_./@^~-]*)+)\)"
)
"""Substitutions whose output neither the text nor a file's name decides."""
_SUMS = re.compile(r"\$\(\([0-9+*/% \t]*\)\)")
_SAFE_DIGITS = 18
"""No sum or product of numbers with so few digits is too large for bash."""
_PLAIN_GIT = frozenset({"add", "checkout", "switch", "restore", "rm", "mv", "reset", "status", "ls-files"})
"""Subcommands of git without an option that runs or writes something else."""


def find_possible_hazards(words: Sequence[Word], script: Script) -> list[Hazard]:
    """The hazards of a command, also of words that may turn out to be options when it runs."""
    for word in words:
        if word.pieces:
            break
    else:
        return find_hazards(words)
    possible = find_possible_options(words, script)
    if not possible:
        return find_hazards(words)
    if words[0].text == "git" and len(words) > 1 and words[1].literal and words[1].text in _PLAIN_GIT:
        return find_hazards(words)
    hazards = find_hazards(words, possible)
    options = find_options(program_name(words[0].text))
    if options is not None:
        # Words that the shell may cut in pieces are not the value of the option before them.
        hazards += [
            Hazard(index, words[index].raw)
            for index in sorted(possible)
            if splits(words[index], script) or _is_open_option(words[index], options.values)
        ]
    return hazards


def _is_open_option(word: Word, values: frozenset[str]) -> bool:
    """Whether an expansion decides which option it is: `-$x`, but neither `-k"$x"` nor `--key="$x"`."""
    prefix = "".join(text for _, text, _ in takewhile(lambda piece: piece[0] == "text", word.pieces))
    return prefix[:1] == "-" and "=" not in prefix and prefix[:2] not in values


def find_possible_options(words: Sequence[Word], script: Script) -> frozenset[int]:
    """The positions of words that may turn out to be options, or several words, when the command runs."""
    found = [
        index
        for index, word in enumerate(words)
        if word.pieces and index and not word.literal and may_be_option(word, script)
    ]
    return frozenset(found) if found else _NONE


def may_be_option(word: Word, script: Script) -> bool:
    return _begins_unknown(word, script) or splits(word, script)


def _begins_unknown(word: Word, script: Script) -> bool:
    for kind, text, quoted in word.pieces:
        if kind == "text":
            if text:
                return text[0] == "-" or (not quoted and text[0] in "*?[")
        elif kind == "arithmetic":
            return may_be_negative(text)
        elif not _is_plain_value((kind, text, quoted), script):
            return True
    return False


def may_be_negative(number: str) -> bool:
    """Whether a number begins with a minus, as an option does; what is too large for bash is negative too."""
    return number.startswith("$((") and (
        _SUMS.fullmatch(number) is None or sum(map(str.isdigit, number)) > _SAFE_DIGITS
    )


def splits(word: Word, script: Script) -> bool:
    """Whether an expansion outside quotes, or one of several words, decides how many words there are."""
    return any(
        kind != "text"
        and (not quoted or (kind == "variable" and text in _SEVERAL))
        and not _is_plain_value((kind, text, quoted), script)
        for kind, text, quoted in word.pieces
    )


def _is_plain_value(piece: Piece, script: Script) -> bool:
    """Whether the value is a number, or known and neither an option nor, outside quotes, several words."""
    kind, text, quoted = piece
    if kind == "arithmetic":
        return True
    if kind == "substitution":
        return _FACTS.fullmatch(text) is not None
    fact = text, quoted
    if fact not in script.facts:
        script.facts[fact] = _variable_is_plain(text, script, quoted=quoted)
    return script.facts[fact]


def _variable_is_plain(name: str, script: Script, *, quoted: bool) -> bool:
    set_names = names_set_by_commands(script)
    if name in set_names or _ANY_NAME in set_names:
        return False
    values = script.assigned.get(name, [])
    if name not in script.lasting:
        return name in _KNOWN and not values
    return all(_value_is_plain(value, quoted=quoted) for value in values)


def _value_is_plain(value: Word, *, quoted: bool) -> bool:
    if value.literal:
        return value.text[:1] != "-" and (quoted or set(value.text).isdisjoint(" \t\n*?["))
    if value.computed:
        unknown = [
            piece
            for piece in value.pieces
            if piece[1] and (piece[0] != "arithmetic" or may_be_negative(piece[1]))
        ]
        return all(piece[0] == "substitution" and _FACTS.fullmatch(piece[1]) for piece in unknown)
    # A glob in the words of a loop: its files begin as it does.
    kind, text, _ = value.pieces[0]
    return quoted and kind == "text" and text[:1] not in ("", "-", "*", "?", "[")


def names_set_by_commands(script: Script) -> frozenset[str]:
    """Variables that builtins such as `read` and `export` set."""
    if script.set_names is None:
        script.set_names = frozenset([name for command in script.commands for name in _names_set_by(command)])
    return script.set_names


def _names_set_by(command: Command) -> Iterator[str]:
    if command.words[0].text not in load_programs().setters:
        return
    for word in command.words[1:]:
        name = word.text.partition("=")[0]
        yield _ANY_NAME if word.computed and not name.isidentifier() else name
