"""Files that a program may write although no word of the command says so for certain.

These are files that its options name, files inside a program text, and whole trees, where an archive, a patch
or a commit decides what is written. A rule that denies writing asks about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise

from msgspec.structs import replace

from robota.core.shell.effects import Touch, find_module
from robota.core.shell.hazards import after_options, read_options
from robota.core.shell.invocations import Invocation
from robota.core.shell.mentions import (
    as_pathspec,
    is_operand,
    is_path,
    moved_to,
    own_words,
    split,
    told_by_options,
    told_in_texts,
)
from robota.core.shell.programs import ProgramOptions, TreeWriter, load_programs
from robota.core.shell.script import Word, plain_word

_WRITING_GIT = frozenset({
    "checkout", "restore", "mv", "rm", "clean", "checkout-index", "worktree", "clone", "init", "submodule",
    "merge-file", "config", "lfs",
})  # fmt: skip
_NAMED_FILES = TreeWriter(into=frozenset({"-f", "--file"}))
_INDEX_ONLY = frozenset({"--cached", "--staged", "-S"})
_FETCHERS = frozenset({"curl", "wget", "aria2c", "axel"})
_FETCHED_INTO = frozenset({"-P", "--directory-prefix", "-d", "--dir", "--output-dir"})
_REMOTE_NAME = re.compile(r"-[a-zA-Z#]*O|--remote-name")
_OWN_NAME = re.compile(r"-[a-zA-Z]*O|--output-document|--spider")
_WRITE_SECOND = frozenset({"split", "csplit", "xxd", "uniq"})
WHOLE_REPOSITORY = plain_word(":/")
"""All files of the repository that the command runs in, as git itself spells it."""


def find_possible_writes(invocations: Sequence[Invocation], home: str) -> Iterator[Touch]:
    """What a program may write although no table says so."""
    for invocation in invocations:
        if invocation.computed:
            continue
        own, part = own_words(invocation), invocation.command.text
        moved = moved_to(own, invocation.directories, home)
        where = (*invocation.directories, *moved)
        whole = any(word.text in load_programs().hands_over.get(invocation.program, ()) for word in own)
        for token, _ in told_in_texts(invocation, own):
            told = Touch("write", plain_word(token), where, part, recursive=True, mentioned=True)
            yield replace(told, sure=False, told=True)
        for word in _fetched(invocation, own):
            yield Touch("write", word, where, part, mentioned=True, sure=False)
        for word in (*_named(invocation, own), *told_by_options(invocation)):
            handed = whole and (is_path(word) or word.text.startswith("$"))
            yield Touch("write", word, where, part, recursive=True, mentioned=not handed, sure=False)
        if invocation.program == "git":
            for word in _trees_of_git(invocation):
                yield Touch("write", word, moved or where, part, recursive=True, sure=False)
            continue
        name, words = find_module(invocation.program, invocation.words)
        writer = load_programs().tree_writers.get(name)
        if writer is None:
            continue
        formats, suffixes = bool(writer.suffixes), writer.suffixes
        operands, into, applies = _read(words, 1, writer)
        # Where to unpack is told from where the program starts, what to unpack from where it moves to.
        begin = where if into else moved or where
        # What an archive or a patch is unpacked to, or what is formatted: what is named, or everything.
        for word in (into or operands[writer.skip :] or [plain_word(".")]) if applies else ():
            touch = Touch("write", word, begin, part, recursive=True, sure=False)
            yield replace(touch, hidden=not formats, suffixes=suffixes)


def _named(invocation: Invocation, own: Sequence[Word]) -> Iterator[Word]:
    """Words that may be files to write."""
    programs, name = load_programs(), invocation.program
    if name in programs.names_only or name == "git":
        return
    use = programs.files.get(name)
    operands = [word for word in own if is_operand(word) or word.text == "-"]
    if (use is None or use.operands == "any") and name not in programs.interpreters:
        yield from (part for word in own for part in split(word))
    elif name in programs.may_write:
        yield from operands
    elif name in _WRITE_SECOND:
        yield from operands[1:]


def _fetched(invocation: Invocation, own: Sequence[Word]) -> Iterator[Word]:
    """Files that are called as the address says that they come from: `curl -O`, `wget`."""
    name, texts = invocation.program, [word.text for word in own]
    named = _REMOTE_NAME if name == "curl" else _OWN_NAME
    if name not in _FETCHERS or any(map(named.match, texts)) != (name == "curl"):
        return
    into = [after for before, after in pairwise(texts) if before in _FETCHED_INTO]
    into += [text.partition("=")[2] for text in texts if text.partition("=")[0] in _FETCHED_INTO]
    for text in texts:
        found = re.split("[?#]", text)[0].rpartition("/")[2] if "/" in text and text[:1] != "-" else ""
        yield from (plain_word(f"{place}/{found}") for place in (".", *into) if found)


def _trees_of_git(invocation: Invocation) -> Iterator[Word]:
    """The trees that are named, and all of the repository where git brings in other contents."""
    words = invocation.words
    start = after_options(words)
    subcommand = words[start].text if start < len(words) else ""
    writer = load_programs().tree_writers.get(f"git {subcommand}")
    if writer is None and subcommand not in _WRITING_GIT:
        return
    operands, into, applies = _read(words, start + 1, writer or _NAMED_FILES)
    if subcommand == "stash" and operands[:1] and operands[0].text == "push":
        named = list(dropwhile(lambda word: word.text != "--", words))[1:]
        if named:
            yield from map(as_pathspec, named)
            return
    texts = {word.text for word in words[start + 1 :]}
    if subcommand in _WRITING_GIT and ("--worktree" in texts or texts.isdisjoint(_INDEX_ONLY)):
        for word in (*operands, *into):
            spec = plain_word(word.text) if word.literal else word  # quotes keep a pattern for git
            yield WHOLE_REPOSITORY if word.text.startswith(":") else as_pathspec(spec)
    if writer is not None and applies and not (writer.members and operands):
        yield WHOLE_REPOSITORY


def _read(words: Sequence[Word], start: int, writer: TreeWriter) -> tuple[list[Word], list[Word], bool]:
    """The operands, the directories that options name, and whether anything is written."""
    options = ProgramOptions(
        values=writer.values | writer.into, known=writer.when | writer.unless, bundle=writer.bundle
    )
    found, numbered = read_options(words, start, options)
    operands = [word for _, word in numbered]
    names = {option.name for option in found} | {word.text for word in operands[:1]}
    applies = (not writer.when or not names.isdisjoint(writer.when)) and names.isdisjoint(
        {*writer.unless, "--help"}
    )
    into = [
        option.value if option.text == option.value.text else plain_word(option.text)
        for option in found
        if option.name in writer.into and option.value is not None and option.text
    ]
    return operands, into, applies
