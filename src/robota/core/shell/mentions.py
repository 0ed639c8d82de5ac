"""Files that words mention, whichever program they are given to.

`effects` knows what well-known programs do with their operands. Any other word of a command may name a file
too: the value of an option, what follows `@` or a colon, a path below the directory that an option leads to.
A rule that denies reading looks at all of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterator, Sequence
from itertools import dropwhile, pairwise

from msgspec.structs import replace

from robota.core.shell import sed_awk
from robota.core.shell.effects import Touch, chosen_suffixes, find_roots, found_suffixes
from robota.core.shell.invocations import Directories, Invocation
from robota.core.shell.lists import Listed, find_listed
from robota.core.shell.programs import FileUse, find_options, load_options, load_programs
from robota.core.shell.script import UNKNOWN_WORD, Piece, Word, build_word, has_glob, plain_word

_PARTS = re.compile(r"[=@:,;<|{}\"]+|\([a-z,]*\)")
_TOKENS = re.compile(r"[^\w./~+@%-]+")
_NUMBER = re.compile(r"\$\((?:nproc|id -[ug]|date \+%s|\()")
_QUOTED = re.compile(r"""(?<=['"])[^'"\s]+(?=['"])""")
_MOVES = re.compile(
    r"(-[CD]|--(?:directory|chdir|cwd|wd|workdir|prefix|working-directory|work-tree))(?:=?(.+))?\Z", re.DOTALL
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
_COPIES = re.compile(r"-[a-z]*[op]|--(?:create|pass)")
_NAME_LISTS = re.compile(r"--?files0-from\b|--(?:from|info|git)file\b")
_FD_RUNS = re.compile(r"-[A-Za-z]*[xX]|--exec")
_HAND_FILES_ON = frozenset({"find", "xargs"})
_EACH_STARTS = frozenset({"find"})
"""Runners with which every inner command is one for certain."""
_LONGEST = 4_000
_ANY = frozenset[str]()


def find_mentions(invocations: Sequence[Invocation], home: str) -> Iterator[Touch]:
    """What may be read beside the files that `find_touches` tells."""
    programs = load_programs()
    for invocation in invocations:
        name = invocation.program
        if name in _HAND_FILES_ON and invocation.inner:
            yield from _found(invocation)
        if invocation.computed:
            continue
        own = own_words(invocation)
        if name in programs.names_only:
            yield from _listed(invocation, own)
            continue
        moved = moved_to(own, invocation.directories, home)
        use = programs.files.get(name)
        if name == "git":
            found = list(_shown_by_git(own))
        elif use is not None and use.operands != "any":
            again = moved or name in programs.takes_trees
            found = [*_unknown_values(own, use), *(word for word in own if again and is_operand(word))]
        else:
            chosen = [after for before, after in pairwise(own) if _takes_text(before.text, after, use)]
            found = [part for word in own if word not in chosen for part in split(word)]
        where, part = (*invocation.directories, *moved), invocation.command.text
        trees = name in programs.takes_trees or (use is not None and bool(use.recursive))
        whole = any(word.text in programs.hands_over.get(name, ()) for word in own)
        for word in found:
            path = is_path(word)
            tree = trees or path  # a bare word is rarely meant as a directory
            only = chosen_suffixes([word.raw]) if word.pieces and name == "git" else _ANY
            taken = whole and path
            yield Touch("read", word, where, part, recursive=tree, mentioned=not taken, suffixes=only)
        code = name in programs.interpreters  # where a word outside quotes is no directory
        for token, quoted in told_in_texts(invocation, own):
            told = Touch("read", plain_word(token), where, part, recursive=quoted or not code, mentioned=True)
            yield replace(told, sure=False, told=True)
        for word in (*told_by_options(invocation), *told_by_variables(invocation)):
            yield Touch("read", word, where, part, recursive=True, mentioned=True, sure=False)
        yield from _unnamed(invocation, own, where, part)


def _unnamed(invocation: Invocation, own: Sequence[Word], where: Directories, part: str) -> Iterator[Touch]:
    """What is read though no word names it: files of a list, everything that git packs or searches."""
    name = invocation.program
    if any(_LISTS.match(word.text) or (name == "cpio" and _COPIES.match(word.text)) for word in own):
        yield Touch("read", UNKNOWN_WORD, where, part, mentioned=True)
    for word in dropwhile(lambda each: each.text != "::::", invocation.words if name == "parallel" else ()):
        yield Touch("read", word, where, part, mentioned=True)
    yield from _packed(own, where, part, load_programs().packs.get(name))
    if name == "git" and not load_programs().reading_git.isdisjoint(word.text for word in own):
        yield Touch("read", plain_word("."), where, part, recursive=True, mentioned=True)  # what is here
    if name == "git" and any(word.text in _GIT_TREES for word in own):
        yield Touch("read", plain_word("."), where, part, recursive=True)


def _packed(
    own: Sequence[Word], where: Directories, part: str, subcommands: Container[str] | None
) -> Iterator[Touch]:
    """What `npm publish` takes along: the directory that it is given, or else the one where it runs."""
    if subcommands is None or any(word.text == "--dry-run" for word in own):
        return
    operands = [word for word in own if is_operand(word)]
    if operands and operands[0].text in subcommands:
        named = [word for word in operands[1:] if is_path(word)]
        for word in named if len(operands) > 1 else [plain_word(".")]:
            yield Touch("read", word, where, part, recursive=True)


def _listed(invocation: Invocation, words: Sequence[Word]) -> Iterator[Touch]:
    """What programs that only handle names open: lists of them, and what `fd -x` hands on."""
    where, part = invocation.directories, invocation.command.text
    for before, word in pairwise((plain_word(""), *words)):
        for name in split(word) if _NAME_LISTS.match(before.text) or _NAME_LISTS.match(word.text) else ():
            yield Touch("read", name, where, part, mentioned=True)
        if invocation.program in ("fd", "fdfind") and _FD_RUNS.match(word.text):
            yield Touch("read", plain_word("."), where, part, recursive=True)


def _found(invocation: Invocation) -> Iterator[Touch]:
    """What `find -exec` may hand on: all below its starting points, or what its one `-name` chooses; and what
    `xargs` does, where it is known what the pipeline lists."""
    words, where = invocation.words, invocation.directories
    if all(inner.program in load_programs().names_only for inner in invocation.inner):
        return
    if invocation.program == "find":
        listed: Listed | None = Listed(find_roots(words), found_suffixes(words))
    else:
        listed = find_listed(invocation)
    if listed is not None:
        part, only = invocation.command.text, listed.suffixes
        yield from (Touch("read", root, where, part, recursive=True, suffixes=only) for root in listed.roots)


def own_words(invocation: Invocation) -> Sequence[Word]:
    """The words of the program itself, without those of a command that it runs; a script is its own."""
    words, unwrapped = invocation.words, invocation.unwrapped
    if unwrapped is None or not unwrapped.inner:
        return words[1:]
    first, programs = unwrapped.inner[0], load_programs()
    runner, shell = programs.runners.get(invocation.program), invocation.program in programs.shells
    if first.source is not None and (shell or (runner is not None and runner.whole_is_file)):
        return (*words[1 : first.start], *words[first.start + 1 :])  # its text is one word among others
    if first.source is None and invocation.program not in _EACH_STARTS:  # where it begins may be uncertain
        first = unwrapped.inner[-1]
    return words[1 : first.start + (shell and first.source is None)]


def _takes_text(option: str, value: Word, use: FileUse | None) -> bool:
    """Whether what follows an option is no file: the names of tests, the headers that `curl` sends."""
    texts = frozenset[str]() if use is None else (use.values | use.attached) - {"-e", "-x"}
    return option == "-k" or (option in texts and not set(value.text) & set("@<"))


def is_path(word: Word) -> bool:
    return "/" in word.text or word.tilde or word.text in (".", "..")


def is_operand(word: Word) -> bool:
    return not word.text.startswith("-")


def moved_to(words: Sequence[Word], directories: Directories, home: str) -> Directories:
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


def split(word: Word) -> Iterator[Word]:
    """The word and its parts: `--opt=file`, `-ofile`, `@file`, `key=file`, `host:file`."""
    if len(word.text) > _LONGEST:
        return
    text = _KNOWN.sub(_known_text, word.text)
    if ("$" in text and word.computed) or word.globbed:
        if all(kind == "text" or _NUMBER.match(piece) for kind, piece, _ in word.pieces) and text[:1] == "-":
            return  # `make -j$(nproc)`
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
            yield from split(word)


def _shown_by_git(words: Sequence[Word]) -> Iterator[Word]:
    """Files whose content git shows, compares or packs; `HEAD:path` names one too."""
    start = 0
    while start < len(words) and words[start].text.startswith("-"):
        start += 1 + (words[start].text in load_options().git.values | {"-c", "--git-dir"})
    subcommand = words[start].text if start < len(words) else ""
    rest = words[start + 1 :]
    for index, word in enumerate(rest):
        if word.text.startswith("--") and "=" in word.text and word.text.partition("=")[0] in _GIT_FILES:
            yield from split(word)
        elif (
            word.text in _GIT_FILES and index + 1 < len(rest) and subcommand not in ("log", "push", "branch")
        ):
            yield from split(rest[index + 1])
        elif word.text[:2] == ("-f" if subcommand == "config" else "-F") and len(word.text) > 2:
            yield plain_word(word.text[2:])
    shows = subcommand in load_programs().reading_git or (
        subcommand in ("log", "stash", "whatchanged") and any(_PATCHES.match(word.text) for word in rest)
    )
    if shows:
        skipped = subcommand == "grep" and not any(word.text in ("-e", "-f") for word in rest)
        named = [word for word in rest if not word.text.startswith("-") or word.text.startswith("-L")]
        for word in named[1:] if skipped else named:
            yield from (_below_here(as_pathspec(part), word) for part in split(word))
        if subcommand == "cat-file":
            yield from (UNKNOWN_WORD for word in named if _OBJECT.match(word.text))


def as_pathspec(word: Word) -> Word:
    """A pattern in quotes is read by git itself, and its star stands for any text."""
    if word.pieces or not has_glob(word.text):
        return word
    pieces: list[Piece] = []
    for text in _PATTERN.split(word.text):
        pieces += [("substitution", "*", True), ("text", text, True)]
    return build_word(pieces[1:], word.raw)


def _below_here(spec: Word, word: Word) -> Word:
    """A pattern of git that begins with a wildcard means files below the working directory."""
    if not spec.pieces or spec.raw != word.text or not word.literal or word.text[0] not in "*?[":
        return spec
    return build_word([("text", "./", True), *spec.pieces], spec.raw)


def told_by_options(invocation: Invocation) -> Iterator[Word]:
    """What options are given by which a program is known to write a file or to start another one."""
    words = invocation.words
    if find_options(invocation.program) is None:
        return
    for hazard in invocation.hazards:
        if not words[hazard.index].literal:
            yield words[hazard.index]
        yield from (part for text in hazard.value.split() for part in split(plain_word(text)))


def set_variables(invocation: Invocation) -> list[tuple[str, Word]]:
    """What is set for a command alone, before it or by `env` and `sudo`."""
    if not invocation.command.assignments and invocation.unwrapped is None:
        return []
    found = [(each.name, each.value) for each in invocation.command.assignments]
    runner = load_programs().runners.get(invocation.program)
    for word in own_words(invocation) if runner is not None and runner.assignments else ():
        name, equals, value = word.text.partition("=")
        if equals and name.isidentifier():
            found.append((name, plain_word(value) if word.literal else word))
    return found


def told_by_variables(invocation: Invocation) -> Iterator[Word]:
    """What is set for the command alone: `KUBECONFIG=secrets/k kubectl …`."""
    for _, value in set_variables(invocation):
        texts = value.text.split() if value.literal else ()
        yield from (part for text in texts for part in split(plain_word(text)))


def told_in_texts(invocation: Invocation, words: Sequence[Word]) -> Iterator[tuple[str, bool]]:
    """Names inside program texts, which may be files that it opens by itself, and whether in quotes."""
    for text in _program_texts(invocation, words):
        quoted = set(_QUOTED.findall(text[:_LONGEST]))
        names = dict.fromkeys(token for token in _TOKENS.split(text[:_LONGEST]) if token)
        yield from ((name, name in quoted) for name in names)


def _program_texts(invocation: Invocation, words: Sequence[Word]) -> list[str]:
    name, command = invocation.program, invocation.command
    options = find_options(name)
    check = "" if options is None else options.check
    if check == "sed":
        texts = [word.text for word in words if sed_awk.sed_escapes(word.text)]
        return [*texts, *(file for text in texts for file in sed_awk.sed_files(_SED_TEXT.sub("", text)))]
    if check == "awk":  # its text reaches the other words through ARGV and -v
        escapes = any(sed_awk.awk_escapes(word.text) for word in words)
        return [word.text for word in words] if escapes else []
    programs = load_programs()
    if not (
        name in programs.interpreters or name in programs.shells or (options is not None and options.input)
    ):
        return []
    texts = [_KNOWN.sub(_known_text, word.text) for word in words]
    texts += [each.body for each in command.redirections if each.body]
    texts += [each.target.text for each in command.redirections if each.operator == "<<<" and each.target]
    if invocation.opaque and command.piped:  # it runs what other commands of the text print
        others = [each for each in invocation.script.commands if each is not command]
        texts += [word.text for each in others for word in each.words]
        texts += [each.body for other in others for each in other.redirections if each.body]
    return texts
