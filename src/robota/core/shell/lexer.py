"""Reading one shell word: quotes, escapes and every kind of expansion, in a single pass over the text.

Commands inside expansions are handed to the grammar (`Reader.read_nested`), so nothing that bash would run
is skipped. Anything doubtful raises `ShellSyntaxError`: the caller then asks instead of guessing.
"""

from __future__ import annotations

import re

from robota.core.shell.reader import JOINT, Reader
from robota.core.shell.script import Piece, Script, ShellSyntaxError, Word, build_word, build_words

_PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,\]^-]+")
_WORD_END = frozenset(" \t\n;&|<>()")
_QUOTED_TEXT = re.compile(r'[^"\\$`]+')
_UNQUOTED_TEXT = re.compile(r"[^\s;&|<>()\\'\"$`]+")
_DEFAULT = re.compile(r"(?:\[[^\]]*\])?:?[-+=?]")
_ARITHMETIC = re.compile(r"(?:\[[@*]\])?+(?:\[|:(?![-+=?]))")
_ESCAPES = re.compile(r"(?:\\[^\n])+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = re.compile(r"[@*#?$!0-9-]")


def read_word(reader: Reader, *, grouping: bool = False) -> list[Word]:
    """The word here, as the words it expands to; `grouping` keeps the parentheses of a pattern in `[[ ]]`."""
    src, start = reader.src, reader.pos
    plain = _PLAIN.match(src, start)
    if plain is not None and ends_word(src, plain.end(), grouping=grouping):
        reader.pos = plain.end()
        text = plain.group()
        return [Word(text, text, text)]
    pieces: list[Piece] = []
    _read_pieces(reader, pieces, grouping)
    if reader.pos == start:
        raise ShellSyntaxError("a word was expected")
    note_code(reader.script, pieces)
    return build_words(pieces, src[start : reader.pos])


def ends_word(src: str, position: int, *, grouping: bool = False) -> bool:
    if position == len(src):
        return True
    character = src[position]
    if character not in _WORD_END or (grouping and character in "(|)"):
        return False
    return character not in "<>" or src[position + 1 : position + 2] != "("


def note_code(script: Script, pieces: list[Piece]) -> None:
    """Remember that a quoted text holds a substitution: arithmetic on a variable would run it."""
    quoted = "".join(text for kind, text, is_quoted in pieces if kind == "text" and is_quoted)
    if "$(" in quoted or "`" in quoted:
        script.holds_code = True


def read_value(reader: Reader) -> Word:
    """The value of an assignment: a word that is not split and not brace-expanded; empty at a word end."""
    start = reader.pos
    pieces: list[Piece] = []
    _read_pieces(reader, pieces, grouping=False)
    note_code(reader.script, pieces)
    return build_word(pieces, reader.src[start : reader.pos])


def _read_pieces(reader: Reader, pieces: list[Piece], grouping: bool) -> None:
    open_groups = 0
    while not reader.at_end():
        character = reader.peek()
        if character in "<>" and reader.peek(2)[1:] == "(":
            pieces.append(("substitution", _read_substituted(reader), False))
        elif grouping and (character == "(" or (open_groups and character in "|) \t")):
            open_groups += (character == "(") - (character == ")")
            pieces.append(("text", character, False))
            reader.pos += 1
        elif character in _WORD_END:
            break
        else:
            _read_piece(reader, pieces)
    if open_groups:
        raise ShellSyntaxError("a parenthesis in a pattern is not closed")


def _read_substituted(reader: Reader) -> str:
    """The commands in `$(…)`, `<(…)` or `>(…)`, and the text as it was written."""
    start = reader.pos
    reader.pos += 2
    reader.read_nested(")")
    return reader.src[start : start + 2] + reader.written(start + 2, reader.pos - 1) + ")"


def _read_piece(reader: Reader, pieces: list[Piece]) -> None:
    character = reader.peek()
    if character == "\\":
        _read_escape(reader, pieces)
    elif character == "'":
        end = reader.src.find("'", reader.pos + 1)
        if end < 0:
            raise ShellSyntaxError("a single quote is not closed")
        pieces.append(("text", reader.written(reader.pos + 1, end), True))
        reader.pos = end + 1
    elif character == '"':
        read_double_quoted(reader, pieces)
    elif character == "$":
        read_dollar(reader, pieces, quoted=False)
    elif character == "`":
        read_backquoted(reader, pieces, quoted=False)
    else:
        run = _UNQUOTED_TEXT.match(reader.src, reader.pos)
        text = run.group() if run is not None else character
        pieces.append(("text", text, False))
        reader.pos += len(text)


def _read_escape(reader: Reader, pieces: list[Piece]) -> None:
    escapes = reader.take(_ESCAPES)
    if escapes is not None:
        pieces.append(("text", escapes.group()[1::2], True))
    elif reader.peek(3) in (JOINT + " ", JOINT + "\t") and pieces and pieces[-1][2]:
        reader.pos += 2  # after a quote and before a blank nothing can be torn
    elif reader.peek(2) == JOINT:
        raise ShellSyntaxError("a backslash at a line end tears a word or an operator apart")
    else:
        raise ShellSyntaxError("the text ends in a backslash")


def read_double_quoted(reader: Reader, pieces: list[Piece]) -> None:
    reader.pos += 1
    pieces.append(("text", "", True))
    while not reader.at_end():
        if reader.skip('"'):
            return
        read_quoted_piece(reader, pieces, escapable='$`"\\')
    raise ShellSyntaxError("a double quote is not closed")


def read_quoted_piece(reader: Reader, pieces: list[Piece], *, escapable: str) -> None:
    """One stretch of a double-quoted string or here-document: `$`, backquote and backslash are special."""
    character = reader.peek()
    if character == "$":
        read_dollar(reader, pieces, quoted=True)
    elif character == "`":
        read_backquoted(reader, pieces, quoted='"' in escapable)
    elif character == "\\":
        following = reader.peek(2)[1:]
        if following and following in escapable:
            pieces.append(("text", following, True))
        elif following != "\n":
            pieces.append(("text", "\\" + following, True))
        elif pieces and (pieces[-1][0] != "text" or pieces[-1][1].endswith("$")):
            raise ShellSyntaxError("a backslash at a line end tears an expansion apart")
        reader.pos += 2
    else:
        run = _QUOTED_TEXT.match(reader.src, reader.pos)
        text = run.group() if run is not None else character
        pieces.append(("text", text, True))
        reader.pos += len(text)


def read_dollar(reader: Reader, pieces: list[Piece], *, quoted: bool) -> None:
    start, following = reader.pos, reader.peek(2)[1:]
    if following == "[" or reader.peek(3) == "$((":
        reader.pos += 2 if following == "[" else 3
        read_arithmetic(reader, "]" if following == "[" else "))")
        pieces.append(("arithmetic", reader.src[start : reader.pos], quoted))
    elif following == "(":
        pieces.append(("substitution", _read_substituted(reader), quoted))
    elif following == "{":
        pieces.append(_read_braced(reader, quoted))
    elif following == "'" and not quoted:
        text, reader.pos = _read_ansi_string(reader.src, reader.pos + 2)
        if reader.written(start, reader.pos) != reader.src[start : reader.pos]:
            raise ShellSyntaxError("a quoted string holds a backslash at a line end")
        pieces.append(("text", text, True))
    elif following == '"' and not quoted:
        reader.pos += 1
        read_double_quoted(reader, pieces)
    else:
        reader.pos += 1
        name = reader.take(_NAME) or reader.take(_SPECIAL)
        pieces.append(("text", "$", quoted) if name is None else ("variable", name.group(), quoted))


def _read_braced(reader: Reader, quoted: bool) -> Piece:
    start = reader.pos
    reader.pos += 2
    prefix = reader.peek()
    if prefix in ("!", "#") and reader.peek(2)[1:] != "}":
        reader.pos += 1
    name = reader.take(_NAME)
    if name is None and not reader.take(_SPECIAL):
        raise ShellSyntaxError("an expansion in braces is not understood")
    if prefix != "!" and reader.skip("}"):
        if prefix == "#":
            return ("arithmetic", reader.src[start : reader.pos], quoted)
        return ("variable", reader.src[start + 2 : reader.pos - 1], quoted)
    if prefix == "!" or _ARITHMETIC.match(reader.src, reader.pos):
        reader.script.evaluates_text = True
    if reader.peek() == "@" and reader.peek(2)[1:] == "P":
        raise ShellSyntaxError("a prompt expansion can run commands held in a variable")
    if name is not None and "=" in reader.peek(2):
        reader.script.assign(name.group(), None)
    default = _DEFAULT.match(reader.src, reader.pos) is not None
    _read_brace_tail(reader, quoted, plain_quotes=quoted and default)
    return ("substitution", reader.src[start : reader.pos], quoted)


def _read_brace_tail(reader: Reader, quoted: bool, *, plain_quotes: bool) -> None:
    """The rest of `${name…}`; in a quoted default (`plain_quotes`) single quotes are plain characters."""
    reader.enter()
    pieces: list[Piece] = []
    while not reader.at_end():
        if reader.skip("}"):
            reader.leave()
            return
        if plain_quotes and reader.skip("'"):
            continue
        character = reader.peek()
        if quoted and (character == "'" or reader.peek(2) == "$'"):
            raise ShellSyntaxError("a single quote inside a quoted expansion is ambiguous")
        if character in "<>" and reader.peek(2)[1:] == "(":
            _read_substituted(reader)
        elif character in "\\'\"$`":
            _read_piece(reader, pieces)
        else:
            reader.pos += 1
    raise ShellSyntaxError("an expansion in braces is not closed")


def read_arithmetic(reader: Reader, closing: str) -> None:
    """Read up to and including `closing`; bash may evaluate the contents of variables here."""
    reader.enter()
    reader.script.evaluates_text = True
    pieces: list[Piece] = []
    opening, end = ("[", "]") if closing == "]" else ("(", ")")
    depth = 0
    while not reader.at_end():
        character = reader.peek()
        if character == end and depth == 0:
            if not reader.src.startswith(closing, reader.pos):
                raise ShellSyntaxError("arithmetic or a nested subshell: the text can be read both ways")
            reader.pos += len(closing)
            reader.leave()
            return
        depth += (character == opening) - (character == end)
        if character == "'":
            raise ShellSyntaxError("a single quote inside arithmetic is ambiguous")
        if character in '\\"$`':
            _read_piece(reader, pieces)
        else:
            reader.pos += 1
    raise ShellSyntaxError("an arithmetic expansion is not closed")


def read_backquoted(reader: Reader, pieces: list[Piece], *, quoted: bool) -> None:
    start = reader.pos
    position, text = start + 1, list[str]()
    while position < len(reader.src):
        character = reader.src[position]
        if character == "`":
            reader.pos = position + 1
            reader.read_inner_source("".join(text))
            pieces.append(("substitution", reader.src[start : reader.pos], quoted))
            return
        following = reader.src[position + 1 : position + 2]
        if character == "\\" and following == "\n":
            raise ShellSyntaxError("a backslash at a line end stands inside backquotes")
        if character == "\\" and following and following in ('$`\\"' if quoted else "$`\\"):
            text.append(following)
            position += 2
        else:
            text.append(character)
            position += 1
    raise ShellSyntaxError("a backquote is not closed")


_ANSI_TOKEN = re.compile(
    r"[^'\\]+|\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.?))", re.DOTALL
)
_BYTE, _OCTAL, _LETTER = 1, 4, 5
_ANSI_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def _read_ansi_string(src: str, position: int) -> tuple[str, int]:
    """The text of `$'…'` whose first character is at the position, and where it ends."""
    pieces: list[str] = []
    while found := _ANSI_TOKEN.match(src, position):
        pieces.append(_decode_ansi(found))
        position = found.end()
    if not src.startswith("'", position):
        raise ShellSyntaxError("a quoted string is not closed")
    text = "".join(pieces)
    if any(character < " " and character not in "\t\n" for character in text):
        raise ShellSyntaxError("a quoted string holds control characters")
    return text, position + 1


def _decode_ansi(found: re.Match[str]) -> str:
    kind = found.lastindex
    if kind is None:
        return found.group()
    if kind == _LETTER:
        if found.group(kind) == "c":
            raise ShellSyntaxError("a quoted string holds a control character")
        return _ANSI_LETTERS.get(found.group(kind), found.group())
    value = int(found.group(kind), 8) & 0xFF if kind == _OCTAL else int(found.group(kind), 16)
    # Bytes above ASCII combine to characters only in the shell's locale; zero ends the string in bash.
    by_locale = value > 0x7F and kind in (_BYTE, _OCTAL)
    if value == 0 or value > 0x10FFFF or 0xD800 <= value <= 0xDFFF or by_locale:
        raise ShellSyntaxError("a quoted string holds bytes whose meaning depends on the locale")
    return chr(value)
