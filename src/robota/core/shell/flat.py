"""Texts of nothing but words and what stands between commands: most commands, and quickly read.

The grammar would find the same in them; whatever is not certainly of this kind is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from robota.core.shell.lexer import check_word, is_readable, read_assignment
from robota.core.shell.script import Assignment, Command, Piece, Redirection, Script, Word, build_word

_TOKENS = re.compile(
    r"([A-Za-z0-9_./:=@%+,^\]-]++)(?![^ \t\n;|&])"  # a plain word
    r"|((?:[A-Za-z0-9_./:=@%+,^\]*?~-]++|'[^']*+'|\"[^\"$`\\]*+\")++)(?![<>])"  # with quotes, globs or `~`
    r"|(&&|\|\||\|(?!&)|;(?![;&])|&(?!>)|\n)"
    r"|(?<![^ \t\n])([12]?)(>&[12](?![^ \t\n;|&])|>>?(?![>&|(])|<(?![<>&(]))"
    r"|(?<![^ \t\n;|&])#[^\n]*+"
    r"|([^ \t].*)",
    re.DOTALL,
)
_PLAIN = re.compile(r" *+[A-Za-z0-9_./:=@%+,^\]-][A-Za-z0-9_./:=@%+,^\] -]*+")
_PIECES = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")
_SPECIAL = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "select",
    "function", "coproc", "time",
})  # fmt: skip
_ENDS = frozenset({";", "&", "\n", ""})


class _Reader(Struct, eq=False, gc=False):
    script: Script
    words: list[Word] = []
    redirections: list[Redirection] = []
    piped: bool = False
    pipeline: int = 0
    """Where the pipeline began among the commands."""
    joined: int = 0
    """Where the commands began that are joined by `&&` and `||`; all of them are what `&` is about."""
    doubtful: int | None = None
    """The first command that `||` may skip."""
    chain: int = 1
    opening: Redirection | None = None
    """A redirection whose target comes next."""
    operator: str = ""
    """What followed the last command."""

    def begin_redirection(self, descriptor: str, operator: str) -> None:
        copied = len(operator) == 3
        redirection = Redirection(operator[:2], None, descriptor)
        self.redirections.append(redirection)
        self.opening = None if copied else redirection

    def end_redirection(self, target: str) -> bool:
        """Whether the target follows."""
        if self.opening is not None and target:
            self.opening.target, self.opening = _read_mixed(target), None
        return self.opening is None

    def end_command(self, operator: str) -> bool:
        """Whether there was a command for the operator to follow; empty lines need none."""
        words, script, commands = self.words, self.script, self.script.commands
        if not words:
            return operator == "\n" and not self.redirections
        assigned = self.take_assignments() if "=" in words[0].raw else ()
        if not words or words[0].raw in _SPECIAL:
            return False
        commands.append(Command(tuple(words), assigned, tuple(self.redirections), (), self.chain, self.piped))
        self.words, self.redirections, self.operator = [], [], operator
        if operator == "|":
            self.piped = True
            return True
        count = len(commands)
        if self.piped:
            script.unsteady.append((self.pipeline, count, ()))
            self.piped = False
        self.pipeline = count
        if operator == "&&":
            return True
        self.chain += 1
        if operator == "||":
            self.doubtful = count if self.doubtful is None else self.doubtful
        else:
            self.end_joined(operator, count)
        return True

    def take_assignments(self) -> tuple[Assignment, ...]:
        found: list[Assignment] = []
        while self.words and "=" in self.words[0].raw and read_assignment(self.words[0], found):
            del self.words[0]
        for each in found:
            self.script.assign(each.name, each.value, lasting=False)
        return tuple(found)

    def end_joined(self, operator: str, count: int) -> None:
        if self.doubtful is not None:
            self.script.unsteady.append((self.doubtful, count, ()))
            self.doubtful = None
        if operator == "&":
            self.script.unsteady.append((self.joined, count, ()))
        self.joined = count

    def end(self) -> bool:
        """Whether the text may end here."""
        if self.words or self.redirections:
            return self.opening is None and self.end_command("")
        return self.operator in _ENDS and bool(self.script.commands)


def read_flat(text: str) -> Script | None:
    """The script, or None when the grammar has to read it."""
    if _PLAIN.fullmatch(text):
        words = text.split()
        if "=" not in words[0]:
            command = Command(tuple([Word(word, word, word) for word in words]), chain=1)
            return None if words[0] in _SPECIAL else Script([command], scopes=2)
    tokens = _TOKENS.findall(text) if is_readable(text) else ()
    return _read_tokens(tokens) if tokens and not tokens[-1][-1] else None


def _read_tokens(tokens: Sequence[tuple[str, ...]]) -> Script | None:
    reader = _Reader(Script())
    words = reader.words
    for plain, mixed, operator, descriptor, redirection, _ in tokens:
        if reader.opening is not None:
            if not reader.end_redirection(plain or mixed):
                return None
        elif plain:
            words.append(Word(plain, plain, plain))
        elif mixed:
            words.append(_read_mixed(mixed))
        elif redirection:
            reader.begin_redirection(descriptor, redirection)
        elif operator:
            if not reader.end_command(operator):
                return None
            words = reader.words
    if not reader.end():
        return None
    reader.script.scopes = reader.chain
    return reader.script


def _read_mixed(raw: str) -> Word:
    pieces: list[Piece] = []
    for single, double, bare in _PIECES.findall(raw):
        if bare:
            pieces.append(("text", bare, False))
        elif single:
            pieces.append(("text", single, True))
        else:  # the grammar begins such a piece with an empty one, so that `""` is a word
            pieces.append(("text", "", True))
            if double:
                pieces.append(("text", double, True))
    check_word(raw, pieces)
    return build_word(pieces, raw)
