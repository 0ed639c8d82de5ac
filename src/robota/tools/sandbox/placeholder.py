"""Empty entries that take the place of missing protected files while commands run in the sandbox.

A name can only be covered by a mount if something is there. Most placeholders are empty directories, because
git does not see those. Every holder has a shared lock on each, also across programs; the last one removes
them, and one left behind by a program that was killed is recognised by its time stamp and removed later.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Self

if sys.platform != "win32":  # where no sandbox needs them, the module can be imported all the same
    import fcntl

_MARK_NS = 1_383_031_407_000_000_000
"""The modification time of a placeholder that nobody has touched."""
_ATTEMPTS = 100
_GIT_FILES = {"config": "", "config.worktree": "", "commondir": ".\n", "attributes": ""}
"""In a git directory they must be files that git can read; this `commondir` says what is true anyway."""


class Placeholders:
    """Placeholders for paths that are missing; a context manager that lets go of them."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def cover(self, path: str) -> bool:
        """Put a placeholder where nothing is; whether something is there now that can be covered.

        There is not where we may not write either: then a command could not create it. Raises OSError when it
        cannot be held.
        """
        if path in self._held:
            return True
        for _ in range(_ATTEMPTS):
            created = _create(path)
            if created is None:
                return os.path.lexists(path)
            if not created and not _is_placeholder(path):
                return True
            descriptor = _lock(path)
            if descriptor is not None:
                self._held[path] = descriptor
                return True
        raise OSError(f"{path} cannot be kept from being created")

    def release(self) -> None:
        held, self._held = self._held, {}
        for path, descriptor in held.items():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path, descriptor)
            except OSError:  # held by another command, or no longer ours
                continue
            finally:
                os.close(descriptor)


def _content(path: str) -> str | None:
    """What the placeholder file holds; `None` for a directory."""
    parent, name = os.path.split(path)
    return _GIT_FILES.get(name) if ".git" in parent.split("/") else None


def _create(path: str) -> bool | None:
    """Whether it was created; `None` when it cannot be."""
    content = _content(path)
    try:
        if content is None:
            os.mkdir(path, 0o755)
        else:
            with open(path, "x", encoding="utf-8") as file:
                file.write(content)
        os.utime(path, ns=(_MARK_NS, _MARK_NS))
    except FileExistsError:
        return False
    except OSError:
        return None
    return True


def _is_placeholder(path: str) -> bool:
    try:
        status = os.lstat(path)
        if status.st_mtime_ns != _MARK_NS:
            return False
        content = _content(path)
        return os.listdir(path) == [] if content is None else status.st_size == len(content)
    except OSError:
        return False


def _lock(path: str) -> int | None:
    """A shared lock on what is at the path now; `None` if it went away meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if _is_same(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _remove(path: str, descriptor: int) -> None:
    if _is_same(path, descriptor) and _is_placeholder(path):
        if _content(path) is None:
            os.rmdir(path)
        else:
            os.unlink(path)


def _is_same(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
