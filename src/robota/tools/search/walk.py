"""The files below a directory in the order of their paths; links are neither followed nor listed."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator

from robota.tools.search.gitignore import Ignored, ignore_nothing, read_surroundings
from robota.tools.search.glob_pattern import NameSet


class Walk:
    """One pass; `failed` says whether something could not be read."""

    __slots__ = ("_git", "_max_depth", "_names", "_skipped", "failed")

    def __init__(
        self,
        *,
        git: bool = True,
        names: NameSet | None = None,
        skipped: Collection[bytes] = (),
        max_depth: int | None = None,
    ) -> None:
        """`git`: leave out what git ignores. `names`: of the files wanted. `skipped`: names to pass over."""
        self._git = git
        self._names = names
        self._skipped = frozenset(skipped)
        self._max_depth = max_depth
        self.failed = False

    def files(self, start: bytes) -> Iterator[bytes]:
        """Paths that begin with `start`, which ends with a slash or is empty for the working directory."""
        ignored = ignore_nothing()
        if self._git:
            here = os.path.join(os.getcwdb(), start).rstrip(b"/") or b"/"
            ignored = read_surroundings(os.path.realpath(here), len(start))
        stack = [self._enter(start, ignored)]
        while stack:
            for prefix, below in stack[-1]:
                if below is None:
                    yield prefix
                elif self._max_depth is None or len(stack) < self._max_depth:
                    stack.append(self._enter(prefix + b"/", below))
                    break
            else:
                stack.pop()

    def _enter(self, prefix: bytes, above: Ignored) -> Iterator[tuple[bytes, Ignored | None]]:
        """Paths of the wanted entries; directories come with what is ignored around them."""
        try:
            with os.scandir(prefix or b".") as found:
                entries = sorted(found, key=_name)
        except OSError:
            self.failed = True
            return
        covers = _never
        if self._git:
            above = above.enter(prefix or b".", prefix, {entry.name for entry in entries})
            covers = above.covers
        names, skipped = self._names, self._skipped
        for entry in entries:
            name = entry.name
            if name in skipped:
                continue
            path = prefix + name
            if entry.is_dir(follow_symlinks=False):
                if not covers(name, path, True):
                    yield path, above
            elif (
                (names is None or name in names)
                and entry.is_file(follow_symlinks=False)
                and not covers(name, path, False)
            ):
                yield path, None


def _name(entry: os.DirEntry[bytes]) -> bytes:
    return entry.name


_Covers = Callable[[bytes, bytes, bool], bool]


def _never(name: bytes, path: bytes, is_directory: bool) -> bool:
    return False
