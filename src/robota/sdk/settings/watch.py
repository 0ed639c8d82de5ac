"""Notices that files have changed, by looking at them when it matters: before a prompt and before each call.

No thread waits for anything. What is looked at costs a `stat` each, and what is not there half of one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from os import F_OK, access, stat
from typing import TypeAlias

FEW = 100
Look: TypeAlias = tuple[int, int, int, int]


class FileWatch:
    """Files and directories, and how they looked last; what does not exist looks like nothing."""

    __slots__ = ("_absent", "_looked", "_looks", "_many")

    def __init__(self, paths: Iterable[str]) -> None:
        self._looks: dict[str, Look] = {}
        """Of what is there; the rest is `_absent`, and asking whether it came costs half of a `stat`."""
        self._absent: list[str] = []
        for path in dict.fromkeys(paths):
            self._file(path, _look(path))
        self._many = len(self._looks) + len(self._absent) > FEW
        self._looked = time.monotonic()

    def _file(self, path: str, look: Look | None) -> None:
        if look is not None:
            self._looks[path] = look
        elif "\0" not in path:  # such a path can never be there
            self._absent.append(path)

    def find_changes(self, rest: float = 0.0) -> list[str]:
        """The paths that look different from the last time; of many nothing within `rest` seconds of it."""
        if rest:
            now = time.monotonic()
            if self._many and now - self._looked < rest:
                return []
            self._looked = now
        changed: list[str] = []
        for path in self._absent:  # every prompt comes by here: a comprehension would cost a call
            if access(path, F_OK):
                changed.append(path)  # noqa: PERF401 - see above
        for path, before in self._looks.items():
            try:
                facts = stat(path)
            except OSError:
                changed.append(path)
                continue
            if (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns) != before:
                changed.append(path)
        if changed:
            self._look_again(changed)
        return changed

    def _look_again(self, changed: list[str]) -> None:
        came = set(changed)
        self._absent = [path for path in self._absent if path not in came]
        for path in changed:
            self._looks.pop(path, None)
            self._file(path, _look(path))


def _look(path: str) -> Look | None:
    try:
        facts = stat(path)
    except (OSError, ValueError):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
