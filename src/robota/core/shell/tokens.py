"""What stands between the words of a command: blanks, line ends, redirections and here-documents."""

from __future__ import annotations

import re

from robota.core.shell.lexer import Reader, read_quoted_piece, read_word
from robota.core.shell.script import Redirection, ShellSyntaxError
from robota.core.shell.words import Piece, Word

_OPERATOR = re.compile(r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|()(&>>|&>)")
_BLANKS = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")


def skip_blanks(reader: Reader, *, lines: bool = False) -> None:
    """Move to the next token; with `lines`, over line ends too (where here-documents are read)."""
    src = reader.src
    while reader.pos < len(src):
        if src[reader.pos] in " \t":
            _skip_gap(reader)
        character = src[reader.pos : reader.pos + 1]
        if character == "\n" and lines:
            reader.pos += 1
            reader.chain = reader.script.next_scope()
            read_bodies(reader)
        elif character == "#":
            end = src.find("\n", reader.pos)
            reader.pos = len(src) if end < 0 else end
        else:
            return


def _skip_gap(reader: Reader) -> None:
    blanks = _BLANKS.match(reader.src, reader.pos)
    if blanks is not None:
        reader.pos = blanks.end()


def read_redirection(reader: Reader) -> Redirection | None:
    """The redirection at the position, or None when there is none."""
    found = _OPERATOR.match(reader.src, reader.pos)
    if found is None:
        return None
    operator = found.group(2) or found.group(4)
    if operator in ("<", ">") and reader.src.startswith("(", found.end()):
        if found.group(1):
            raise ShellSyntaxError("a process substitution follows a descriptor")
        return None
    reader.pos = found.end()
    _skip_gap(reader)
    target = _read_target(reader)
    descriptor = found.group(1) or ""
    redirection = Redirection(operator, target, descriptor)
    if descriptor.startswith("{"):
        reader.script.assign(descriptor[1:-1], None)
    if operator in ("<<", "<<-"):
        quoted = any(character in target.raw for character in "'\"\\")
        if target.text.endswith("\\") or "\n" in target.text:
            raise ShellSyntaxError("the end of a here-document cannot be told")
        redirection.target, redirection.body = None, ""
        reader.heredocs.append((target.text, quoted, operator == "<<-", redirection))
    return redirection


def _read_target(reader: Reader) -> Word:
    words = [] if reader.peek() == "#" else read_word(reader)
    if len(words) != 1:
        raise ShellSyntaxError("a redirection has no target or several")
    return words[0]


def read_bodies(reader: Reader) -> None:
    """Read the here-documents that wait for this line end."""
    pending, reader.heredocs = reader.heredocs, []
    for delimiter, quoted, tabs, redirection in pending:
        body = _read_lines(reader, delimiter, quoted=quoted, tabs=tabs)
        redirection.body = body
        if not quoted:
            _read_expansions(reader, body)
        elif "$(" in body or "`" in body:
            reader.script.holds_code = True


def _read_lines(reader: Reader, delimiter: str, *, quoted: bool, tabs: bool) -> str:
    found: list[str] = []
    joined = False
    while not reader.at_end():
        end = reader.src.find("\n", reader.pos)
        end = len(reader.src) if end < 0 else end
        # Quoted, the lines are those that were written; the last of them ends where the joined line does.
        line = reader.joined.written(reader.pos, end) if quoted else reader.src[reader.pos : end]
        lines = line.split("\n")
        reader.pos = end + 1
        shown = [line.lstrip("\t") for line in lines] if tabs else lines
        if shown[-1] == delimiter and not joined:
            return "".join(line + "\n" for line in [*found, *shown[:-1]])
        found.extend(shown)
        # Without quotes a backslash at the line end joins the next line, which then cannot be the delimiter.
        joined = not quoted and (len(lines[-1]) - len(lines[-1].rstrip("\\"))) % 2 == 1
    raise ShellSyntaxError("a here-document is not closed")


def _read_expansions(reader: Reader, body: str) -> None:
    if "$" not in body and "`" not in body:
        return
    inner = Reader(body, reader.script, reader.read_commands, reader.depth)
    inner.scope, inner.chain = reader.scope, reader.chain
    pieces: list[Piece] = []
    while not inner.at_end():
        read_quoted_piece(inner, pieces, escapable="$`\\")
