"""What a shell text consists of: words, and the simple commands they form, in the order written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, TypeAlias

from msgspec import Struct

PieceKind: TypeAlias = Literal["text", "variable", "substitution", "arithmetic"]
Piece: TypeAlias = tuple[PieceKind, str, bool]
"""Kind, text as written (a variable's own name), quoted."""
Scope: TypeAlias = tuple[int, ...]

# Marks inside `Word.key`: control characters, since a command that holds such characters is never allowed.
QUOTED_BLANK = "\x1f"
COMPUTED = "\x1e"
LIVE = "\x1c"

_LIVE_CHARACTERS = re.compile(r"([?\[])")
_TEXT, _RAW = attrgetter("text"), attrgetter("raw")


class ShellSyntaxError(ValueError):
    """The text is outside the grammar of docs/permissions.md; the sentence names what was not understood."""


class Word(Struct, frozen=True, gc=False):
    text: str
    """After quote removal; an expansion stays as written."""
    raw: str
    key: str
    """`text` with marks that keep apart what quoting keeps apart: `a b` and `"a b"`, `$x` and `'$x'`."""
    pieces: tuple[Piece, ...] = ()
    """Empty for a plain literal word."""

    @property
    def computed(self) -> bool:
        """Whether an expansion decides the value."""
        for piece in self.pieces:  # noqa: SIM110 - asked for most words; a generator would double the cost
            if piece[0] != "text":
                return True
        return False

    @property
    def globbed(self) -> bool:
        live = [text for kind, text, quoted in self.pieces if kind == "text" and not quoted]
        return any(map(has_glob, live)) or (len(live) > 1 and spans_bracket(live))

    @property
    def literal(self) -> bool:
        """Whether the value is exactly `text`."""
        for kind, text, quoted in self.pieces:
            if kind != "text" or (not quoted and has_glob(text)):
                return False
        return len(self.pieces) < 3 or not self.globbed  # `[…]` may begin in one piece and end in another

    @property
    def tilde(self) -> bool:
        return self.raw.startswith("~")

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(text for kind, text, _ in self.pieces if kind == "variable")


def has_glob(text: str) -> bool:
    """Whether the shell would look for files that an unquoted text names."""
    return "*" in text or "?" in text or ("[" in text and "]" in text)


def spans_bracket(live: Sequence[str]) -> bool:
    """Whether `[…]` goes on beyond something quoted or computed (`.en["v"]`)."""
    opened = next((index for index, text in enumerate(live) if "[" in text), len(live))
    return any("]" in text for text in live[opened + 1 :])


def plain_word(text: str) -> Word:
    return Word(text, text, text)


UNKNOWN_WORD = Word("…", "…", COMPUTED + "…", (("substitution", "…", False),))
"""Stands for arguments that arrive at run time (`xargs`)."""
FOUND_WORD = Word("…", "{}", COMPUTED + "…", (("substitution", "…", False),))
"""Stands for a file that `find` has found below the directories it is given."""


class Redirection(Struct, gc=False):
    operator: str
    target: Word | None = None
    """None for a here-document and for a copied descriptor (`2>&1`)."""
    descriptor: str = ""
    body: str | None = None
    """The text of a here-document; None when an expansion in it decides what it says."""

    @property
    def writes(self) -> bool:
        """Whether it opens a file for writing, the null device apart."""
        if self.target is None or self.operator[0] == "<":
            return False
        return not (self.target.literal and self.target.text == "/dev/null")

    @property
    def reads(self) -> bool:
        return self.target is not None and self.operator == "<"


class Assignment(Struct, frozen=True, gc=False):
    name: str
    value: Word
    raw: str


class Command(Struct, frozen=True, gc=False):
    """One simple command: a part in the sense of the permission rules."""

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    scope: Scope = ()
    """The subshells around it: `cd` in one is not felt outside."""
    chain: int = 0
    """Commands joined by `&&` share a number."""
    piped: bool = False
    """Whether its input comes from another command."""

    @property
    def text(self) -> str:
        return " ".join(map(_TEXT, self.words))

    @property
    def raw(self) -> str:
        return " ".join(map(_RAW, self.words))


class Script(Struct, eq=False, gc=False):
    """A parsed shell text."""

    commands: list[Command] = []
    redirections: list[Command] = []
    """Redirections of compound commands or without a command, as commands without words."""
    lasting: set[str] = set()
    """Variables set for more than one command."""
    assigned: dict[str, list[Word]] = {}
    """Every variable the text sets, with its values."""
    unsteady: list[tuple[int, int, Scope]] = []
    """Stretches of commands that may run never, often or beside others: branches, loops, pipelines."""
    set_names: frozenset[str] | None = None
    """Variables that builtins set; worked out on first use."""
    facts: dict[tuple[str, bool], bool] = {}
    """What was found out about a variable's values; a long text asks for the same ones often."""
    scopes: int = 0

    def next_scope(self) -> int:
        self.scopes += 1
        return self.scopes

    def assign(self, name: str, value: Word, *, lasting: bool = True) -> None:
        if lasting:
            self.lasting.add(name)
        self.assigned.setdefault(name, []).append(value)


def build_word(pieces: list[Piece], raw: str) -> Word:
    text, key = "", LIVE if raw[:1] == "~" else ""
    for kind, written, quoted in pieces:
        if kind != "text":
            shown = "$" + written if kind == "variable" else written
            text += shown
            key += COMPUTED + shown
            continue
        text += written
        if quoted:
            key += written.replace(" ", QUOTED_BLANK)
        else:
            live = "?" in written or "[" in written
            key += _LIVE_CHARACTERS.sub(LIVE + r"\1", written) if live else written
    return Word(text, raw, key, tuple(pieces))
