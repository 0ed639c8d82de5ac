"""Notices that files have changed, by looking at them when it matters: before a prompt and before each call.

No thread waits for anything. What is looked at costs a `stat` each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeAlias

Look: TypeAlias = tuple[int, int, int, int] | None


class FileWatch:
    """Files and directories, and how they looked last; what does not exist looks like nothing."""

    __slots__ = ("_looks",)

    def __init__(self, paths: Iterable[str]) -> None:
        self._looks = {path: _look(path) for path in paths}

    def find_changes(self) -> list[str]:
        """The paths that look different from the last time."""
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
