"""A shell command as far as neither rules nor the disk have a say in it, kept for the next question."""

from __future__ import annotations

import posixpath
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from robota.core.permissions.command_patterns import command_texts
from robota.core.permissions.started import find_perhaps_started, find_started
from robota.core.shell.builtins import find_outside
from robota.core.shell.effects import Touch, find_touches
from robota.core.shell.grammar import parse_shell
from robota.core.shell.guess import guess_script
from robota.core.shell.hazards import find_hazards
from robota.core.shell.invocations import Invocation, find_invocations, find_steering, walk
from robota.core.shell.mentions import find_mentions
from robota.core.shell.script import Command, Script, ShellSyntaxError, plain_word

_REMEMBERED = 1_000  # characters of a command that is worth keeping


class Reading(Struct, frozen=True, eq=False):
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


def read_command(text: str, directory: str | None, home: str, cwd: str) -> Reading:
    """A session asks about the same commands again and again: for the verdict, for the question, after it."""
    return (_read_again if len(text) <= _REMEMBERED else _read)(text, directory, home, cwd)


def _read(text: str, directory: str | None, home: str, cwd: str) -> Reading:
    script, unread = _read_script(text)
    invocations = find_invocations(script, (directory,), home)
    if directory is not None and directory != cwd:
        invocations.insert(0, _as_move(directory, cwd, script))
    every = tuple(walk(invocations))
    problem = next(filter(None, map(_find_problem, every)), None)
    steering = find_steering(script, every)
    return Reading(script, directory, home, unread, tuple(invocations), every, problem, steering)


_read_again = lru_cache(maxsize=1024)(_read)


def _read_script(command: str) -> tuple[Script, str | None]:
    """The command as a script; outside the grammar, a guess at it and what was not understood."""
    try:
        return parse_shell(command), None
    except ShellSyntaxError as error:
        return guess_script(command), f"not understood: {error}"


def _as_move(directory: str, cwd: str, script: Script) -> Invocation:
    """The working directory of a call is judged like `cd`."""
    target = posixpath.relpath(directory, cwd)
    written = directory if target.startswith("..") else target
    return Invocation(Command((plain_word("cd"), plain_word(written))), script, (cwd,))


def _find_problem(invocation: Invocation) -> str | None:
    if invocation.computed:
        return f"the program to run is only known when it runs: {invocation.command.text}"
    if invocation.program == "ps" and find_hazards(invocation.words):
        return "it would show the environment of other processes"
    return find_outside(invocation.words, invocation.script)


@lru_cache(maxsize=1024)
def list_touches(reading: Reading) -> list[Touch]:
    """The files that the command names; touches that differ in nothing but their part are judged alike."""
    touches = find_touches(reading.script, reading.every, (reading.directory,), reading.home)
    return list({replace(touch, part=""): touch for touch in touches}.values())


@lru_cache(maxsize=1024)
def list_mentions(reading: Reading) -> list[Touch]:
    return list(
        {replace(touch, part=""): touch for touch in find_mentions(reading.every, reading.home)}.values()
    )


@lru_cache(maxsize=1024)
def find_texts(reading: Reading) -> dict[str, str]:
    """The spellings that deny rules are compared with, each with its part."""
    texts: dict[str, str] = {}
    for each in reversed(reading.every):  # of equal texts the first one counts
        texts.update((text, each.command.text) for text in command_texts(each.command))
    return texts


@lru_cache(maxsize=1024)
def find_started_texts(reading: Reading) -> dict[str, str]:
    """What options and variables start, each with its part."""
    return dict(find_started(reading.every))


@lru_cache(maxsize=1024)
def find_perhaps(reading: Reading) -> dict[str, str]:
    """What a program may start that no table knows of, each with its part."""
    return dict(find_perhaps_started(reading.every))
