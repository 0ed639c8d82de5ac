"""The small shell grammar: a text in, its simple commands out.

The grammar is written down in docs/permissions.md, and the tests generate texts from that page. It is small
on purpose: what bash reads in a way that takes more than a page to say raises `ShellSyntaxError` and is then
asked about.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from robota.core.shell.flat import read_flat
from robota.core.shell.lexer import Reader, is_readable, read_assignment, read_quoted_piece, read_word
from robota.core.shell.programs import BUILTINS, load_programs
from robota.core.shell.script import (
    Assignment,
    Command,
    Piece,
    Redirection,
    Script,
    ShellSyntaxError,
    Word,
)

_BLANKS = re.compile(r"(?:[ \t]|\\\n(?=[ \t])|(?<![^ \t\n])\\\n|(?<=[;&|(])\\\n(?![;&|<>(]))*")
_BLANK = frozenset(" \t\\")
_SKIPPED = _BLANK | {"#", "\n"}
_PLAIN = re.compile(_BLANKS.pattern + r"(?:([A-Za-z0-9_./:=@%+,^\]-]+)(?=[ \t\n;|)]|&(?!>)|\Z))?")
_REDIRECTION = re.compile(r"([012])?(>>|>\||>&|>|<<<|<<-|<<|<)|(&>>|&>)")
_COPIED = re.compile(r"[12](?=[ \t\n;&|)]|\\\n[ \t]|\Z)")
_DELIMITER = re.compile(
    r"""(?:([A-Za-z0-9_]+)|'([^'\n\\]+)'|"([^"\n\\$`]+)"|\\([A-Za-z0-9_]+))(?=[ \t\n;&|<>)]|\Z)"""
)
_TIMED = re.compile(r"time(?:[ \t]+-p)?[ \t]+(?=[({]|(?:if|while|until|for|case)[ \t\n])")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=[ \t\n])")
_CLOSERS = frozenset({"then", "do", "done", "fi", "esac", "elif", "else", "}"})
_CLOSER_STARTS = frozenset(word[0] for word in _CLOSERS)
_FOREIGN = {
    "function": "a function",
    "coproc": "a coprocess",
    "select": "a menu by `select`",
    "((": "arithmetic in `((…))`, or two subshells",
}
_KEYWORD = re.compile(
    r"(?:if|while|until|for|case|select|function|coproc|then|do|done|fi|esac|elif|else|\[\[|[{}!])"
    r"(?=[ \t\n;&|<>()]|\Z)"
)
_KEYWORD_STARTS = frozenset("iwufcstde[{}!")
_REGEX = re.compile(
    r"(?:[A-Za-z0-9_.^*+?()\[\]|{},:/@%=#-]|\\[.^$*+?()\[\]|{}/dswb-]|\$(?=[)| \t]))+(?=[ \t])"
)
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|<>)]|\Z)")
_TESTS = frozenset({
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-o", "-p", "-r", "-s", "-t", "-u", "-w",
    "-x", "-z", "-G", "-L", "-N", "-O", "-S",
})  # fmt: skip
_COMPARISONS = frozenset(["=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"])
_NUMERIC_TESTS = frozenset(["-eq", "-ne", "-lt", "-le", "-gt", "-ge"])


def parse_shell(text: str) -> Script:
    """Read a whole text; raises `ShellSyntaxError` when it is outside the grammar."""
    flat = read_flat(text)
    if flat is not None:
        return flat
    if not is_readable(text):
        raise ShellSyntaxError("a blank or control character that is not a space, a tab or a line end")
    script = Script()
    try:
        _read_commands(Reader(text, script, _read_commands), "")
    except RecursionError:
        raise ShellSyntaxError("nested too deeply to be judged") from None
    return script


def _read_commands(reader: Reader, closing: str) -> None:
    _read_list(reader, closing, may_be_empty=True)
    if reader.heredocs and closing in ("", ")"):
        raise ShellSyntaxError("a here-document that is not closed")


def _skip_blanks(reader: Reader, *, lines: bool = False) -> None:
    """Move to the next token; with `lines`, over line ends too (where here-documents are read)."""
    src = reader.src
    while (character := src[reader.pos : reader.pos + 1]) in _SKIPPED:
        if character == " ":
            reader.pos += 1
            continue
        if character in _BLANK:
            reader.take(_BLANKS)
            character = src[reader.pos : reader.pos + 1]
        if character == "#":
            end = src.find("\n", reader.pos)
            reader.pos = len(src) if end < 0 else end
        elif character == "\n" and lines:
            reader.pos += 1
            reader.chain = reader.script.next_scope()
            if reader.heredocs:
                _read_bodies(reader)
        else:
            return


def _read_list(reader: Reader, *stops: str, may_be_empty: bool = False) -> str:
    """Commands up to one of the stops, which is consumed and returned."""
    empty = may_be_empty
    while True:
        _skip_blanks(reader, lines=True)
        stop = _stop_here(reader, stops)
        if stop is not None:
            if not empty:
                raise ShellSyntaxError("a command was expected")
            reader.pos += len(stop)
            return stop
        start = len(reader.script.commands)
        following = _read_and_or(reader)
        empty = True
        if following[:1] == ";" and following not in (";;", ";&"):
            reader.pos += 1
        elif following[:1] == "&":
            reader.pos += 1
            _mark_unsteady(reader, start)
        elif following[:1] not in ("", "\n") and _stop_here(reader, stops) is None:
            raise ShellSyntaxError("text where an operator or a line end was expected")
        reader.chain = reader.script.next_scope()


def _stop_here(reader: Reader, stops: tuple[str, ...]) -> str | None:
    character = reader.src[reader.pos : reader.pos + 1]
    if character == "" or character == ")":
        if character not in stops:
            raise ShellSyntaxError(
                "a parenthesis out of place" if character else "a command that is not closed"
            )
        return character
    if character == ";" and ";;" in stops and reader.peek(2) == ";;" and reader.peek(3) != ";;&":
        return ";;"
    if character not in _CLOSER_STARTS:
        return None
    found = _KEYWORD.match(reader.src, reader.pos)
    if found is None or found.group() not in _CLOSERS:
        return None
    if found.group() not in stops:
        raise ShellSyntaxError(f"`{found.group()}` out of place")
    return found.group()


def _mark_unsteady(reader: Reader, start: int) -> None:
    reader.script.unsteady.append((start, len(reader.script.commands), reader.scope))


def _read_and_or(reader: Reader) -> str:
    """Pipelines joined by `&&` and `||`; the two characters that follow."""
    doubtful: int | None = None
    while True:
        operator = _read_pipeline(reader)
        if operator not in ("&&", "||"):
            break
        if operator == "||" and doubtful is None:
            doubtful = len(reader.script.commands)
        reader.pos += 2
        chain = reader.chain
        _skip_blanks(reader, lines=True)
        reader.chain = chain if operator == "&&" else reader.script.next_scope()
    if doubtful is not None:  # in `a || cd b && c` the last one may run without the `cd`
        _mark_unsteady(reader, doubtful)
    return operator


def _read_pipeline(reader: Reader) -> str:
    """Commands joined by `|`; the two characters that follow."""
    start, outer, piped = len(reader.script.commands), reader.piped, False
    character = reader.src[reader.pos : reader.pos + 1]
    if character == "!" and _KEYWORD.match(reader.src, reader.pos):
        reader.pos += 1
        _skip_blanks(reader)
        character = reader.peek()
    if character == "t" and reader.src.startswith("time", reader.pos):
        reader.take(_TIMED)
    while True:
        _read_command(reader)
        _skip_blanks(reader)
        operator = reader.src[reader.pos : reader.pos + 2]
        if operator[:1] != "|" or operator == "||":
            break
        piped = True
        reader.pos += 2 if operator == "|&" else 1
        chain = reader.chain
        _skip_blanks(reader, lines=True)
        reader.chain, reader.piped = chain, True
    reader.piped = outer
    if piped:
        _mark_unsteady(reader, start)
    return operator


def _read_command(reader: Reader) -> None:
    character = reader.src[reader.pos : reader.pos + 1]
    if character == "(":
        opening = reader.peek(2) if reader.peek(2) == "((" else "("
    elif character not in _KEYWORD_STARTS:
        _read_simple(reader)
        return
    else:
        found = _KEYWORD.match(reader.src, reader.pos)
        if found is None:
            _read_simple(reader)
            return
        opening = found.group()
    if opening in _FOREIGN:
        raise ShellSyntaxError(_FOREIGN[opening])
    if opening not in _COMPOUNDS:
        raise ShellSyntaxError(f"`{opening}` out of place")
    start = len(reader.script.commands)
    reader.enter()
    reader.pos += len(opening)
    _COMPOUNDS[opening](reader)
    reader.depth -= 1
    if opening not in "({":
        _mark_unsteady(reader, start)
    redirections: list[Redirection] = []
    while True:
        _skip_blanks(reader)
        redirection = _read_redirection(reader)
        if redirection is None:
            break
        redirections.append(redirection)
    if redirections:
        reader.script.redirections.append(Command((), (), tuple(redirections), reader.scope, reader.chain))


def _expect(reader: Reader, word: str) -> None:
    _skip_blanks(reader, lines=True)
    found = _KEYWORD.match(reader.src, reader.pos)
    if found is None or found.group() != word:
        raise ShellSyntaxError(f"text where `{word}` was expected")
    reader.pos = found.end()


def _read_if(reader: Reader) -> None:
    stop = "elif"
    while stop == "elif":
        _read_list(reader, "then")
        stop = _read_list(reader, "elif", "else", "fi")
    if stop == "else":
        _read_list(reader, "fi")


def _read_loop(reader: Reader) -> None:
    _read_list(reader, "do")
    _read_list(reader, "done")


def _read_for(reader: Reader) -> None:
    _skip_blanks(reader)
    name = reader.take(_NAME)
    _skip_blanks(reader)
    if name is None or reader.peek(2) != "in" or reader.peek(3)[2:] not in (" ", "\t"):
        raise ShellSyntaxError("a loop that is not `for name in words`")
    reader.pos += 2
    while True:
        _skip_blanks(reader)
        if reader.peek() in ("", "\n", ";"):
            break
        reader.script.assign(name.group(), read_word(reader))
    reader.skip(";")
    _expect(reader, "do")
    _read_list(reader, "done")


def _read_case(reader: Reader) -> None:
    _skip_blanks(reader)
    read_word(reader)
    _skip_blanks(reader, lines=True)
    if reader.peek(2) != "in" or reader.peek(3)[2:] not in (" ", "\t", "\n"):
        raise ShellSyntaxError("text where `in` was expected")
    reader.pos += 2
    while True:
        _skip_blanks(reader, lines=True)
        found = _KEYWORD.match(reader.src, reader.pos)
        if found is not None and found.group() == "esac":
            reader.pos = found.end()
            return
        reader.skip("(")
        _read_patterns(reader)
        if _read_list(reader, ";;", "esac", may_be_empty=True) == "esac":
            return


def _read_patterns(reader: Reader) -> None:
    while True:
        _skip_blanks(reader)
        read_word(reader)
        _skip_blanks(reader)
        if reader.skip(")"):
            return
        if not reader.skip("|"):
            raise ShellSyntaxError("a pattern of `case` that is not closed")


def _read_test(reader: Reader) -> None:
    """`[[ … ]]`: nothing runs but what its words expand to, unless it evaluates a text as arithmetic."""
    previous: Word | None = None
    numeric = False
    while True:
        _skip_blanks(reader)
        if reader.take(_TEST_END):
            return
        if reader.peek(2) in ("&&", "||"):
            reader.pos += 2
            previous = None
        elif reader.peek() in ("(", ")", "!", "<", ">") and reader.peek(2) not in ("<(", ">(", "(("):
            reader.pos += 1
        else:
            if previous is not None and previous.raw == "=~" and reader.take(_REGEX):
                previous = None
                continue
            word = read_word(reader)
            numeric_now = word.raw in _NUMERIC_TESTS
            if (numeric and not _is_number(word)) or (
                numeric_now and not (previous and _is_number(previous))
            ):
                raise ShellSyntaxError("arithmetic in `[[ … ]]` with anything but numbers")
            compared = previous is not None and previous.raw in _COMPARISONS
            if (
                word.raw[:1] == "-"
                and not compared
                and word.raw not in _TESTS | _COMPARISONS | _NUMERIC_TESTS
            ):
                raise ShellSyntaxError(f"the test `{word.raw}`")
            previous, numeric = word, numeric_now


def _is_number(word: Word) -> bool:
    return word.text.isdigit() or (
        bool(word.pieces) and all(kind == "arithmetic" for kind, _, _ in word.pieces)
    )


_COMPOUNDS: dict[str, Callable[[Reader], object]] = {
    "(": lambda reader: reader.read_nested(")"),
    "{": lambda reader: _read_list(reader, "}"),
    "if": _read_if,
    "while": _read_loop,
    "until": _read_loop,
    "for": _read_for,
    "case": _read_case,
    "[[": _read_test,
}


def _read_simple(reader: Reader) -> None:
    words: list[Word] = []
    assignments: list[Assignment] = []
    redirections: list[Redirection] = []
    src, plain = reader.src, _PLAIN
    while True:
        found = plain.match(src, reader.pos)
        assert found is not None  # it matches the empty text
        reader.pos, text = found.end(), found[1]
        if text is not None:
            word = Word(text, text, text)
        else:
            character = src[reader.pos : reader.pos + 1]
            if character in "<>&012" and (redirection := _read_redirection(reader)) is not None:
                redirections.append(redirection)
                continue
            if character in ";&|\n)#":  # or the end
                break
            if character == "(":
                raise ShellSyntaxError("a function" if len(words) == 1 else "a parenthesis out of place")
            word = read_word(reader)
        if redirections and not words and (word.raw == "time" or _KEYWORD.fullmatch(word.raw)):
            raise ShellSyntaxError(f"`{word.raw}` after a redirection")  # some are keywords even there
        if words or not read_assignment(word, assignments):
            words.append(word)
    _add_command(reader, words, assignments, redirections)


def _add_command(
    reader: Reader, words: list[Word], assignments: list[Assignment], redirections: list[Redirection]
) -> None:
    script = reader.script
    for assignment in assignments:
        script.assign(assignment.name, assignment.value, lasting=not words)
    command = Command(
        tuple(words), tuple(assignments), tuple(redirections), reader.scope, reader.chain, reader.piped
    )
    if words:
        if words[0].raw == "time":
            _check_timed(words)
        script.commands.append(command)
    elif redirections:
        script.redirections.append(command)
    elif not assignments:
        raise ShellSyntaxError("a command was expected")


def _check_timed(words: list[Word]) -> None:
    """After the keyword `time`, words are read as at the beginning of a command, and a builtin changes the
    shell itself."""
    changing = {"command"} | BUILTINS | load_programs().setters
    rest = [word.raw for word in words[1:4]]
    for option in ("-p", "--"):
        if rest[:1] == [option]:
            del rest[0]
    if rest and rest[0].startswith("-"):
        raise ShellSyntaxError(f"`{rest[0]}` after `time`")  # a program of that name
    for word in words[1:4]:
        if "=" in word.raw or "[" in word.raw or _KEYWORD.fullmatch(word.raw) or word.text in changing:
            raise ShellSyntaxError(f"`{word.raw}` after `time`")


def _read_redirection(reader: Reader) -> Redirection | None:
    """The redirection at the position, or None when there is none."""
    found = _REDIRECTION.match(reader.src, reader.pos)
    if found is None:
        return None
    operator, descriptor = found[2] or found[3], found[1] or ""
    reader.pos = found.end()
    following = reader.peek()
    if following in ("(", "&", "<", ">", "|"):
        raise ShellSyntaxError(
            "a process substitution" if following == "(" else "a redirection beyond the simple ones"
        )
    if operator == ">&":
        if reader.take(_COPIED) is None:
            raise ShellSyntaxError("a descriptor that is copied, moved or closed beyond `>&1` and `>&2`")
        return Redirection(operator, None, descriptor)
    reader.take(_BLANKS)
    if operator not in ("<<", "<<-"):
        return Redirection(operator, _read_target(reader), descriptor)
    delimiter = reader.take(_DELIMITER)
    if delimiter is None:
        raise ShellSyntaxError("a here-document whose end is not a plain word")
    redirection = Redirection(operator, None, descriptor)
    text = next(filter(None, delimiter.groups()))
    reader.heredocs.append((text, delimiter[1] is None, operator == "<<-", redirection))
    return redirection


def _read_target(reader: Reader) -> Word:
    if reader.peek() == "#":
        raise ShellSyntaxError("a redirection without a target")
    return read_word(reader)


def _read_bodies(reader: Reader) -> None:
    """Read the here-documents that wait for this line end."""
    pending, reader.heredocs = reader.heredocs, []
    for delimiter, quoted, tabs, redirection in pending:
        lines: list[str] = []
        while True:
            end = reader.src.find("\n", reader.pos)
            if end < 0 and reader.pos >= len(reader.src):
                raise ShellSyntaxError("a here-document that is not closed")
            line = reader.src[reader.pos : end if end >= 0 else len(reader.src)]
            shown = line.lstrip("\t") if tabs else line
            reader.pos = end + 1 if end >= 0 else len(reader.src)
            if shown == delimiter:
                break
            lines.append(shown)
            if end < 0:
                raise ShellSyntaxError("a here-document that is not closed")
        redirection.body = _read_body(reader, lines, delimiter, quoted=quoted)


def _read_body(reader: Reader, lines: list[str], delimiter: str, *, quoted: bool) -> str | None:
    body = "".join([line + "\n" for line in lines])
    if quoted or set(body).isdisjoint("$`\\"):
        return body
    # Bash joins a line that ends in a backslash with the next one before it looks for the delimiter.
    torn = (line[:-1] for line in lines if line.endswith("\\"))
    if lines[-1].endswith("\\") or any(delimiter.startswith(text) for text in torn):
        raise ShellSyntaxError("a here-document whose end may be torn by a backslash at a line end")
    inner = Reader(body, reader.script, reader.read_commands, 0, reader.depth, reader.scope, reader.chain)
    pieces: list[Piece] = []
    while inner.pos < len(body):
        read_quoted_piece(inner, pieces, escapable="$`\\")
    return "".join([piece[1] for piece in pieces]) if all(piece[0] == "text" for piece in pieces) else None
