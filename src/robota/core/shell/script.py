"""What a shell text consists of: words, and the simple commands they form, in the order written."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct

PieceKind: TypeAlias = Literal["text", "variable", "substitution", "arithmetic"]
Piece: TypeAlias = tuple[PieceKind, str, bool]
"""Kind, text as written (a variable's own name), quoted."""

# Marks inside `Word.key`: control characters, since a command that holds such characters is never allowed.
QUOTED_BLANK = "\x1f"
COMPUTED = "\x1e"
LIVE = "\x1c"

MAXIMUM_BRACE_WORDS = 256
MAXIMUM_BRACE_LENGTH = 4_000
MAXIMUM_BRACES = 32

_LIVE_CHARACTERS = re.compile(r"([?\[])")
_OPEN: Piece = ("text", "{", False)
_COMMA: Piece = ("text", ",", False)
_CLOSE: Piece = ("text", "}", False)


class ShellSyntaxError(ValueError):
    """The text is not a shell program that can be judged with certainty."""


class Word(Struct, frozen=True):
    text: str
    """After quote removal; an expansion stays as written."""
    raw: str
    key: str
    """`text` with marks that keep apart what quoting keeps apart: `a b` and `"a b"`, `$x` and `'$x'`."""
    pieces: tuple[Piece, ...] = ()
    """Empty for a plain literal word."""
    expanded: bool = False
    """Whether it is one of the words of a brace expansion."""

    @property
    def computed(self) -> bool:
        """Whether an expansion decides the value."""
        return bool(self.pieces) and any(piece[0] != "text" for piece in self.pieces)

    @property
    def globbed(self) -> bool:
        return any(kind == "text" and not quoted and has_glob(text) for kind, text, quoted in self.pieces)

    @property
    def literal(self) -> bool:
        """Whether the value is exactly `text`."""
        return not self.pieces or not (self.computed or self.globbed)

    @property
    def tilde(self) -> bool:
        return self.raw.startswith("~")

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(text for kind, text, _ in self.pieces if kind == "variable")


def has_glob(text: str) -> bool:
    """Whether the shell would look for files that an unquoted text names."""
    return "*" in text or "?" in text or ("[" in text and "]" in text)


def plain_word(text: str) -> Word:
    return Word(text, text, text)


UNKNOWN_WORD = Word("…", "…", COMPUTED + "…", (("substitution", "…", False),))
"""Stands for arguments that arrive at run time (`xargs`, `find -exec {}`)."""


class Redirection(Struct):
    operator: str
    target: Word | None = None
    descriptor: str = ""
    body: str | None = None
    """The text of a here-document, once its lines were read."""

    @property
    def duplicates(self) -> bool:
        """Whether it only copies or closes a descriptor (`2>&1`, `>&-`)."""
        if self.operator not in (">&", "<&") or self.target is None or not self.target.literal:
            return False
        text = self.target.text
        return text == "-" or (text.removesuffix("-")).isdigit()

    @property
    def writes(self) -> bool:
        """Whether it opens a file for writing, the null device apart."""
        if (
            self.target is None
            or self.duplicates
            or self.operator not in (">", ">>", ">|", "&>", "&>>", ">&", "<>")
        ):
            return False
        return not (self.target.literal and self.target.text == "/dev/null")

    @property
    def reads(self) -> bool:
        return self.target is not None and not self.duplicates and self.operator in ("<", "<>", "<&")


class Assignment(Struct, frozen=True):
    name: str
    value: Word | None
    """None when it is an array or an element of one."""
    raw: str


class Command(Struct, frozen=True):
    """One simple command: a part in the sense of the permission rules."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    scope: tuple[int, ...] = ()
    """The subshells around it: `cd` in one is not felt outside."""
    chain: int = 0
    """Commands joined by `&&` or `|` share a number."""
    piped: bool = False
    """Whether its input comes from another command."""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def raw(self) -> str:
        return " ".join(word.raw for word in self.words if word.raw)


class Script(Struct, eq=False):
    """A parsed shell text."""

    commands: list[Command] = []
    redirections: list[Command] = []
    """Redirections of compound commands or without a command, as commands without words."""
    lasting: set[str] = set()
    """Variables set for more than one command."""
    assigned: dict[str, list[str | None]] = {}
    """Every variable the text sets, with the literal values (None: not known)."""
    functions: set[str] = set()
    evaluates_text: bool = False
    """Whether bash evaluates contents of variables as arithmetic, which runs commands held in them."""
    parameters: bool = False
    """Whether the positional parameters come from elsewhere in the text."""
    holds_code: bool = False
    """Whether a quoted text contains a command substitution."""
    set_names: frozenset[str] | None = None
    """Variables that builtins set; worked out on first use."""
    outer: Script | None = None
    """The text around this one, whose variables it may use."""
    facts: dict[tuple[str, str], bool] = {}
    """What was found out about a variable's values; a long text asks for the same ones often."""
    scopes: int = 0

    def next_scope(self) -> int:
        self.scopes += 1
        return self.scopes

    def assign(self, name: str, value: Word | None, *, lasting: bool = True) -> None:
        if lasting:
            self.lasting.add(name)
        self.assigned.setdefault(name, []).append(value.text if value is not None and value.literal else None)


def build_words(pieces: list[Piece], raw: str) -> list[Word]:
    """The words that one written word becomes: brace expansion can make several."""
    if any(kind == "text" and not quoted and "{" in text for kind, text, quoted in pieces):
        expanded = _expand_braces(pieces)
        if len(expanded) != 1 or expanded[0] != pieces:
            # Only the first carries the source, so that joining the words' sources gives it again.
            return [
                build_word(each, "" if index else raw, expanded=True) for index, each in enumerate(expanded)
            ]
    return [build_word(pieces, raw)]


def build_word(pieces: list[Piece], raw: str, *, expanded: bool = False) -> Word:
    text = "".join(piece[1] if piece[0] == "text" else _show(piece) for piece in pieces)
    key = "".join(_key(piece) for piece in pieces)
    if raw.startswith("~"):
        key = LIVE + key
    return Word(text, raw, key, tuple(pieces), expanded)


def _show(piece: Piece) -> str:
    return "$" + piece[1] if piece[0] == "variable" else piece[1]


def _key(piece: Piece) -> str:
    kind, text, quoted = piece
    if kind != "text":
        return COMPUTED + _show(piece)
    text = text.replace(" ", QUOTED_BLANK)
    return text if quoted else _LIVE_CHARACTERS.sub(LIVE + r"\1", text)


def _expand_braces(pieces: list[Piece]) -> list[list[Piece]]:
    """`a{b,c}` as bash expands it; past the limit the word counts as computed, never as plain text."""
    units: list[Piece] = []
    for kind, text, quoted in pieces:
        if kind == "text" and not quoted:
            units.extend((kind, character, quoted) for character in text)
        else:
            units.append((kind, text, quoted))
    if len(units) > MAXIMUM_BRACE_LENGTH or units.count(_OPEN) > MAXIMUM_BRACES:
        return [[("substitution", "{…}", False)]]
    pending, done = [units], list[list[Piece]]()
    while pending:
        current = pending.pop(0)
        group = _find_group(current)
        if group is None:
            done.append(current)
        else:
            start, end, choices = group
            pending = [current[:start] + choice + current[end:] for choice in choices] + pending
        if len(pending) + len(done) > MAXIMUM_BRACE_WORDS:
            return [[("substitution", "{…}", False)]]
    return [_join_units(each) for each in done]


def _find_group(units: list[Piece]) -> tuple[int, int, list[list[Piece]]] | None:
    for start, unit in enumerate(units):
        if unit == _OPEN and not (start and units[start - 1] == ("text", "$", False)):
            found = _read_group(units, start)
            if found is not None:
                return (start, *found)
    return None


def _read_group(units: list[Piece], start: int) -> tuple[int, list[list[Piece]]] | None:
    depth, choices, choice = 0, list[list[Piece]](), list[Piece]()
    for index in range(start + 1, len(units)):
        unit = units[index]
        if unit == _CLOSE and depth == 0:
            if choices:
                return index + 1, [*choices, choice]
            text = "".join(unit[1] for unit in choice)
            if ".." not in text or any(unit[0] != "text" for unit in choice):
                return None
            return index + 1, [[("arithmetic", "{" + text + "}", False)]]
        if unit == _COMMA and depth == 0:
            choices.append(choice)
            choice = []
            continue
        depth += (unit == _OPEN) - (unit == _CLOSE)
        choice.append(unit)
    return None


def _join_units(units: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for kind, text, quoted in units:
        if joined and kind == "text" and joined[-1][0] == "text" and joined[-1][2] == quoted:
            joined[-1] = ("text", joined[-1][1] + text, quoted)
        else:
            joined.append((kind, text, quoted))
    return joined
