"""Notices that files have changed, by looking at them when it matters: before a prompt and before each call.

No thread waits for anything. What is looked at costs a `stat` each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TypeAlias

FEW = 100
Look: TypeAlias = tuple[int, int, int, int] | None


class FileWatch:
    """Files and directories, and how they looked last; what does not exist looks like nothing."""

    __slots__ = ("_looked", "_looks")

    def __init__(self, paths: Iterable[str]) -> None:
        self._looks = {path: _look(path) for path in paths}
        self._looked = time.monotonic()

    def find_changes(self, rest: float = 0.0) -> list[str]:
        """The paths that look different from the last time; of many nothing within `rest` seconds of it."""
        now = time.monotonic()
        if len(self._looks) > FEW and now - self._looked < rest:
            return []
        self._looked = now
        return self._compare()

    def _compare(self) -> list[str]:
        changed = []
        for path, before in self._looks.items():
            now = _look(path)
            if now != before:
                self._looks[path] = now
                changed.append(path)
        return changed


def _look(path: str) -> Look:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
