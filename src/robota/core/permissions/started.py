"""Commands that options, variables and program texts start, for rules that deny or ask."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from robota.core.permissions.command_patterns import command_texts
from robota.core.shell.guess import guess_script
from robota.core.shell.invocations import Invocation
from robota.core.shell.mentions import set_variables
from robota.core.shell.programs import find_options, is_known, load_programs

_LONGEST = 64  # words of a command that an option starts; keeps many such options in one command cheap
_STARTS = 24
_NAMED = 12  # words of a command that a program unknown to us may start
_WORDS = 400
_MODULE = re.compile(r"(?:-[A-Za-z]*?m)?([A-Za-z_][\w.]*?)(?:\.__main__)?\Z")
"""A module that python runs, also glued to its option (`-mpip`, `-Impip`)."""
_BETWEEN = re.compile(r"[^\w./+=@%-]+")
LANGUAGES = frozenset({
    "bun", "deno", "expect", "julia", "lua", "node", "osascript", "perl", "php", "pwsh", "python", "python2",
    "python3", "Rscript", "ruby", "tclsh",
})  # fmt: skip
_CODE_FLAGS = re.compile(r"-[a-zA-Z]*[eEc]\Z")
_CODE_OPTIONS = frozenset(
    {"-c", "-e", "-E", "-r", "-p", "-x", "--eval", "--print", "eval", "exec", "x", "-Command"}
)


def find_started(sources: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Commands that options and variables start (`tar --to-command`, `GIT_PAGER=`), each with its part."""
    for source, part in sources:
        for text in {source, source.partition("=")[2].removeprefix("!")}:
            for command in guess_script(text).commands:
                yield from ((spelling, part) for spelling in command_texts(command))


def find_perhaps_started(
    invocations: Sequence[Invocation], sources: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """The same where only the program knows how it reads the text: a command may begin at any word."""
    starting = {part for _, part in sources}
    codes = [
        (text, each.command.text)
        for each in invocations
        if _is_code(each.program) or each.command.text in starting  # `vagrant ssh <<< "rm x"`
        for text in _codes(each)
    ]
    for source, part in (*sources, *codes):
        words = [word for word in _BETWEEN.split(source) if word][:_LONGEST]
        for start in range(min(len(words), _STARTS)):
            yield " ".join([words[start].rpartition("/")[2], *words[start + 1 :]]), part
        if words:  # who starts a program gives it words of its own: `tar -I rm`, `CC=rm make`
            yield f"{words[-1].rpartition('=')[2].rpartition('/')[2]} ", part
    for each in invocations:
        for inner in () if each.unwrapped is None else each.unwrapped.inner:
            if inner.source is not None and inner.source.isprintable() and " " not in inner.source:
                yield f"{inner.source.rpartition('/')[2]} ", each.command.text
        if not each.computed and not is_known(each.program):
            yield from ((text, each.command.text) for text in _named_words(each))


def _named_words(invocation: Invocation) -> Iterator[str]:
    """What a program that nothing is known about may start: its words, or a text in one of them."""
    texts = [word.text for word in invocation.words[1:]]
    texts += [
        each.body or (each.target.text if each.target else "") for each in invocation.command.redirections
    ]
    words = [word for text in texts for word in _BETWEEN.split(text) if word][:_WORDS]
    is_python = invocation.program.startswith("py")
    for start, word in enumerate(words):
        is_python = is_python or word.rpartition("/")[2].startswith("python")
        if is_python and (module := _MODULE.match(word)):
            yield " ".join([module[1], *words[start + 1 : start + _NAMED]])
        yield " ".join([word.rpartition("/")[2], *words[start + 1 : start + _NAMED]])


def find_sources(invocations: Sequence[Invocation]) -> Iterator[tuple[str, str]]:
    """What options and variables hold that are given commands, each with its part."""
    seen: set[str] = set()
    for invocation in invocations:
        for source in _find_sources(invocation):
            if source and source not in seen:
                seen.add(source)
                yield source, invocation.command.text


def _find_sources(invocation: Invocation) -> list[str]:
    sources: list[str] = []
    if given := set_variables(invocation):
        steers = load_programs().is_steering
        sources = [value.text for name, value in given if value.literal and steers(name)]
    options = None if invocation.computed else find_options(invocation.program)
    hazards = () if options is None else invocation.hazards
    if options is None or not hazards:
        return sources
    words = [word.text for word in invocation.words]
    if options.check == "awk":  # its text may run what -v sets
        sources += [word for word in words if "=" in word]
    for hazard in hazards:
        sources += [hazard.value, " ".join(words[hazard.index : hazard.index + _LONGEST])]
        if options.check == "git" and "alias." in hazard.word + hazard.value:
            sources.append(f"git {hazard.value.partition('=')[2] or hazard.value}")
    return sources


def _is_code(program: str) -> bool:
    return program in LANGUAGES or program in load_programs().interpreters


def _codes(invocation: Invocation) -> Iterator[str]:
    coded, words = invocation.program in LANGUAGES, invocation.words
    for index, word in enumerate(words[1:], 1) if coded else ():
        before = words[index - 1].text
        if before in _CODE_OPTIONS or _CODE_FLAGS.match(before) or word.text[:2] in ("-c", "-e"):
            yield word.text
    for redirection in invocation.command.redirections:
        yield redirection.body or (
            redirection.target.text if redirection.operator == "<<<" and redirection.target else ""
        )
