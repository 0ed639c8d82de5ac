"""`Bash(pattern)` compared with a command's words.

A part is compared after quote removal, word by word: a blank in the pattern is a word boundary, not a blank
inside quotes, so `Bash(./run tests)` does not cover `"./run tests"`. Deny rules compare more loosely than
allow rules.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from robota.core.permissions.globs import Glob, Item, compile_glob, may_match
from robota.core.permissions.script import Command, ShellSyntaxError
from robota.core.permissions.shell import parse_shell
from robota.core.permissions.words import COMPUTED, LIVE, QUOTED_BLANK, Word

_LOOSEN = str.maketrans({QUOTED_BLANK: " ", COMPUTED: None, LIVE: None})


class ShellPattern(Struct, frozen=True):
    strict: tuple[Glob, ...]
    """For allow rules: compared with `command_key`."""
    loose: tuple[Glob, ...]
    """For deny and ask rules: compared with plain text."""
    fixed_words: int
    """How many leading words the pattern spells out."""
    exact: bool

    def allows(self, key: str) -> bool:
        return _match_any(self.strict, key)

    def denies(self, text: str) -> bool:
        return _match_any(self.loose, text)

    def may_deny(self, items: list[Item]) -> bool:
        return any(may_match(glob, items) for glob in self.loose)


def _match_any(globs: tuple[Glob, ...], text: str) -> bool:
    for glob in globs:  # noqa: SIM110 - asked for every part and rule; a generator would double the cost
        if glob.matches(text):
            return True
    return False


@lru_cache(maxsize=1024)
def compile_shell_pattern(pattern: str) -> ShellPattern:
    """`name:*` is a prefix with a word boundary; elsewhere `*` is any text and all else is literal."""
    prefix = pattern.endswith(":*") and len(pattern) > 2
    body = pattern[:-2] if prefix else pattern
    written = " ".join(body.split(" "))
    while "  " in written:
        written = written.replace("  ", " ")
    written = written.strip(" ")
    words = _pattern_words(body)
    texts = [written] if words is None else [" ".join(words), written]
    if prefix:
        texts += [text + " *" for text in texts]
    strict = tuple(compile_glob(text) for text in dict.fromkeys(texts))
    loose = tuple(
        compile_glob(text) for text in dict.fromkeys([*texts, *(text.translate(_LOOSEN) for text in texts)])
    )
    leading = written.split(" ") if words is None else words
    fixed = next((index for index, word in enumerate(leading) if "*" in word), len(leading))
    return ShellPattern(strict, loose, fixed, exact=not prefix and "*" not in pattern)


def _pattern_words(body: str) -> list[str] | None:
    """The pattern read as one simple command; None when it is anything else."""
    try:
        script = parse_shell(body)
    except ShellSyntaxError:
        return None
    commands = [command for command in script.commands if command.scope == ()]
    if len(commands) != 1 or script.redirections or commands[0].redirections or script.functions:
        return None
    command = commands[0]
    source = "".join(assignment.raw for assignment in command.assignments) + command.raw
    if "".join(source.split()) != "".join(body.split()):  # a keyword or a comment is not part of the command
        return None
    return command_words(command)


def command_words(command: Command) -> list[str]:
    return [*(assignment.raw for assignment in command.assignments), *(word.key for word in command.words)]


def command_key(words: tuple[Word, ...]) -> str:
    return " ".join(word.key for word in words)


def command_texts(command: Command) -> list[str]:
    """The spellings of a part that a deny rule is compared with."""
    words = command.words
    texts = [command.text, command.raw]
    first = words[0].text
    if "/" in first:
        texts.append(" ".join([first.rpartition("/")[2], *(word.text for word in words[1:])]))
    if command.assignments:
        texts.append(" ".join([*(each.raw for each in command.assignments), *(word.text for word in words)]))
    return texts


def command_items(words: tuple[Word, ...]) -> list[list[Item]]:
    """A part as partly known text, also with the program's base name."""
    items: list[Item] = []
    for word in words:
        items.extend([" ", *word.items()] if items else word.items())
    found = [items]
    if isinstance(items[0], str) and "/" in items[0]:
        found.append([items[0].rpartition("/")[2], *items[1:]])
    return found
