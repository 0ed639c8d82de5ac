"""What is known about well-known programs, as data: the typed view of `options.json` and `programs.json`."""

from __future__ import annotations

import os
import re
from collections.abc import Container
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

_VARIANT = re.compile(
    r"\A(?:[a-z0-9_]+-){1,3}(?=(?:gcc|[gc]\+\+|clang(?:\+\+)?|gfortran|gdb|nm|ranlib|addr2line|objdump|objcopy"
    r"|readelf)(?:-[\d.]+)?\Z)"
    r"|\A(?:llvm-|avr-|(?:[a-z0-9_]+-){2,3})(?=(?:cpp|ld|ar|as|strip|strings|size)(?:-[\d.]+)?\Z)"
    r"|[.-]?\d[\d.]*\Z|\.(?:basic|tiny|nox|gtk3|openbsd|traditional)\Z|(?<=gdb)-multiarch\Z"
)
_INERT_VALUE = re.compile(r"(?![/:])(?!.*\.\.)[\w .,:=@*+%/-]*")
"""Neither a path that leads elsewhere nor anything that a program could take for code."""
BUILTINS = frozenset(
    {"bg", "break", "cd", "continue", "dirs", "disown", "exit", "fg", "popd", "pushd", "return", "shift"}
)
SUBCOMMANDS = frozenset(
    {"ip", "nmcli", "hdfs", "virsh", "zfs", "zpool", "btrfs", "lvm", "s3cmd", "mc", "rclone", "gsutil"}
)
"""Programs whose own subcommands are called like other programs (`hdfs dfs -rm`)."""
TouchKind: TypeAlias = Literal["read", "write", "delete"]


class ProgramOptions(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Options by which an otherwise predictable program starts another one or writes a file."""

    run: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    """Harmless options whose names begin like a harmful one."""
    values: frozenset[str] = frozenset()
    """Options that take the next word, which is then not an option itself."""
    optional: frozenset[str] = frozenset()
    """Harmful options whose value, if any, is attached."""
    flags: str = ""
    """Harmless options of one letter. With these or `known`, any other option counts as harmful."""
    known: frozenset[str] = frozenset()
    """Harmless options without a value."""
    prefixes: tuple[str, ...] = ()
    """Options that begin like this are harmless."""
    keyed: frozenset[str] = frozenset()
    """Options whose value is `key=value`, harmful for the keys below; `safe_keys` lists all that are not."""
    keys: tuple[str, ...] = ()
    key_contains: tuple[str, ...] = ()
    safe_keys: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    """A word that begins like this, in any case, is harmful; written in lower case, as `contains` is."""
    contains: tuple[str, ...] = ()
    first: frozenset[str] = frozenset()
    """The first operand is harmful when it, or it with the second, is one of these."""
    verbs: frozenset[str] = frozenset()
    """Given: the first operand is harmful unless it, or it with the second, is one of these."""
    operands: int | None = None
    """More operands than this and the last one is a file to write."""
    style: str = "gnu"
    """`words`: an option is a whole word (find); `gnu`: short ones combine, long ones may be shortened."""
    bundle: bool = False
    """The first operand may be short options without their dash (tar)."""
    stop_at_operand: int = 0
    """The operand from which on nothing is an option (ssh: 2, options may follow the host); 0 means none."""
    passes: tuple[str, ...] = ()
    """The words of a program that it starts with what follows `--` (`cmake --build . -- -j8`)."""
    subcommands: dict[str, ProgramOptions] = {}
    """What is said beside this of its first operand, or of the first two."""
    check: str = ""
    input: bool = False
    """Whether it carries out commands that it reads from its standard input."""

    @cached_property
    def closed(self) -> bool:
        """Whether every harmless option is listed."""
        return bool(self.flags or self.known)

    @cached_property
    def harmless(self) -> frozenset[str]:
        """The options that are so whatever they are given."""
        listed = self.plain | self.values | self.known | {"-" + letter for letter in self.flags}
        return listed - ((self.run | self.write | self.keyed) - self.plain)

    @cached_property
    def named(self) -> frozenset[str]:
        """Every option that the table names."""
        known = (self.run, self.write, self.values, self.optional, self.keyed, self.plain, self.known)
        return frozenset().union(*known)

    @cached_property
    def long(self) -> tuple[str, ...]:
        """Those of them that may be written shorter, in order."""
        return tuple(sorted([each for each in self.named if len(each) > 2]))

    @cached_property
    def marks(self) -> re.Pattern[str]:
        """What a harmful word begins with or holds."""
        starts = [r"\A" + re.escape(text) for text in self.starts]
        return re.compile("|".join([*starts, *map(re.escape, self.contains)]), re.IGNORECASE)

    @cached_property
    def valued(self) -> frozenset[str]:
        """Options that take a value, be it in the next word."""
        return (self.values | self.run | self.write | self.keyed) - self.optional


class GitOptions(Struct, frozen=True, forbid_unknown_fields=True):
    values: frozenset[str]
    flags: frozenset[str]
    """Harmless options before the subcommand; any other is harmful."""
    every: ProgramOptions
    plain: frozenset[str]
    """Subcommands without harmful options of their own; any other may be an alias or a script."""
    subcommands: dict[str, ProgramOptions]
    config: ProgramOptions
    config_reads: frozenset[str]
    """Options with which `git config` only shows settings."""
    settings: tuple[str, ...]
    """Settings that cannot name a program or a file, in lower case, with `*` for any text."""


class OptionTable(Struct, frozen=True, forbid_unknown_fields=True):
    aliases: dict[str, str]
    """Programs with the options of another one."""
    options: dict[str, ProgramOptions]
    git: GitOptions


class Runner(Struct, frozen=True, forbid_unknown_fields=True):
    """How to find the command that a program runs for its caller."""

    values: frozenset[str] = frozenset()
    flags: str = ""
    optional: frozenset[str] = frozenset()
    harmful: frozenset[str] = frozenset()
    """Options, with a value, by which it also writes a file or starts something else."""
    harmless: frozenset[str] = frozenset()
    """With one of these it runs nothing."""
    open: bool = False
    """Whether the table of options tells its harmful long ones; else one that is not known may be any."""
    script_option: frozenset[str] = frozenset()
    """Options whose value is a shell text."""
    argv_string: bool = False
    script: bool = False
    """The rest is a shell text."""
    words: int = 0
    """How many words of the rest are the shell text; 0 means all."""
    separate: bool = False
    """Each word of the rest is a shell text of its own."""
    shell: bool = False
    """Without a command it is a shell."""
    input_shell: bool | frozenset[str] = False
    """Without a command, or with one of these options, it is a shell for what it is given to read."""
    entry: bool = False
    """The text of its option is a program, which gets the words behind as its own."""
    elsewhere: bool = False
    """What it runs is looked up in another file system, so no rule for the inner command covers it."""
    positional: int = 0
    options_follow: bool = False
    """Options may also stand after the positional words."""
    assignments: bool = False
    numbers: bool = False
    appends: bool = False
    """Further arguments arrive at run time."""
    subcommands: frozenset[str] = frozenset()
    whole_is_file: bool = False
    inert: bool = False
    """Adds nothing to what it runs: an allow rule for the inner command is enough."""
    shell_after: frozenset[str] = frozenset()
    """What follows one of these words are arguments of a shell."""
    loose: bool = False
    """Its options are too many to know: the inner command may begin at any word."""
    deny_only: bool = False
    """Looked through for deny rules only; an allow rule for it covers what it runs."""


class FileUse(Struct, frozen=True, forbid_unknown_fields=True):
    """Which words of a command name files, and what happens to them."""

    operands: str = "read"
    """`any`: every word may name a file to read."""
    skip: int = 0
    unless: frozenset[str] = frozenset()
    """With one of these options no operand is skipped."""
    values: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    attached: frozenset[str] = frozenset()
    """Options whose value may name a file after `@`."""
    pairs: dict[str, TouchKind] = {}
    words: dict[str, TouchKind] = {}
    recursive: bool | frozenset[str] = False
    """Always, or with one of these options; `-d recurse` stands for an option with this value."""
    visible: frozenset[str] | None = None
    """Given: hidden files are skipped in a recursion unless one of these options is there."""
    in_place: frozenset[str] = frozenset()
    roots_deleted_by: frozenset[str] = frozenset()
    """Options that delete what is found below the first operands."""
    first_writes: bool | frozenset[str] = False
    """Whether the first operand is written, always or with one of these options."""
    second_writes: bool = False
    bundle: bool = False
    moves: frozenset[str] = frozenset()
    """Options that change the directory for the operands behind them."""
    archive: frozenset[str] = frozenset()
    """Options that name an archive, written when one is made and read otherwise."""


class TreeWriter(Struct, frozen=True, forbid_unknown_fields=True):
    """When a program writes files that not its words name but an archive, a patch or a commit."""

    when: frozenset[str] = frozenset()
    """Options, or first operands, without which nothing is written; none: always."""
    unless: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    into: frozenset[str] = frozenset()
    """Options that name the directory."""
    skip: int = 0
    """How many operands come before the members; without members everything is written."""
    suffixes: frozenset[str] = frozenset()
    """Given: it only rewrites visible files that end so."""
    members: bool = False
    """For git: whether operands are all that is written."""
    bundle: bool = False


class Programs(Struct, frozen=True, forbid_unknown_fields=True):
    runners: dict[str, Runner]
    shells: frozenset[str]
    other_shells: frozenset[str]
    """Shells of another language: what they run is not read."""
    files: dict[str, FileUse]
    read_only: frozenset[str]
    names_only: frozenset[str]
    """Programs that do not open the files they are given."""
    takes_trees: frozenset[str]
    """Programs that, given a directory, take or show what is in it."""
    hands_over: dict[str, frozenset[str]]
    """Words with which such a program takes all of a directory along."""
    packs: dict[str, frozenset[str]]
    """Subcommands that take all of the working directory where they are not given another one."""
    may_write: frozenset[str]
    """Programs that may write each of their operands, or beside it."""
    tree_writers: dict[str, TreeWriter]
    """By program, or by `git` with a subcommand."""
    reading_git: frozenset[str]
    read_only_git: frozenset[str]
    inert_variables: frozenset[str]
    inert_values: dict[str, str]
    """Values of other variables, as regular expressions, that start nothing (`GIT_PAGER=cat`)."""
    steering_variables: frozenset[str]
    steering_prefixes: tuple[str, ...]
    setters: frozenset[str]
    conditions: frozenset[str]
    interpreters: frozenset[str]
    fetching: frozenset[str]
    """Programs whose operands are addresses that they fetch."""
    contacting: frozenset[str]
    """Programs that contact the hosts they are given, though a table knows them by the files they touch."""
    long_flags: frozenset[str]
    """Options of runners that take no value."""

    def starts_nothing(self, name: str, value: str) -> bool:
        """Whether a variable that decides what a program starts is given a value that starts nothing."""
        pattern = self.inert_values.get(name)
        return pattern is not None and re.fullmatch(pattern, value) is not None

    def is_inert(self, name: str, value: str) -> bool:
        """Whether a variable with this value cannot change what a command runs."""
        if name in self.inert_variables:
            return _INERT_VALUE.fullmatch(value) is not None
        return self.starts_nothing(name, value)

    def is_steering(self, name: str) -> bool:
        """Whether a variable of this name can change which program runs or what it does."""
        if name in self.inert_variables:
            return False
        return name in self.steering_variables or name.startswith(self.steering_prefixes)


@lru_cache(maxsize=1)
def load_programs() -> Programs:
    return msgspec.json.decode(_read("programs.json"), type=Programs)


@lru_cache(maxsize=1)
def load_options() -> OptionTable:
    return msgspec.json.decode(_read("options.json"), type=OptionTable)


@lru_cache(maxsize=1024)
def is_known(name: str) -> bool:
    """Whether a table tells what a program does with its words."""
    known = load_programs()
    tables: tuple[Container[str], ...] = (
        known.files, known.names_only, known.read_only, known.runners, known.shells, known.other_shells,
        known.setters, BUILTINS, SUBCOMMANDS,
    )  # fmt: skip
    return any(name in table for table in tables) or find_options(name) is not None


@lru_cache(maxsize=1024)
def find_options(program: str) -> ProgramOptions | None:
    """The options of a program, also of a variant such as `gcc-13` or `vim.basic`."""
    table = load_options()
    found = table.options.get(table.aliases.get(program, program))
    if found is None and _VARIANT.search(program):
        plain = _VARIANT.sub("", program)
        found = table.options.get(table.aliases.get(plain, plain))
    return found


def _read(name: str) -> bytes:
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return file.read()


def program_name(text: str) -> str:
    """The last component of a program's path."""
    return text.rpartition("/")[2]
