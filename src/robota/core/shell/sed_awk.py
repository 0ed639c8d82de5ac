"""Small readers for the languages that `sed` and `awk` take on their command line.

Each answers one question: can this program text start a process or open a file by itself? In doubt, and for
all that is not on a short list of harmless constructs, the answer is yes.
"""

from __future__ import annotations

import re

MAXIMUM_LENGTH = 4_000
"""A longer program text is not read; it counts as harmful."""

_BRACKET = re.compile(r"\[\^?\]?(?:\[[:.=][^\]\n]*\]|[^\]\n])*\]")
_SED_SEPARATORS = re.compile(r"[\s;]*")
_SED_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$)(?:I|M)*")
_SED_ADDRESS_FLAGS = re.compile(r"[IM]*")
_SED_NEGATION = re.compile(r"[ \t!]*")
_SED_SECOND = re.compile(r",[ \t+~]*")
_SED_COMMANDS = {
    "dDgGhHlnNpPxzFqQ=": re.compile(r"[\d \t]*"),
    "{}": re.compile(""),
    ":btT": re.compile(r"[^;\n}]*"),
    "aic": re.compile(r"(?:\\.|[^\\\n])*(?:\n|\\?\Z)", re.DOTALL),
    "#": re.compile(r"[^\n]*"),
}
"""What follows harmless commands: a number, nothing, a label, a text."""
_SED_FLAGS = re.compile(r"[gpiImM0-9]*")


def sed_escapes(script: str) -> bool:
    """Whether a sed script may run a command (`e`), or open a file to write (`w`) or read it (`r`)."""
    if len(script) > MAXIMUM_LENGTH:
        return True
    position: int | None = 0
    while position is not None and position < len(script):
        position = _skip_sed_command(script, position)
    return position is None


def sed_files(script: str) -> list[str]:
    """The files that a sed script names, as far as it can be read."""
    found: list[str] = []
    position: int | None = 0
    while position is not None and position < len(script):
        after = _skip_sed_addresses(script, _match_end(_SED_SEPARATORS, script, position))
        command = "" if after is None else script[after : after + 1]
        end = _after_sed_substitution(script, after + 1) if after is not None and command == "s" else after
        if end is not None and script[end : end + 1] in ("r", "R", "w", "W"):
            name, _, _ = script[end + 1 :].partition("\n")
            found.append(name.lstrip(" \t"))
            position = end + 1 + len(name)
        else:
            position = _skip_sed_command(script, position)
    return found


def _skip_sed_command(script: str, position: int) -> int | None:
    """The position after one sed command; None when it is harmful or not understood."""
    after = _skip_sed_addresses(script, _match_end(_SED_SEPARATORS, script, position))
    if after is None or after >= len(script):
        return after
    command, position = script[after], after + 1
    if command in "sy":
        return _skip_sed_substitution(script, position, command)
    rest = next((rest for commands, rest in _SED_COMMANDS.items() if command in commands), None)
    return None if rest is None else _match_end(rest, script, position)


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()


def _skip_sed_addresses(script: str, position: int) -> int | None:
    for _ in range(2):
        found = _skip_sed_address(script, position)
        if found is None:
            return None
        position = _match_end(_SED_NEGATION, script, found)
        second = _SED_SECOND.match(script, position)
        if second is None:
            return position
        position = second.end()
    return position


def _skip_sed_address(script: str, position: int) -> int | None:
    number = _SED_ADDRESS.match(script, position)
    if number is not None:
        return number.end()
    if script.startswith("/", position):
        end = _skip_delimited(script, position + 1, "/", brackets=True)
    else:
        return position
    return None if end is None else _match_end(_SED_ADDRESS_FLAGS, script, end)


def _after_sed_substitution(script: str, position: int, *, brackets: bool = True) -> int | None:
    """The position after both texts and the harmless flags."""
    if position >= len(script) or script[position] in "\\\n":
        return None
    delimiter = script[position]
    middle = _skip_delimited(script, position + 1, delimiter, brackets=brackets)
    end = None if middle is None else _skip_delimited(script, middle, delimiter)
    return end if end is None or not brackets else _match_end(_SED_FLAGS, script, end)


def _skip_sed_substitution(script: str, position: int, command: str) -> int | None:
    end = _after_sed_substitution(script, position, brackets=command == "s")
    if end is None or command == "y":
        return end
    following = script[end : end + 1]
    return end if following in ("", ";", "}", "\n", " ", "\t", "#") else None


def _skip_delimited(script: str, position: int, delimiter: str, *, brackets: bool = False) -> int | None:
    """The position after the next delimiter that is not escaped and, with `brackets`, not inside of some."""
    while position < len(script):
        character = script[position]
        if character == delimiter:
            return position + 1
        if character == "\n":
            return None
        if brackets and character == "[":
            bracket = _BRACKET.match(script, position)
            if bracket is None:
                return None
            position = bracket.end()
        else:
            position += 2 if character == "\\" else 1
    return None


_AWK_WORDS = re.compile(r"system|getline|extension|ARGV|ARGC|@|>|\||\\\n")
"""Without any of these a program only computes and prints, however its slashes and quotes are read."""
_AWK_TOKENS = re.compile(
    r"""(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<comment>\#[^\n]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][0-9.]*)|(?P<blank>[ \t\r]+)
    |(?P<sign>\|\||&&|>=|<=|==|!=|!~|\+\+|--|[-+*/%^]=|[-+*%^!~<>=?:;,(){}\[\]$\n])""",
    re.VERBOSE,
)
_AWK_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:\[:[a-z]+:\]|[^\]\n/\\\[])*\])*/")
_AWK_HARMFUL = frozenset({"system", "getline", "extension", "ARGV", "ARGC"})
_AWK_KEYWORDS = frozenset(
    {"print", "printf", "return", "in", "if", "while", "do", "else", "case", "exit", "delete", "next"}
)
_AWK_BEFORE_REGEX = frozenset({"", "(", ",", "~", "!~", "!", "&&", "||", "{", "}", ";", "\n"})
_AWK_ENDS = frozenset({"string", "name", "number", "regex", ")", "]", "}", ";", "$"})


def awk_escapes(program: str) -> bool:
    """Whether an awk program may start a process, or open a file to write or read it.

    Slashes, quotes and brackets are read only where all awks read them alike.
    """
    if len(program) > MAXIMUM_LENGTH:
        return True
    return _AWK_WORDS.search(program) is not None and _awk_redirects(program)


def _awk_redirects(program: str) -> bool:
    position, depth, previous, kind, printing = 0, 0, "", "", False
    while position < len(program):
        if program[position] == "/":
            read = _read_awk_slash(program, position, previous, kind)
            if read is None:
                return True
            position, kind, previous = read
            continue
        found = _AWK_TOKENS.match(program, position)
        if found is None or found.group() in _AWK_HARMFUL:
            return True
        token, position = found.group(), found.end()
        if found.lastgroup in ("blank", "comment"):
            continue
        if token == ">" and printing and depth == 0:
            return True
        depth += (token in ("(", "[")) - (token in (")", "]"))
        if token in ("print", "printf"):
            printing, depth = True, 0
        elif token in (";", "}", "{") or (token == "\n" and (kind in _AWK_ENDS or previous in _AWK_ENDS)):
            printing = False
        previous, kind = token, found.lastgroup or ""
    return False


def _read_awk_slash(program: str, position: int, previous: str, kind: str) -> tuple[int, str, str] | None:
    """The position after a division or a regular expression, and what it is; None when it may be either."""
    if previous in _AWK_BEFORE_REGEX:
        found = _AWK_REGEX.match(program, position)
        return None if found is None else (found.end(), "regex", ")")
    divides = kind == "number" or previous == "]" or (kind == "name" and previous not in _AWK_KEYWORDS)
    return (position + 1, "sign", "/") if divides else None
