"""Texts of nothing but words and the operators between them: most commands, and quickly read.

The grammar would find the same in them; whatever is not certainly of this kind is left to it.
"""

from __future__ import annotations

import re

from msgspec import Struct

from robota.core.shell.lexer import check_word
from robota.core.shell.script import Command, Piece, Redirection, Script, Word, build_word

_TOKENS = re.compile(
    r"([A-Za-z0-9_./:=@%+,^\]-]++)(?![^ ;|&])"  # a plain word
    r"|((?:[A-Za-z0-9_./:=@%+,^\]*?~-]++|'[^']*+'|\"[^\"$`\\]*+\")++)(?![<>])"  # with quotes, globs or `~`
    r"|(&&|\|\||\|(?!&)|;(?![;&]))"
    r"|(?<![^ ])([12]?)(>&[12](?![^ ;|&])|>>?(?![>&|(])|<(?![<>&(]))"
    r"|([^ ].*)"
)
_PLAIN = re.compile(r" *+[A-Za-z0-9_./:=@%+,^\]-][A-Za-z0-9_./:=@%+,^\] -]*+")
_PIECES = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")
_SPECIAL = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "select",
    "function", "coproc", "time",
})  # fmt: skip


class _Reader(Struct, eq=False, gc=False):
    script: Script
    words: list[Word] = []
    redirections: list[Redirection] = []
    piped: bool = False
    pipeline: int = 0
    """Where the pipeline began among the commands."""
    doubtful: int | None = None
    """The first command that `||` may skip."""
    chain: int = 1
    opening: Redirection | None = None
    """A redirection whose target comes next."""

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
        """Whether there was a command for the operator to follow."""
        words, script, commands = self.words, self.script, self.script.commands
        if not words or words[0].raw in _SPECIAL or "=" in words[0].raw:
            return False
        commands.append(
            Command(tuple(words), (), tuple(self.redirections), chain=self.chain, piped=self.piped)
        )
        self.words, self.redirections = [], []
        if operator == "|":
            self.piped = True
            return True
        if self.piped:
            script.unsteady.append((self.pipeline, len(commands), ()))
        self.piped, self.pipeline = False, len(commands)
        if operator == "||" and self.doubtful is None:
            self.doubtful = len(commands)
        if operator in (";", "") and self.doubtful is not None:
            script.unsteady.append((self.doubtful, len(commands), ()))
            self.doubtful = None
        if operator != "&&":
            self.chain += 1
        return True


def read_flat(text: str) -> Script | None:
    """The script, or None when the grammar has to read it."""
    if not _PLAIN.fullmatch(text):
        return _read_tokens(text)
    words = text.split()
    if words[0] in _SPECIAL or "=" in words[0]:
        return None
    return Script([Command(tuple([Word(word, word, word) for word in words]), chain=1)], scopes=2)


def _read_tokens(text: str) -> Script | None:
    tokens = _TOKENS.findall(text) if text.isprintable() else ()
    if not tokens or tokens[-1][-1]:
        return None
    reader = _Reader(Script())
    operator, words = "", reader.words
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
        elif reader.end_command(operator):
            words = reader.words
        else:
            return None
    if reader.opening is not None or not (reader.end_command("") or operator == ";"):
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
