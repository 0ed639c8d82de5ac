"""Files that words mention, whichever program they are given to.

`effects` knows what well-known programs do with their operands. Any other word of a command may name a file
too: the value of an option, what follows `@` or a colon, a path below the directory that an option leads to.
A rule that denies reading looks at all of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from robota.core.shell import sed_awk
from robota.core.shell.effects import Touch
from robota.core.shell.invocations import Directories, Invocation
from robota.core.shell.programs import FileUse, find_options, load_options, load_programs
from robota.core.shell.script import UNKNOWN_WORD, Piece, Word, build_word, has_glob, plain_word

_PARTS = re.compile(r"[=@:,;<|{}\"]+|\([a-z,]*\)")
_TOKENS = re.compile(r"[^\w./~+@%-]+")
_MOVES = re.compile(
    r"(-[CD]|--(?:directory|chdir|cwd|prefix|working-directory|work-tree))(?:=?(.+))?\Z", re.DOTALL
)
_KNOWN = re.compile(r"\$(?:\{(HOME|PWD)\}|(HOME|PWD)\b)")
_GIT_FILES = frozenset({
    "-F", "-f", "-t", "-O", "-X", "-S", "--file", "--template", "--pathspec-from-file", "--contents",
    "--exclude-from", "--ignore-revs-file", "--add-file", "--signature-file", "--mailmap-file", "--no-index",
    "--blob",
})  # fmt: skip
_GIT_TREES = frozenset({"--no-index", "--untracked", "archive", "fast-export"})
_OBJECT = re.compile(r"[0-9a-f]{4,64}\Z")
_PATTERN = re.compile(r"[*?]+|\[[^\]]*\]")
_PATCHES = re.compile(r"-(?:p|u|U.*|L.*|c|m)\Z|--(?:pat|cc|uni|word-|color-w|remerge|full-d|diff-m)")
_LOCAL = re.compile(r"(?:[\w-]+=)?fileb?://(?:localhost(?=/))?", re.IGNORECASE)
_SED_TEXT = re.compile(r"-[A-Za-z]*?e|--e[a-z]*=")
"""What may stand before a sed script in its own word."""
_LISTS = re.compile(r"--files0?-from\b|--stdin-paths\Z|--batch(?:-command)?(?:=|\Z)|-@\Z")
"""Options with which the names of the files come from a file or from the input."""
_NAME_LISTS = re.compile(r"--?files0-from\b|--(?:from|info|git)file\b")
_FD_RUNS = re.compile(r"-[A-Za-z]*[xX]|--exec")
_LONGEST = 4_000
_WRITING_GIT = frozenset({"checkout", "restore", "mv", "rm", "clean", "apply", "am", "checkout-index"})
_WRITE_SECOND = frozenset({"split", "csplit", "xxd", "uniq"})
_EXTRACTORS = frozenset({"tar", "bsdtar", "unzip", "7z", "cpio", "pax"})


def find_mentions(invocations: Sequence[Invocation], home: str) -> Iterator[Touch]:
    """What may be read beside the files that `find_touches` tells."""
    programs = load_programs()
    for invocation in invocations:
        name = invocation.program
        if name == "find" and invocation.inner:
            yield from _found(invocation)
        if invocation.computed:
            continue
        own = _own_words(invocation)
        if name in programs.names_only:
            yield from _listed(invocation, own)
            continue
        moved = _moved_to(own, invocation.directories, home)
        use = programs.files.get(name)
        if name == "git":
            found = list(_shown_by_git(own))
        elif use is not None and use.operands != "any":
            again = moved or name in programs.takes_trees
            found = [*_unknown_values(own, use), *(word for word in own if again and _is_operand(word))]
        else:
            found = [part for word in own for part in _split(word)]
        where, part = (*invocation.directories, *moved), invocation.command.text
        trees = name in programs.takes_trees or (use is not None and bool(use.recursive))
        for word in found:
            tree = trees or "/" in word.text or word.tilde  # a bare word is rarely meant as a directory
            yield Touch("read", word, where, part, recursive=tree, mentioned=True)
        for token in _told_in_texts(invocation, own):
            yield Touch("read", plain_word(token), where, part, mentioned=True, sure=False)
        yield from _unnamed(name, own, where, part)


def _unnamed(name: str, own: Sequence[Word], where: Directories, part: str) -> Iterator[Touch]:
    """What is read though no word names it: files of a list, everything that git packs or searches."""
    if any(_LISTS.match(word.text) for word in own):
        yield Touch("read", UNKNOWN_WORD, where, part, mentioned=True)
    if name == "git" and any(word.text in _GIT_TREES for word in own):
        yield Touch("read", plain_word("."), where, part, recursive=True)


def _listed(invocation: Invocation, words: Sequence[Word]) -> Iterator[Touch]:
    """What programs that only handle names open: lists of them, and what `fd -x` hands on."""
    where, part = invocation.directories, invocation.command.text
    for before, word in pairwise((plain_word(""), *words)):
        for name in _split(word) if _NAME_LISTS.match(before.text) or _NAME_LISTS.match(word.text) else ():
            yield Touch("read", name, where, part, mentioned=True)
        if invocation.program in ("fd", "fdfind") and _FD_RUNS.match(word.text):
            yield Touch("read", plain_word("."), where, part, recursive=True)


def find_possible_writes(invocations: Sequence[Invocation]) -> Iterator[Touch]:
    """What a program may write although no table says so."""
    programs = load_programs()
    for invocation in invocations:
        name = invocation.program
        if invocation.computed or name in programs.names_only:
            continue
        own = _own_words(invocation)
        use = programs.files.get(name)
        operands = [word for word in own if _is_operand(word)]
        if name == "git":
            writes = bool(operands) and operands[0].text in _WRITING_GIT
            found = [part for word in operands[1:] for part in _split(word)] if writes else []
        elif name in _EXTRACTORS:
            found = [after for before, after in pairwise(own) if before.text in ("-C", "-d", "--directory")]
            found += [part for word in own if word.text.startswith("--directory=") for part in _split(word)]
        elif (use is None or use.operands == "any") and name not in programs.interpreters:
            found = [part for word in own for part in _split(word)]
        else:
            found = operands[1:] if name in _WRITE_SECOND else []
        found += map(plain_word, _told_in_texts(invocation, own))
        where, part = invocation.directories, invocation.command.text
        yield from (
            Touch("write", word, where, part, recursive=True, mentioned=True, sure=False) for word in found
        )


def _found(invocation: Invocation) -> Iterator[Touch]:
    """What `find -exec` may hand on: everything below its starting points."""
    roots = list(takewhile(lambda word: not word.text.startswith(("-", "(", "!")), invocation.words[1:]))
    for root in roots or [plain_word(".")]:
        yield Touch("read", root, invocation.directories, invocation.command.text, recursive=True)


def _own_words(invocation: Invocation) -> Sequence[Word]:
    """The words of the program itself, without those of a command that it runs; a script is its own."""
    words, unwrapped = invocation.words, invocation.unwrapped
    if unwrapped is None or not unwrapped.inner:
        return words[1:]
    start = unwrapped.inner[0].start
    scripted = invocation.program in load_programs().shells and unwrapped.inner[0].source is None
    return words[1 : start + scripted]


def _is_operand(word: Word) -> bool:
    return not word.text.startswith("-")


def _moved_to(words: Sequence[Word], directories: Directories, home: str) -> Directories:
    """Where options such as `-C` lead, from every directory that the command may run in."""
    found: list[str | None] = []
    for index, word in enumerate(words):
        option = _MOVES.match(word.text)
        if option is None:
            continue
        following = words[index + 1] if index + 1 < len(words) else word
        target, known = (option.group(2), word) if option.group(2) else (following.text, following)
        if known.literal and (target == "~" or target.startswith("~/")):
            target = home + target[1:]
        for base in directories:
            inside = known.literal and (base is not None or target.startswith("/"))
            found.append(posixpath.normpath(posixpath.join(base or "/", target)) if inside else None)
    return tuple(dict.fromkeys(found))


def _known_text(found: re.Match[str]) -> str:
    return "~" if "HOME" in found.group() else "."


def _split(word: Word) -> Iterator[Word]:
    """The word and its parts: `--opt=file`, `-ofile`, `@file`, `key=file`, `host:file`."""
    if len(word.text) > _LONGEST:
        return
    text = _KNOWN.sub(_known_text, word.text)
    if ("$" in text and word.computed) or word.globbed:
        if any(kind == "text" and piece for kind, piece, _ in word.pieces):
            yield word
        return
    if "://" in text:
        if local := _LOCAL.match(text):
            yield plain_word(text[local.end() :])
        return
    if not text.startswith("-"):
        yield plain_word(text)
    elif not text.startswith("--"):
        yield from (plain_word(text[start:]) for start in range(2, min(len(text), 6)))
    parts = _PARTS.split(text)
    if len(parts) > 1:
        yield from (plain_word(part) for part in parts if part)
        yield plain_word(text.rpartition("=")[2])


def _unknown_values(words: Sequence[Word], use: FileUse) -> Iterator[Word]:
    """Values attached to options that the table does not know."""
    for word in words:
        name, equals, _ = word.text.partition("=")
        if (
            word.text.startswith("@")
            or _LOCAL.match(word.text)
            or (name.startswith("--") and equals and name not in use.values)
        ):
            yield from _split(word)


def _shown_by_git(words: Sequence[Word]) -> Iterator[Word]:
    """Files whose content git shows, compares or packs; `HEAD:path` names one too."""
    start = 0
    while start < len(words) and words[start].text.startswith("-"):
        start += 1 + (words[start].text in load_options().git.values | {"-c", "--git-dir"})
    subcommand = words[start].text if start < len(words) else ""
    rest = words[start + 1 :]
    for index, word in enumerate(rest):
        if word.text.startswith("--") and "=" in word.text and word.text.partition("=")[0] in _GIT_FILES:
            yield from _split(word)
        elif (
            word.text in _GIT_FILES and index + 1 < len(rest) and subcommand not in ("log", "push", "branch")
        ):
            yield from _split(rest[index + 1])
        elif word.text[:2] == "-F" and len(word.text) > 2:
            yield plain_word(word.text[2:])
    shows = subcommand in load_programs().reading_git or (
        subcommand in ("log", "stash", "whatchanged") and any(_PATCHES.match(word.text) for word in rest)
    )
    if shows:
        skipped = subcommand == "grep" and not any(word.text in ("-e", "-f") for word in rest)
        named = [word for word in rest if not word.text.startswith("-") or word.text.startswith("-L")]
        for word in named[1:] if skipped else named:
            yield from map(_as_pathspec, _split(word))
        if subcommand == "cat-file":
            yield from (UNKNOWN_WORD for word in named if _OBJECT.match(word.text))


def _as_pathspec(word: Word) -> Word:
    """A pattern in quotes is read by git itself, and its star stands for any text."""
    if word.pieces or not has_glob(word.text):
        return word
    pieces: list[Piece] = []
    for text in _PATTERN.split(word.text):
        pieces += [("substitution", "*", True), ("text", text, True)]
    return build_word(pieces[1:], word.raw)


def _told_in_texts(invocation: Invocation, words: Sequence[Word]) -> Iterator[str]:
    """Names inside program texts, which may be files that the program opens by itself."""
    name = invocation.program
    options = find_options(name)
    check = "" if options is None else options.check
    if check in ("sed", "awk"):
        reads = sed_awk.sed_escapes if check == "sed" else sed_awk.awk_escapes
        texts = [word.text for word in words if reads(word.text)]
        if check == "sed":
            yield from (name for text in texts for name in sed_awk.sed_files(_SED_TEXT.sub("", text)))
    elif (
        name in load_programs().interpreters
        or name in load_programs().shells
        or (options is not None and options.input)
    ):
        texts = [_KNOWN.sub(_known_text, word.text) for word in words]
        texts += [each.body for each in invocation.command.redirections if each.body]
        texts += [
            each.target.text
            for each in invocation.command.redirections
            if each.operator == "<<<" and each.target is not None
        ]
    else:
        return
    for text in texts:
        yield from dict.fromkeys(token for token in _TOKENS.split(text[:_LONGEST]) if token)
