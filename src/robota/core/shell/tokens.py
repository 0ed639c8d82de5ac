"""What stands beside the words of a command: blanks, line ends, redirections, here-documents, assignments."""

from __future__ import annotations

import re

from robota.core.shell.lexer import ends_word, read_quoted_piece, read_value, read_word
from robota.core.shell.reader import Reader
from robota.core.shell.script import Assignment, Piece, Redirection, ShellSyntaxError, Word

_OPERATOR = re.compile(r"(\d+|\{[A-Za-z_][A-Za-z0-9_]*\})?(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|()(&>>|&>)")
_BLANKS = re.compile(r"(?:[ \t]|(?<=[ \t])\\\n)*")
_DECLARATIONS = frozenset({"declare", "typeset", "export", "readonly", "local"})
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
_SUBSCRIPTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[.*\]\+?=", re.DOTALL)


def skip_blanks(reader: Reader, *, lines: bool = False) -> None:
    """Move to the next token; with `lines`, over line ends too (where here-documents are read)."""
    src = reader.src
    while reader.pos < len(src):
        if src[reader.pos] in " \t":
            reader.take(_BLANKS)
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
    reader.take(_BLANKS)
    words = [] if reader.peek() == "#" else read_word(reader)
    if len(words) != 1:
        raise ShellSyntaxError("a redirection has no target or several")
    target, descriptor = words[0], found.group(1) or ""
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
        line = reader.written(reader.pos, end) if quoted else reader.src[reader.pos : end]
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
    inner = Reader(body, reader.script, reader.read_commands, reader.depth, reader.scope, reader.chain)
    pieces: list[Piece] = []
    while not inner.at_end():
        read_quoted_piece(inner, pieces, escapable="$`\\")


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
    value = None if reader.skip("(") else read_value(reader)
    if array:
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
        if reader.skip(")"):
            break
        if reader.peek() == "[":
            reader.script.evaluates_text = True
        _read_subscripted(reader, in_array=True)
    if not ends_word(reader.src, reader.pos):
        raise ShellSyntaxError("text follows the parenthesis of an array")
