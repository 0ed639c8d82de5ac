"""Whether a shell command shows what other processes hold: the environment, where keys are."""

from __future__ import annotations

import os
import posixpath
import re

from robota.core.permissions.command_patterns import path_items
from robota.core.permissions.command_reading import Reading
from robota.core.permissions.processes import holds_environment, leave_processes, may_hold_environment
from robota.core.permissions.variables import find_values
from robota.core.shell.effects import known_path, may_recurse
from robota.core.shell.script import Word

_QUOTING = str.maketrans("", "", "'\"\\")
_ENVIRONMENT = re.compile(r"\bproc/\S*(?:environ|/mem\b)|\bproc\b.*\benviron\b", re.DOTALL)
_WIDE = re.compile(r"proc|environ|find|/[^\s/]*[*?\[]")
_OUTWARD = re.compile(r"proc|environ|/[^\s/]*[*?\[]|\.\.|~|\$|/(?![^\s/])|\bcd\b|\bpushd\b")


def _unquote(command: str) -> str:
    """The letters of a command: `/pr"oc"` spells `/proc`."""
    quoted = '"' in command or "'" in command or "\\" in command
    return command.translate(_QUOTING) if quoted else command


def may_leave(command: str, cwd: str) -> bool:
    """Whether anything in a command may lead above the working directory, or that is where processes are."""
    letters = _unquote(command)
    hinted = (
        "/" in letters
        or ".." in letters
        or "~" in letters
        or "cd" in letters
        or "proc" in letters
        or "environ" in letters
        or "pushd" in letters
    )
    return (hinted and _OUTWARD.search(letters) is not None) or cwd == "/" or cwd.startswith("/proc")


def shows_environment(command: str, cwd: str, reading: Reading) -> bool:
    """Whether a part reads what another process holds: our own environment is not for commands.

    Only for commands that `may_leave`.
    """
    letters, every = _unquote(command), reading.every
    if "proc" in letters and _ENVIRONMENT.search(letters):
        return True
    wide = (
        _WIDE.search(letters) is not None or ("/" in letters and _assigns(reading)) or cwd.startswith("/proc")
    )
    if not wide and not any(map(may_recurse, every)):
        return False
    touches = (*reading.touches, *reading.mentions) if wide else reading.touches
    return any(
        _holds_environment(word, directory, reading, recursive=touch.recursive and not touch.suffixes)
        for touch in touches
        if wide or touch.recursive
        for word in find_values(touch.word, reading.script, every) or (touch.word,)
        for directory in touch.directories
    )


def _assigns(reading: Reading) -> bool:
    """Whether the text sets variables, in which a path may be put together."""
    inner = (script for each in reading.every for script in each.scripts)
    return bool(reading.script.assigned) or any(script.assigned for script in inner)


def _holds_environment(word: Word, directory: str | None, reading: Reading, *, recursive: bool) -> bool:
    assigned = frozenset(reading.script.assigned)
    path = known_path(word, directory, reading.home, assigned)
    if path is not None:
        led = leave_processes(posixpath.normpath(path), directory)[0]
        if led is None:
            return False
        led = posixpath.normpath(led)
        if recursive or led.endswith("/environ"):  # a link in the workspace may lead there
            led = os.path.realpath(led)
        return holds_environment(led, recursive=recursive)
    written = not word.pieces or any(kind == "text" and text.strip("/") for kind, text, _ in word.pieces)
    if not written:  # it may be any file, which is not what this is about
        return False
    if word.text.endswith("/environ"):
        return True
    items = path_items(word, directory, reading.home, assigned)
    return may_hold_environment(items, recursive=recursive)
