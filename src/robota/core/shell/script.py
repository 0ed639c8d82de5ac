"""What a shell text consists of: simple commands in the order written, with redirections and assignments."""

from __future__ import annotations

from msgspec import Struct

from robota.core.shell.words import Word


class ShellSyntaxError(ValueError):
    """The text is not a shell program that can be judged with certainty."""


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


class Script:
    """A parsed shell text."""

    __slots__ = (
        "_counter",
        "assigned",
        "commands",
        "evaluates_text",
        "facts",
        "functions",
        "holds_code",
        "lasting",
        "outer",
        "parameters",
        "redirections",
        "set_names",
    )

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.redirections: list[Command] = []
        """Redirections of compound commands or without a command, as commands without words."""
        self.lasting: set[str] = set()
        """Variables set for more than one command."""
        self.assigned: dict[str, list[str | None]] = {}
        """Every variable the text sets, with the literal values (None: not known)."""
        self.functions: set[str] = set()
        self.evaluates_text = False
        """Whether bash evaluates contents of variables as arithmetic, which runs commands held in them."""
        self.parameters = False
        """Whether the positional parameters come from elsewhere in the text."""
        self.holds_code = False
        """Whether a quoted text contains a command substitution."""
        self.set_names: frozenset[str] | None = None
        """Variables that builtins set; worked out on first use."""
        self.outer: Script | None = None
        """The text around this one, whose variables it may use."""
        self.facts: dict[tuple[str, str], bool] = {}
        """What was found out about a variable's values; a long text asks for the same ones often."""
        self._counter = 0

    def next_scope(self) -> int:
        self._counter += 1
        return self._counter

    def assign(self, name: str, value: Word | None, *, lasting: bool = True) -> None:
        if lasting:
            self.lasting.add(name)
        self.assigned.setdefault(name, []).append(value.text if value is not None and value.literal else None)
