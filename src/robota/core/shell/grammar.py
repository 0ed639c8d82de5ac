"""The shell grammar: a text in, its simple commands out.

Written for bash and strict: what bash might read differently raises `ShellSyntaxError` and is then asked
about. The reader is our own because the published grammars skip commands that bash runs (substitutions in
here-documents and in patterns, words joined by a backslash at a line end) without reporting an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from robota.core.shell.lexer import ends_word, read_arithmetic, read_word
from robota.core.shell.reader import Reader
from robota.core.shell.script import Assignment, Command, Redirection, Script, ShellSyntaxError, Word
from robota.core.shell.tokens import read_assignment, read_redirection, skip_blanks

_CLOSERS = frozenset({"then", "do", "done", "fi", "esac", "elif", "else", "}"})
_RESERVED = re.compile(
    r"(?:if|while|until|for|select|case|function|coproc|then|do|done|fi|esac|elif|else|\[\[|[{}!])"
    r"(?=[\s;&|<>()]|\Z)"
)
_TIMED_COMPOUND = re.compile(
    r"time(?:[ \t]+-p)?(?:[ \t]+--)?[ \t]+(?=[({!]|\[\[|(?:if|while|until|for|select|case)\s)"
)
_NEGATION = re.compile(r"!(?=[\s;&|<>()]|\Z)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMPOUND_START = re.compile(r"[({]|\[\[|(?:if|while|until|for|select|case)(?=[\s;(])")
_NAMED_COPROCESS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ \t]+(?=[({]|(?:if|while|until|for|select|case)\s)")
_IN = re.compile(r"in(?=[\s;])")
_ESAC = re.compile(r"esac(?=[\s;&|<>()]|\Z)")
_TEST_END = re.compile(r"\]\](?=[\s;&|<>()]|\Z)")
_ARITHMETIC_TESTS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


def parse_shell(text: str) -> Script:
    """Read a whole text; raises `ShellSyntaxError` when it cannot be read with certainty."""
    script = Script()
    reader = Reader(text, script, read_commands)
    try:
        read_commands(reader, "")
    except RecursionError:
        raise ShellSyntaxError("nested too deeply to be judged") from None
    return script


def read_commands(reader: Reader, closing: str) -> None:
    _read_list(reader, frozenset({closing}), may_be_empty=True)
    if reader.heredocs:
        raise ShellSyntaxError("a here-document is not closed")


def _read_list(reader: Reader, stops: frozenset[str], *, may_be_empty: bool = False) -> str:
    """Commands up to one of the stops, which is consumed and returned."""
    empty = may_be_empty
    while True:
        skip_blanks(reader, lines=True)
        stop = _stop_here(reader, stops)
        if stop is not None:
            if not empty and stop != ";;":
                raise ShellSyntaxError("a command was expected")
            reader.pos += len(stop)
            return stop
        _read_and_or(reader)
        empty = True
        skip_blanks(reader)
        following = reader.peek(2)
        if following[:1] in (";", "&") and following not in (";;", ";&", "&&"):
            reader.pos += 1
        elif following[:1] not in ("", "\n") and _stop_here(reader, stops) is None:
            raise ShellSyntaxError("an operator or a line end was expected")
        reader.chain = reader.script.next_scope()


def _stop_here(reader: Reader, stops: frozenset[str]) -> str | None:
    if reader.at_end():
        if "" not in stops:
            raise ShellSyntaxError("the text ends inside a command")
        return ""
    character = reader.peek()
    if character == ")":
        if ")" not in stops:
            raise ShellSyntaxError("a closing parenthesis has no opening one")
        return ")"
    if character == ";" and ";;" in stops:
        for stop in (";;&", ";;", ";&"):
            if reader.src.startswith(stop, reader.pos):
                reader.pos += len(stop) - 2
                return ";;"
    reserved = _RESERVED.match(reader.src, reader.pos)
    if reserved is not None and reserved.group() in _CLOSERS:
        if reserved.group() not in stops:
            raise ShellSyntaxError(f"`{reserved.group()}` is out of place")
        return reserved.group()
    return None


def _read_and_or(reader: Reader) -> None:
    while True:
        _read_pipeline(reader)
        skip_blanks(reader)
        operator = reader.peek(2)
        if operator not in ("&&", "||"):
            return
        reader.pos += 2
        chain = reader.chain
        skip_blanks(reader, lines=True)
        reader.chain = chain if operator == "&&" else reader.script.next_scope()


def _read_pipeline(reader: Reader) -> None:
    outer = reader.piped
    _skip_pipeline_words(reader)
    while True:
        _read_command(reader)
        skip_blanks(reader)
        if reader.peek() != "|" or reader.peek(2) == "||":
            reader.piped = outer
            return
        reader.pos += 2 if reader.peek(2) == "|&" else 1
        chain = reader.chain
        skip_blanks(reader, lines=True)
        reader.chain, reader.piped = chain, True


def _skip_pipeline_words(reader: Reader) -> None:
    """`!`, and a `time` before a compound command; before a simple one, `time` is read as a program."""
    while True:
        if reader.take(_NEGATION):
            skip_blanks(reader)
        elif not reader.take(_TIMED_COMPOUND):
            return


def _read_command(reader: Reader) -> None:
    if reader.peek() == "(":
        _read_compound(reader, "((" if reader.peek(2) == "((" else "(")
        return
    reserved = _RESERVED.match(reader.src, reader.pos)
    if reserved is None:
        _read_simple(reader)
    elif reserved.group() in _CLOSERS or reserved.group() == "!":
        raise ShellSyntaxError(f"`{reserved.group()}` is out of place")
    else:
        _read_compound(reader, reserved.group())


def _read_compound(reader: Reader, opening: str) -> None:
    reader.enter()
    reader.pos += len(opening)
    _COMPOUNDS[opening](reader)
    reader.leave()
    redirections: list[Redirection] = []
    while True:
        skip_blanks(reader)
        redirection = read_redirection(reader)
        if redirection is None:
            break
        redirections.append(redirection)
    if redirections:
        reader.script.redirections.append(Command((), (), tuple(redirections), reader.scope, reader.chain))


def _expect(reader: Reader, word: str) -> None:
    skip_blanks(reader, lines=True)
    end = reader.pos + len(word)
    if not reader.src.startswith(word, reader.pos) or (word.isalpha() and not ends_word(reader.src, end)):
        raise ShellSyntaxError(f"`{word}` was expected")
    reader.pos = end


def _read_group(reader: Reader) -> None:
    _read_list(reader, frozenset({"}"}))


def _read_if(reader: Reader) -> None:
    stop = "elif"
    while stop == "elif":
        _read_list(reader, frozenset({"then"}))
        stop = _read_list(reader, frozenset({"elif", "else", "fi"}))
    if stop == "else":
        _read_list(reader, frozenset({"fi"}))


def _read_loop(reader: Reader) -> None:
    _read_list(reader, frozenset({"do"}))
    _read_list(reader, frozenset({"done"}))


def _read_for(reader: Reader) -> None:
    skip_blanks(reader)
    if reader.skip("(("):
        read_arithmetic(reader, "))")
    else:
        _read_for_words(reader)
    skip_blanks(reader)
    reader.skip(";")
    skip_blanks(reader, lines=True)
    if reader.skip("{"):
        _read_group(reader)
    else:
        _expect(reader, "do")
        _read_list(reader, frozenset({"done"}))


def _read_for_words(reader: Reader) -> None:
    name = reader.take(_NAME)
    if name is None:
        raise ShellSyntaxError("a loop has no variable")
    skip_blanks(reader, lines=True)
    if not reader.take(_IN):
        reader.script.assign(name.group(), None)
        return
    words: list[Word] = []
    while True:
        skip_blanks(reader)
        if reader.peek() in ("", "\n", ";"):
            break
        words.extend(read_word(reader))
    for word in words:
        reader.script.assign(name.group(), word)


def _read_case(reader: Reader) -> None:
    skip_blanks(reader)
    read_word(reader)
    _expect(reader, "in")
    while True:
        skip_blanks(reader, lines=True)
        if reader.take(_ESAC):
            return
        reader.skip("(")
        _read_case_patterns(reader)
        if _read_list(reader, frozenset({";;", "esac"}), may_be_empty=True) == "esac":
            return


def _read_case_patterns(reader: Reader) -> None:
    while True:
        skip_blanks(reader)
        read_word(reader)
        skip_blanks(reader)
        if reader.skip(")"):
            return
        if not reader.skip("|"):
            raise ShellSyntaxError("a pattern of `case` is not closed")


def _read_function(reader: Reader) -> None:
    skip_blanks(reader)
    name = read_word(reader)[0].text
    skip_blanks(reader)
    if reader.skip("("):
        _expect(reader, ")")
    _read_body(reader, name)


def _read_body(reader: Reader, name: str) -> None:
    reader.script.functions.add(name)
    skip_blanks(reader, lines=True)
    if not _COMPOUND_START.match(reader.src, reader.pos):
        raise ShellSyntaxError("a function has no body")
    _read_command(reader)


def _read_coprocess(reader: Reader) -> None:
    skip_blanks(reader)
    reader.take(_NAMED_COPROCESS)
    _read_command(reader)


def _read_test(reader: Reader) -> None:
    """`[[ … ]]`: nothing runs but what its words expand to."""
    in_regex = False
    while True:
        skip_blanks(reader, lines=True)
        if reader.take(_TEST_END):
            return
        if reader.at_end():
            raise ShellSyntaxError("`[[` is not closed")
        if reader.peek(2) in ("&&", "||"):
            reader.pos += 2
        elif not in_regex and reader.peek() in "()<>" and reader.peek(2) not in ("<(", ">("):
            reader.pos += 1
        else:
            in_regex = _read_test_word(reader, in_regex)


def _read_test_word(reader: Reader, in_regex: bool) -> bool:
    """One word of a test; whether a regular expression, which may begin with `(` and hold `|`, comes next."""
    reader.pos += in_regex and reader.peek() == "|"
    word = read_word(reader, grouping=True)[0]
    if word.text in _ARITHMETIC_TESTS:
        reader.script.evaluates_text = True
    return word.raw == "=~" or (in_regex and reader.peek() == "|" and reader.peek(2) != "||")


_COMPOUNDS: dict[str, Callable[[Reader], None]] = {
    "(": lambda reader: reader.read_nested(")"),
    "((": lambda reader: read_arithmetic(reader, "))"),
    "{": _read_group,
    "if": _read_if,
    "while": _read_loop,
    "until": _read_loop,
    "for": _read_for,
    "select": _read_for,
    "case": _read_case,
    "function": _read_function,
    "coproc": _read_coprocess,
    "[[": _read_test,
}


def _read_simple(reader: Reader) -> None:
    words: list[Word] = []
    assignments: list[Assignment] = []
    redirections: list[Redirection] = []
    start = reader.pos
    while True:
        skip_blanks(reader)
        character = reader.peek()
        redirection = read_redirection(reader) if character and character in "<>&{0123456789" else None
        if redirection is not None:
            redirections.append(redirection)
        elif character == "" or character in ";&|\n)":
            break
        elif character == "(":
            _read_definition(reader, words, assignments)
            return
        elif not read_assignment(reader, words, assignments):
            words.extend(read_word(reader))
    if reader.pos == start:
        raise ShellSyntaxError("a command was expected")
    _add_simple(reader, words, assignments, redirections)


def _add_simple(
    reader: Reader, words: list[Word], assignments: list[Assignment], redirections: list[Redirection]
) -> None:
    script = reader.script
    if words and words[0].raw == "time":
        _note_timed_assignments(script, words[1:])
    for assignment in assignments:
        script.assign(assignment.name, assignment.value, lasting=not words)
    command = Command(
        tuple(words), tuple(assignments), tuple(redirections), reader.scope, reader.chain, reader.piped
    )
    if words:
        script.commands.append(command)
    elif redirections:
        script.redirections.append(command)


def _note_timed_assignments(script: Script, words: list[Word]) -> None:
    """`time` is a keyword: without a command, assignments after it stay in force."""
    for word in words:
        name, equals, _ = word.text.partition("=")
        if equals:
            script.assign(name.partition("[")[0].rstrip("+"), None)
        elif word.text not in ("-p", "--"):
            return


def _read_definition(reader: Reader, words: list[Word], assignments: list[Assignment]) -> None:
    if len(words) != 1 or assignments or words[0].raw != words[0].text:
        raise ShellSyntaxError("a parenthesis is out of place")
    reader.pos += 1
    _expect(reader, ")")
    _read_body(reader, words[0].text)
