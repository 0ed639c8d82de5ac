"""Places where git would obey settings that the model may have written.

Git takes any directory with `HEAD`, `objects` and `refs` for a repository of its own and runs the programs
that its `config` names. Inside of `.git` these files are protected; beside ordinary files they are not.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from robota.core.permissions.paths import is_inside
from robota.core.shell.effects import Touch
from robota.core.shell.invocations import Invocation

_TOP = "$(git rev-parse --show-toplevel)"
_PARTS_OF_ONE = re.compile(r"(?:\A|/)(?:\.git|HEAD|config|refs|objects)(?:/|\Z)")


def find_doubtful_git(
    every: Sequence[Invocation], touches: Iterable[Touch], trees: Sequence[str] = ()
) -> str | None:
    """Why git should not run unasked, if it should not; `trees` are what other parts fill with files."""
    calls = [each for each in every if each.program == "git" and not each.computed]
    if not calls:
        return None
    written = any(touch.kind == "write" and _PARTS_OF_ONE.search(touch.word.text) for touch in touches)
    for each in calls:
        for directory in _git_directories(each):
            if written or (trees and directory is not None and _is_filled(directory, trees)):
                return "git would run in a repository that the command itself may have written"
            if directory is None and not _stays_in_repository(every):
                return "git would run in a directory that is only known when it runs"
            if directory is not None and _obeys_files_here(directory):
                return f"git would take plain files for the settings of a repository: {directory}"
    return None


def _is_filled(directory: str, trees: Sequence[str]) -> bool:
    """Whether the repository of a directory may come from a tree that was filled."""
    return any(is_inside(directory, tree) or is_inside(find_top(directory) + "/.git", tree) for tree in trees)


def _stays_in_repository(every: Sequence[Invocation]) -> bool:
    """Whether the command goes nowhere but to the top of the working tree that it is in."""
    moves = [each.words for each in every if each.program in ("cd", "pushd", "popd")]
    return bool(moves) and all(len(words) == 2 and words[1].text == _TOP for words in moves)


def _git_directories(invocation: Invocation) -> Iterator[str | None]:
    words = invocation.words
    moved = [words[index + 1] for index in range(1, len(words) - 1) if words[index].text == "-C"]
    for directory in invocation.directories:
        here = directory
        for word in moved:
            known = here is not None and word.literal and not word.tilde
            here = posixpath.normpath(posixpath.join(here or "/", word.text)) if known else None
        yield here


_is_there = (
    partial(os.access, mode=os.F_OK, follow_symlinks=False)  # without the cost of an exception
    if os.access in os.supports_follow_symlinks
    else os.path.lexists
)


def find_top(directory: str) -> str:
    """The top of the repository that a directory is in, or the directory when it is in none."""
    here = directory
    while not _is_there(here + "/.git"):
        above = here.rpartition("/")[0]
        if not above:
            return directory
        here = above
    return here


def _obeys_files_here(directory: str) -> bool:
    while not _is_there(directory + "/.git"):
        if _is_there(directory + "/HEAD") and _is_there(directory + "/refs"):
            return True
        above = directory.rpartition("/")[0] or "/"
        if above == directory:
            return False
        directory = above
    return False
