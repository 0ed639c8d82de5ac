"""Words of the small shell grammar that docs/permissions.md writes down.

What is not in that grammar raises `ShellSyntaxError`: the caller then asks instead of guessing. Commands
inside `$(…)` are handed to the grammar, so nothing that bash would run is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from robota.core.shell.script import (
    Assignment,
    Piece,
    Redirection,
    Scope,
    Script,
    ShellSyntaxError,
    Word,
    build_word,
    plain_word,
)

MAXIMUM_DEPTH = 30

_TEXT = re.compile(r"[^ \t\n;&|<>()\\'\"$`]+")
_QUOTED_TEXT = re.compile(r'[^"\\$`]+')
_WORD_END = frozenset(" \t\n;&|<>()")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TAIL = r"[A-Za-z0-9_./:@=%+*?, -]*"
_EXPANSION = re.compile(
    rf"\$(?:(?P<name>{_NAME})|(?P<special>[?#$!@*0-9-])"
    rf"|\{{(?P<braced>{_NAME}|[?#$!@*0-9])\}}|\{{\#(?P<length>{_NAME})\}}"
    rf"|\{{(?:{_NAME}|[0-9])(?P<tail>:?[-+?]{_TAIL}|%%?{_TAIL}|\#\#?{_TAIL}|/[/\#%]?{_TAIL}"
    r"|:[0-9]+(?::[0-9]+)?|\^\^?|,,?)\}"
    r"|\(\((?P<arithmetic>[-0-9+*/% \t<>=!&|^~?:]*)\)\))"
)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\[nt\\'])*)'")
_ANSI_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\'": "'"}
_ESCAPE = re.compile(r"\\[nt\\']")
_BRACES = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ODD_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+=|\[)")
_TILDE = re.compile(r"~(?:/|\Z)")
_ASSIGNED_TILDE = re.compile(rf"{_NAME}\+?=(?:[^'\"]*:)?~")
_NUMBERS = frozenset("?#$!")
_KEYWORDS = frozenset({
    "if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac", "in", "select",
    "function", "coproc", "time", "!", "{", "}", "[[", "]]",
})  # fmt: skip
_UNKNOWN_DOLLAR = {
    "{": "an expansion in braces beyond `${name}`, a default, a cut or a replacement by plain text",
    "(": "arithmetic with anything but numbers",
    "[": "arithmetic in `$[…]`",
    "'": "a string in `$'…'` with escapes beyond `\\n`, `\\t`, `\\\\` and `\\'`",
    '"': 'a translated string in `$"…"`',
}


class Reader(Struct, eq=False, gc=False):
    """A position in the text, what has been found so far, and how deep we are."""

    src: str
    script: Script
    read_commands: Callable[[Reader, str], None]
    pos: int = 0
    depth: int = 0
    scope: Scope = ()
    chain: int = 0
    piped: bool = False
    heredocs: list[tuple[str, bool, bool, Redirection]] = []
    """Delimiter, whether it was quoted, whether tabs are cut, and where the text goes."""

    def peek(self, length: int = 1) -> str:
        return self.src[self.pos : self.pos + length]

    def skip(self, text: str) -> bool:
        """Move over a text, if it is here."""
        found = self.src.startswith(text, self.pos)
        self.pos += len(text) if found else 0
        return found

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move over what a pattern matches here, if it does."""
        found = pattern.match(self.src, self.pos)
        if found is not None:
            self.pos = found.end()
        return found

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise ShellSyntaxError("nested too deeply to be judged")

    def read_nested(self, closing: str) -> None:
        """Read commands in a subshell of their own up to and including `closing`."""
        scope, chain, piped = self.scope, self.chain, self.piped
        self.enter()
        self.scope = (*scope, self.script.next_scope())
        self.read_commands(self, closing)
        self.depth -= 1
        self.scope, self.chain, self.piped = scope, chain, piped

    def read_substituted(self, source: str | None = None) -> None:
        """Read commands whose output is used: up to `)`, or all of a text between backquotes."""
        if source is not None:
            Reader(source, self.script, self.read_commands, 0, self.depth, self.scope).read_nested("")
            return
        outer, self.heredocs = self.heredocs, []
        self.read_nested(")")
        self.heredocs = outer


def is_readable(text: str) -> bool:
    """Whether every blank is a space, a tab or a line end, and nothing is a control character."""
    return text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable()


def read_word(reader: Reader) -> Word:
    src, start = reader.src, reader.pos
    pieces: list[Piece] = []
    while (character := src[reader.pos : reader.pos + 1]) and character not in _WORD_END:
        _read_piece(reader, pieces, character)
    raw = src[start : reader.pos].removesuffix("\\\n")
    if not pieces:
        raise ShellSyntaxError("a word was expected")
    if raw in _KEYWORDS and src[reader.pos - 2 : reader.pos] == "\\\n":
        raise ShellSyntaxError("a keyword before a backslash at a line end")
    following = src[reader.pos : reader.pos + 1]
    if following == "(":
        raise ShellSyntaxError("a parenthesis inside a word")
    if following in ("<", ">") and (raw.isdigit() or raw[0] == "{"):
        raise ShellSyntaxError(f"a redirection of the descriptor `{raw}`")
    if reader.heredocs and "\n" in raw:
        raise ShellSyntaxError("a line end inside a word beside a here-document")
    check_word(raw, pieces)
    return build_word(pieces, raw)


def check_word(raw: str, pieces: list[Piece]) -> None:
    """Refuse what bash expands in unquoted text beyond names of files and the user's own home."""
    if "{" not in raw and "~" not in raw:
        return
    unquoted = "".join([text for kind, text, quoted in pieces if kind == "text" and not quoted])
    if "{" in unquoted and _BRACES.search(raw):
        raise ShellSyntaxError("braces that expand")
    if "~" in unquoted and (
        (raw[0] == "~" and not _TILDE.match(raw)) or (raw[0] != "~" and _ASSIGNED_TILDE.match(raw))
    ):
        raise ShellSyntaxError("a tilde beyond `~` and `~/…`")


def read_assignment(word: Word, assignments: list[Assignment]) -> bool:
    """Take a word before the command word as an assignment, if it is one."""
    if "=" not in word.raw and "[" not in word.raw:
        return False
    found = _ASSIGNMENT.match(word.raw)
    if found is None:
        if _ODD_ASSIGNMENT.match(word.raw):
            raise ShellSyntaxError("an assignment to an array, or one that adds to a variable")
        return False
    name, raw = found.group(1), word.raw[found.end() :]
    if not word.pieces:
        value = plain_word(raw)
    else:
        kind, first, quoted = word.pieces[0]
        pieces: list[Piece] = [(kind, first[found.end() :], quoted), *word.pieces[1:]]
        value = build_word(pieces, raw)
    assignments.append(Assignment(name, value, word.raw))
    return True


def _read_piece(reader: Reader, pieces: list[Piece], character: str) -> None:
    if character == "'":
        end = reader.src.find("'", reader.pos + 1)
        if end < 0:
            raise ShellSyntaxError("a single quote that is not closed")
        pieces.append(("text", reader.src[reader.pos + 1 : end], True))
        reader.pos = end + 1
    elif character == '"':
        reader.pos += 1
        pieces.append(("text", "", True))
        while not reader.skip('"'):
            if reader.pos >= len(reader.src):
                raise ShellSyntaxError("a double quote that is not closed")
            read_quoted_piece(reader, pieces, escapable='$`"\\')
    elif character == "\\":
        _read_escape(reader, pieces)
    elif character == "$":
        _read_dollar(reader, pieces, quoted=False)
    elif character == "`":
        _read_backquoted(reader, pieces, quoted=False)
    else:
        found = _TEXT.match(reader.src, reader.pos)
        text = found.group() if found is not None else character
        pieces.append(("text", text, False))
        reader.pos += len(text)


def _read_escape(reader: Reader, pieces: list[Piece]) -> None:
    escaped, following = (
        reader.src[reader.pos + 1 : reader.pos + 2],
        reader.src[reader.pos + 2 : reader.pos + 3],
    )
    if not escaped:
        raise ShellSyntaxError("a backslash at the end")
    if escaped != "\n":
        pieces.append(("text", escaped, True))
    elif following not in (" ", "\t"):  # a blank after it ends the word
        raise ShellSyntaxError("a backslash at a line end that tears a word apart")
    reader.pos += 2


def read_quoted_piece(reader: Reader, pieces: list[Piece], *, escapable: str) -> None:
    """One stretch of a double-quoted string or here-document: `$`, backquote and backslash are special."""
    character = reader.peek()
    if character == "$":
        _read_dollar(reader, pieces, quoted=True)
    elif character == "`":
        _read_backquoted(reader, pieces, quoted=True)
    elif character == "\\":
        following = reader.peek(2)[1:]
        if following == "\n":
            if pieces and (pieces[-1][0] != "text" or reader.src[reader.pos - 1] == "$"):
                raise ShellSyntaxError("a backslash at a line end that tears an expansion apart")
            following = ""
        elif not following or following not in escapable:
            following = "\\" + following
        pieces.append(("text", following, True))
        reader.pos += 2
    else:
        found = _QUOTED_TEXT.match(reader.src, reader.pos)
        text = found.group() if found is not None else character
        pieces.append(("text", text, True))
        reader.pos += len(text)


def _read_dollar(reader: Reader, pieces: list[Piece], *, quoted: bool) -> None:
    start = reader.pos
    found = reader.take(_EXPANSION)
    if found is not None:
        _add_expansion(found, pieces, quoted)
        return
    following = reader.peek(2)[1:]
    if following == "(" and reader.peek(3) != "$((":
        reader.pos += 2
        reader.read_substituted()
        pieces.append(("substitution", reader.src[start : reader.pos], quoted))
        return
    ansi = None if quoted else reader.take(_ANSI)
    if ansi is not None:
        text = _ESCAPE.sub(lambda escape: _ANSI_ESCAPES[escape.group()], ansi.group(1))
        pieces.append(("text", text, True))
    elif following in _UNKNOWN_DOLLAR and not (quoted and following in "'\""):
        raise ShellSyntaxError(_UNKNOWN_DOLLAR[following])
    elif reader.peek(3)[1:] == "\\\n":
        raise ShellSyntaxError("a backslash at a line end that tears an expansion apart")
    else:
        reader.pos += 1
        pieces.append(("text", "$", quoted))


def _add_expansion(found: re.Match[str], pieces: list[Piece], quoted: bool) -> None:
    if found["arithmetic"] is not None or found["length"] is not None:
        pieces.append(("arithmetic", found.group(), quoted))
    elif found["tail"] is not None:
        pieces.append(("substitution", found.group(), quoted))
    else:
        name = found["name"] or found["special"] or found["braced"]
        pieces.append(("arithmetic", "$" + name, quoted) if name in _NUMBERS else ("variable", name, quoted))


def _read_backquoted(reader: Reader, pieces: list[Piece], *, quoted: bool) -> None:
    start = reader.pos
    end = reader.src.find("`", start + 1)
    source = reader.src[start + 1 : end]
    if end < 0:
        raise ShellSyntaxError("a backquote that is not closed")
    if not set(source).isdisjoint('\\\n"#' if quoted else "\\\n#"):
        raise ShellSyntaxError("backquotes around more than one plain line")
    reader.read_substituted(source)
    reader.pos = end + 1
    pieces.append(("substitution", reader.src[start : reader.pos], quoted))
