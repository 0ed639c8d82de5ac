"""A shell command as far as neither rules nor the disk have a say in it, kept for the next question."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from robota.core.permissions.command_patterns import command_texts, other_names
from robota.core.permissions.matchers import Cover, Gap
from robota.core.permissions.rules import RuleSet
from robota.core.permissions.started import LANGUAGES, find_perhaps_started, find_sources, find_started
from robota.core.shell.builtins import CHECKS, OUTSIDE, find_outside
from robota.core.shell.effects import Touch, find_touches, substitute
from robota.core.shell.grammar import parse_shell
from robota.core.shell.guess import guess_script
from robota.core.shell.hazards import find_hazards
from robota.core.shell.invocations import READ_BY_BASH, Invocation, find_invocations, find_steering, walk
from robota.core.shell.mentions import find_mentions, set_variables
from robota.core.shell.programs import load_programs
from robota.core.shell.script import Command, Script, ShellSyntaxError, plain_word

_REMEMBERED = 1_000  # characters of a command that is worth keeping
_LOOKED_UP = frozenset({"PATH", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "HOME"}) | READ_BY_BASH
_READ_UNNAMED = {
    "make": frozenset({"Makefile", "makefile", "GNUmakefile"}),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), frozenset({"package.json"})),
}
"""Files that say what a program runs though no word names them."""


class Reading(Struct, eq=False, gc=False):
    """What is found out about a command is kept here, and forgotten with it."""

    script: Script
    directory: str | None
    home: str
    unread: str | None
    """What was not understood."""
    invocations: tuple[Invocation, ...]
    every: tuple[Invocation, ...]
    problem: str | None
    """Why nothing in it runs unasked."""
    steering: str | None
    """A variable it sets that decides what other parts run."""
    redirects: bool
    """Whether any text in it opens a file by itself."""
    covered: tuple[RuleSet, Cover | Gap] | None = None
    """What the allow rules that were asked last make of it."""
    names: frozenset[str] | None = None
    """What its programs are called, also by other names; see `look_closer`."""
    unsettled: bool = False
    """Whether anything that it runs is only known at run time, or depends on what it writes."""
    runs_unknown: str | None = None
    """A part that runs a file which another part writes, or that looks elsewhere for programs."""
    _touches: list[Touch] | None = None
    _mentions: list[Touch] | None = None
    _texts: dict[str, str] | None = None
    _sources: list[tuple[str, str]] | None = None
    _started: dict[str, str] | None = None
    _perhaps: dict[str, str] | None = None

    @property
    def touches(self) -> list[Touch]:
        """The files that it names; touches that differ in nothing but their part are judged alike."""
        if self._touches is None:
            found = find_touches(self.script, self.every, (self.directory,), self.home)
            self._touches = _distinct(found)
        return self._touches

    @property
    def mentions(self) -> list[Touch]:
        if self._mentions is None:
            self._mentions = _distinct(find_mentions(self.every, self.home))
        return self._mentions

    @property
    def texts(self) -> dict[str, str]:
        """The spellings that deny rules are compared with, each with its part."""
        if self._texts is None:
            self._texts = {}
            for each in reversed(self.every):  # of equal texts the first one counts
                texts = command_texts(each.command)
                if "~" in texts[0] or "HOME" in texts[0] or self.home in texts[0]:
                    self._texts.update(dict.fromkeys(self._home_texts(each), texts[0]))
                self._texts.update(dict.fromkeys(texts, texts[0]))
        return self._texts

    def _home_texts(self, invocation: Invocation) -> tuple[str, str]:
        """The part with the user's home as a path, and as a tilde."""
        home, where = self.home.rstrip("/"), invocation.directories[0]
        assigned = frozenset(self.script.assigned)
        known = [substitute(word, where, home, assigned) for word in invocation.words]
        paths = [home + word.text[1:] if word.tilde else word.text for word in known]
        inside = [path == home or path.startswith(f"{home}/") for path in paths]
        short = [
            "~" + path[len(home) :] if within else path for path, within in zip(paths, inside, strict=True)
        ]
        return " ".join(paths), " ".join(short)

    @property
    def sources(self) -> list[tuple[str, str]]:
        """What options and variables are given that start something, each with its part."""
        if self._sources is None:
            self._sources = list(find_sources(self.every))
        return self._sources

    @property
    def started(self) -> dict[str, str]:
        """What options and variables start, each with its part."""
        if self._started is None:
            self._started = dict(find_started(self.sources)) if self.sources else {}
        return self._started

    def look_closer(self) -> frozenset[str]:
        """Find out what only rules that deny or ask about commands need."""
        names: set[str] = set()
        for each in self.every:
            names.update(other_names(each.program))
            self.unsettled = self.unsettled or _is_open(each)
            if self.runs_unknown is None and self._runs_written(each):
                self.unsettled, self.runs_unknown = True, each.command.text
        self.names = frozenset(names)
        return self.names

    def _runs_written(self, invocation: Invocation) -> bool:
        given = set_variables(invocation)
        if given and not _LOOKED_UP.isdisjoint([variable for variable, _ in given]):
            return True
        name, words = invocation.program, invocation.words
        files = _READ_UNNAMED.get(name, frozenset())
        if "/" in words[0].text:
            files |= {name}
        if name in LANGUAGES or name in load_programs().shells or name in ("source", "."):
            files |= {word.text.rpartition("/")[2] for word in words[1:]}
        text = invocation.command.text if files else ""
        return bool(files) and any(
            touch.kind == "write" and touch.part != text and touch.word.text.rpartition("/")[2] in files
            for touch in self.touches
        )

    @property
    def perhaps(self) -> dict[str, str]:
        """What a program may start that no table knows of, each with its part."""
        if self._perhaps is None:
            self._perhaps = dict(find_perhaps_started(self.every, self.sources))
        return self._perhaps


def _is_open(invocation: Invocation) -> bool:
    """Whether a word, or what the command runs, is only known at run time."""
    for word in invocation.command.words:
        if word.pieces and not word.literal:
            return True
    return invocation.opaque


def _distinct(touches: Iterable[Touch]) -> list[Touch]:
    found = list(touches)
    return list({replace(touch, part=""): touch for touch in found}.values()) if len(found) > 1 else found


def read_command(text: str, directory: str | None, home: str, cwd: str) -> Reading:
    """A session asks about the same commands again and again: for the verdict, for the question, after it."""
    return (read_again if len(text) <= _REMEMBERED else _read)(text, directory, home, cwd)


def _read(text: str, directory: str | None, home: str, cwd: str) -> Reading:
    unread = problem = None
    try:
        script = parse_shell(text)
    except ShellSyntaxError as error:
        script, unread = guess_script(text), f"not understood: {error}"
    found = find_invocations(script, (directory,), home)
    if directory is not None and directory != cwd:
        found.insert(0, _as_move(directory, cwd, script))
    invocations = tuple(found)
    every = walk(invocations)
    redirects, steers, notable = bool(script.redirections), bool(script.lasting), _notable_names()
    for each in every:
        command = each.command
        first = command.words[0]
        if first.pieces or first.text in notable or each.program == "ps":
            problem = problem or _find_problem(each)
            steers = True
        if command.redirections:
            redirects = True
        if command.assignments:
            steers = True
        if each.scripts:
            steers = True
            redirects = redirects or any(inner.redirections for inner in each.scripts)
    steering = find_steering(script, every) if steers else None
    return Reading(script, directory, home, unread, invocations, every, problem, steering, redirects)


@lru_cache(maxsize=1)
def _notable_names() -> frozenset[str]:
    """First words of commands that may be a problem, or set a variable that steers others."""
    return OUTSIDE | load_programs().setters | CHECKS.keys()


read_again = lru_cache(maxsize=1024)(_read)


def _as_move(directory: str, cwd: str, script: Script) -> Invocation:
    """The working directory of a call is judged like `cd`."""
    target = posixpath.relpath(directory, cwd)
    written = directory if target.startswith("..") else target
    return Invocation(Command((plain_word("cd"), plain_word(written))), script, (cwd,), "cd")


def _find_problem(invocation: Invocation) -> str | None:
    words = invocation.command.words
    if words[0].pieces and not words[0].literal:
        return f"which program {words[0].text} stands for is only known when it runs"
    if invocation.program == "ps" and find_hazards(words):
        return "it would show the environment of other processes"
    return find_outside(words, invocation.script)
