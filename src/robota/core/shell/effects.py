"""What a shell command does to files, as data: which ones it reads, writes and deletes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import TypeAlias

from msgspec import Struct

from robota.core.shell.hazards import OptionWord, read_options
from robota.core.shell.invocations import Directories, Invocation, visited_directories
from robota.core.shell.programs import FileUse, ProgramOptions, TouchKind, load_programs
from robota.core.shell.script import Command, Piece, Script, Word, build_word, plain_word

_File: TypeAlias = tuple[TouchKind, Word]

_OPERANDS: dict[str, tuple[TouchKind, ...]] = {
    "any": (),
    "none": (),
    "read": ("read",),
    "write": ("write",),
    "delete": ("delete",),
    "copy": ("read",),
    "move": ("read", "delete"),
}
_REMOTE = re.compile(r"\A[\w.@-]+:+(?!//)")
"""The host, or the store, that a copied file comes from."""
_BY_SUFFIX = re.compile(r"\*(\.\w+)\Z")
_FIND_ACTS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete"})
_FIND_CHOICES = frozenset({"-o", "-or", ","})
_FIND_LEADS = re.compile(r"-(?:[HLP]|D.*|O\d*|-|[HLPEXdsx]+)\Z")
"""Options of `find` that stand before the places where it starts."""
_FIND_DENIALS = frozenset({"!", "-not"})
_LEFT_OUT = frozenset({"-path", "-ipath", "-wholename", "-iwholename", "-type", "-empty"})
"""Tests that may be denied before or behind `-name` without a word about how the name ends."""
_ARCHIVING = frozenset({"-c", "-r", "-u", "-A", "--create", "--append", "--update"})


class Touch(Struct, frozen=True, gc=False):
    """One file that a command reads, writes or deletes."""

    kind: TouchKind
    word: Word
    directories: Directories
    part: str
    recursive: bool = False
    hidden: bool = True
    """Whether a recursion also enters hidden files."""
    redirected: bool = False
    mentioned: bool = False
    """Whether only the word says so; nothing is known about what the program does with it."""
    sure: bool = True
    """False: it only may, since a text given to the program names it."""
    told: bool = False
    """Whether a program text names it, which may put something before it."""
    suffixes: frozenset[str] = frozenset()
    """Given: only files that end so are touched."""


def is_read_only(invocation: Invocation) -> bool:
    """Whether the program is known to change nothing, apart from the files it is told to write."""
    programs, words = load_programs(), invocation.words
    if words[0].text == "git":
        subcommand = next((word.text for word in words[1:] if not word.text.startswith("-")), "")
        return subcommand in programs.read_only_git
    return words[0].text in programs.read_only and not invocation.computed


def find_touches(
    script: Script, invocations: Sequence[Invocation], directories: Directories, home: str
) -> Iterator[Touch]:
    """The files that the commands of a script name."""
    for invocation in invocations:
        yield from _redirected(invocation.command, invocation.directories)
        yield from _touched(invocation)
        for inner in invocation.scripts:
            yield from _loose(inner, invocation.directories, home)
    yield from _loose(script, directories, home)


def _loose(script: Script, directories: Directories, home: str) -> Iterator[Touch]:
    if not script.redirections:
        return
    possible = visited_directories(script, directories, home)
    for command in script.redirections:
        yield from _redirected(command, possible)


def _redirected(command: Command, directories: Directories) -> Iterator[Touch]:
    for redirection in command.redirections:
        target = redirection.target
        if target is None:
            continue
        part = f"{command.text} {redirection.descriptor}{redirection.operator}{target.raw}".strip()
        if redirection.writes:
            yield Touch("write", target, directories, part, redirected=True)
        if redirection.reads:
            yield Touch("read", target, directories, part, redirected=True)


def _touched(invocation: Invocation) -> Iterator[Touch]:
    """The files that a known program is told to use."""
    name, words = find_module(invocation.program, invocation.words)
    use = load_programs().files.get(name)
    if use is None or invocation.computed:
        return
    part, where = invocation.command.text, invocation.directories
    found, numbered = read_options(words, 1, _options_of(name))
    moves = [option for option in found if option.name in use.moves]
    names, operands = _option_names(found), [_move(index, word, moves) for index, word in numbered]
    for option in found:
        yield from (Touch(kind, word, where, part) for kind, word in _option_files(option, use, names))
    if not names.isdisjoint(use.roots_deleted_by):
        only = found_suffixes(words)
        for root in find_roots(words):
            yield Touch("delete", root, where, part, recursive=True, suffixes=only)
    if not use.archive or not names.isdisjoint(_ARCHIVING):
        recursive = applies(use.recursive, names)
        hidden = use.visible is None or not names.isdisjoint(use.visible)
        files = _operand_files(use, names, operands)
        if recursive and not operands[use.skip :] and use.operands == "read":
            files = [*files, ("read", plain_word("."))]
        only = chosen_suffixes([option.text or "" for option in found if option.name == "--include"])
        if use.visible is not None and (chosen := _chosen(found)):  # these it searches though they are hidden
            hidden, only = True, chosen_suffixes(chosen)
        for kind, word in files:
            yield Touch(kind, word, where, part, recursive, hidden, suffixes=only)
    if use.operands in ("copy", "move"):
        into = [value for option in found if option.name in use.write and (value := _value_of(option))]
        copies = _copies(operands if into else operands[:-1], (into or operands)[-1:])
        yield from (Touch("write", word, where, part) for word in copies)


def _chosen(found: Sequence[OptionWord]) -> list[str]:
    """The patterns of `rg -g` that choose files; those with `!` leave files out."""
    texts = [option.text or "" for option in found if option.name in ("-g", "--glob", "--iglob")]
    return [text for text in texts if not text.startswith("!")]


def chosen_suffixes(patterns: Sequence[str]) -> frozenset[str]:
    """How the files end that patterns such as `*.py` choose; nothing when that cannot be told."""
    found = [_BY_SUFFIX.match(pattern) for pattern in patterns]
    return frozenset([each[1] for each in found if each]) if all(found) else frozenset()


def found_suffixes(words: Sequence[Word]) -> frozenset[str]:
    """How the files end that `find` hands on, if its one `-name` tells before it does anything."""
    texts = [word.text for word in words]
    names = [index for index, text in enumerate(texts[:-1]) if text == "-name"]
    acts = [index for index, text in enumerate(texts) if text in _FIND_ACTS]
    denied = [after for before, after in pairwise(texts) if before in _FIND_DENIALS]
    if len(names) != 1 or (acts and acts[0] < names[0]) or not _FIND_CHOICES.isdisjoint(texts):
        return frozenset()
    if not _LEFT_OUT.issuperset(denied):
        return frozenset()
    return chosen_suffixes([texts[names[0] + 1]])


def find_roots(words: Sequence[Word]) -> tuple[Word, ...]:
    """Where `find` starts: the words behind `-L` and the like, before its first test or action."""
    at = 1
    while at < len(words) and (option := _FIND_LEADS.match(words[at].text)):
        at += 2 if option[0] == "-D" else 1
    roots = takewhile(lambda word: not word.text.startswith(("-", "(", "!")), words[at:])
    return tuple(roots) or (plain_word("."),)


def find_module(program: str, words: tuple[Word, ...]) -> tuple[str, tuple[Word, ...]]:
    """The program and its words; a module that python runs (`python -m tarfile`) is a program too."""
    if program.startswith("python") and len(words) > 2 and words[1].text == "-m" and words[2].literal:
        return words[2].text, words[2:]
    return program, words


def may_recurse(invocation: Invocation) -> bool:
    """Whether a known program may walk through directories; `find` apart."""
    use = load_programs().files.get(find_module(invocation.program, invocation.words)[0])
    return use is not None and bool(use.recursive)


def applies(given: bool | frozenset[str], names: frozenset[str]) -> bool:
    return given if isinstance(given, bool) else not names.isdisjoint(given)


def _option_names(found: Sequence[OptionWord]) -> frozenset[str]:
    """The options that are there, and each with its value."""
    names = {option.name for option in found}
    names.update([f"{option.name} {option.text}" for option in found if option.text])
    return frozenset(names)


def _move(index: int, word: Word, moves: Sequence[OptionWord]) -> Word:
    """An operand as seen from where the command runs, when options such as `tar -C` stand before it."""
    for option in reversed(moves):
        target = _value_of(option)
        if target is None or option.last > index or word.text.startswith("/"):
            continue
        begins = target.pieces or (("text", target.text, True),)
        ends = word.pieces or (("text", word.text, True),)
        word = build_word([*begins, ("text", "/", True), *ends], f"{target.raw}/{word.raw}")
    return word


@lru_cache(maxsize=256)
def _options_of(program: str) -> ProgramOptions:
    use = load_programs().files[program]
    return ProgramOptions(
        values=use.values | use.read | use.write | use.attached | use.archive | frozenset(use.words),
        bundle=use.bundle,
        optional=use.in_place,
        style="words" if use.words or use.roots_deleted_by else "gnu",
        known=use.in_place.union(
            *(each for each in (use.recursive, use.visible) if isinstance(each, frozenset))
        ),
    )


def _option_files(option: OptionWord, use: FileUse, names: frozenset[str]) -> Iterator[_File]:
    value = _value_of(option)
    if value is None or option.text is None:
        return
    if option.name in use.archive:
        yield "read" if names.isdisjoint(_ARCHIVING) else "write", value
    elif option.name in use.words:
        yield use.words[option.name], value
    elif option.name in use.read or option.name in use.write:
        yield "read" if option.name in use.read else "write", value
    elif option.name in use.attached and "@" in option.text:
        yield "read", _tail(value, option.text.partition("@")[2].partition(";")[0])


def _value_of(option: OptionWord) -> Word | None:
    """The value of an option as a word of its own."""
    if option.value is None or option.text is None:
        return None
    return option.value if option.text == option.value.text else _tail(option.value, option.text)


def _copies(sources: list[Word], targets: list[Word]) -> Iterator[Word]:
    """The files that copying would write if the target is a directory."""
    for target in targets:
        for source in sources:
            name = _REMOTE.sub("", source.text).rstrip("/").rpartition("/")[2]
            ends: list[Piece] = [
                ("text", "/" + name, source.literal)
            ]  # copies are called as a glob says, too
            if source.computed:
                ends = [("text", "/", True), ("substitution", name, True)]
            pieces = [*(target.pieces or (("text", target.text, True),)), *ends]
            yield build_word(pieces, target.raw + "/" + name)


def _tail(word: Word, text: str) -> Word:
    """The end of a word as a word of its own."""
    return plain_word(text) if word.literal else Word(text, text, text, (("substitution", text, False),))


def _operand_files(use: FileUse, names: frozenset[str], operands: list[Word]) -> Iterable[_File]:
    files = operands if not names.isdisjoint(use.unless) else operands[use.skip :]
    for word in operands:
        name, equals, value = word.text.partition("=")
        if equals and name in use.pairs:
            yield use.pairs[name], _tail(word, value)
        if word.text.startswith("file://"):
            yield "read", _tail(word, word.text[7:])
    into_last = use.operands in ("copy", "move") and names.isdisjoint(use.write) and len(files) > 1
    if into_last:
        yield "write", files[-1]
    sources = files[:-1] if into_last else files
    for kind in _OPERANDS[use.operands]:
        yield from ((kind, word) for word in sources)
    if not names.isdisjoint(use.in_place):
        yield from (("write", word) for word in sources)
    if files and applies(use.first_writes, names):
        yield "write", files[0]
    if use.second_writes and len(files) > 1:
        yield "write", files[1]


def substitute(word: Word, directory: str | None, home: str, assigned: frozenset[str]) -> Word:
    """The word with `$HOME` and `$PWD` filled in, unless the text itself changes them."""
    known = {"HOME": home, "PWD": directory}
    if not any(known.get(name) and name not in assigned for name in word.variables):
        return word
    pieces: list[Piece] = []
    for kind, text, quoted in word.pieces:
        value = known.get(text) if kind == "variable" and text not in assigned else None
        pieces.append((kind, text, quoted) if value is None else ("text", value, True))
    return build_word(pieces, word.raw)


def known_path(word: Word, directory: str | None, home: str, assigned: frozenset[str]) -> str | None:
    """The absolute path that a word names; None when it is decided at run time."""
    word = substitute(word, directory, home, assigned)
    if not word.literal:
        return None
    text = home + word.text[1:] if word.tilde else word.text
    if text.startswith("/"):
        return text
    return None if directory is None else directory.rstrip("/") + "/" + text
