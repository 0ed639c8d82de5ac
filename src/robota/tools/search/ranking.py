"""Files in the order in which they are shown: newest first, or by path."""

from __future__ import annotations

import os

from robota.tools.search.scope import Visible


class Ranking:
    """Paths that a search finds, with their ages, which are looked up while it still runs."""

    __slots__ = ("_aged", "_directory", "_rest", "_visible")

    def __init__(self, directory: str, visible: Visible | None) -> None:
        self._directory = os.fsencode(os.path.join(directory, ""))
        self._visible = visible
        self._rest = b""
        self._aged: list[tuple[bool, int, bytes]] = []

    def add(self, piece: bytes) -> None:
        """Output of a search: paths that begin with `./` and end with a NUL."""
        *paths, self._rest = (self._rest + piece).split(b"\0")
        for path in paths:
            path = path[2:]
            if self._visible is None or self._visible(os.fsdecode(path)):
                try:
                    age = -os.stat(self._directory + path, follow_symlinks=False).st_mtime_ns
                    self._aged.append((False, age, path.replace(b"/", b"\0")))
                except OSError:
                    self._aged.append((True, 0, path.replace(b"/", b"\0")))

    def newest_first(self) -> list[str]:
        """Files that are gone come last; of the same age, in the order of paths."""
        self._aged.sort()
        return [os.fsdecode(path.replace(b"\0", b"/")) for _, _, path in self._aged]


def path_order(path: str) -> str:
    """Sorts paths by their parts: what is in a directory comes before names that begin like it."""
    return path.replace("/", "\0")
