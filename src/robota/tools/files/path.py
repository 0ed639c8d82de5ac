"""Where a file is, whether it lies inside given directories, and how a failure to use it is worded."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from typing import Literal, TypeAlias

from robota.core.permissions.paths import is_inside

Use: TypeAlias = Literal["read", "written"]


class FileProblem(Exception):
    """Why a file was not read or changed, as a sentence for the model."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class SpecialFile(OSError):
    """Something that is no regular file stands where one was wanted."""

    def __init__(self, mode: int) -> None:
        super().__init__("not a regular file")
        self.mode = mode


class Unconfirmed(OSError):
    """The new file is in its place, but whether it would survive a power failure is not known."""


def locate(file_path: str, cwd: str) -> str:
    """The path as it is opened and shown. A `..` is left to the system: behind a link it leads elsewhere."""
    if os.path.isabs(file_path):
        return file_path
    path = os.path.join(cwd or os.getcwd(), file_path)
    return path if ".." in file_path.split(os.sep) else os.path.normpath(path)


def contained(path: str, roots: Iterable[str]) -> bool:
    """Whether the file that this absolute path leads to lies in one of the directories, or is one of them.

    Links are resolved on both sides; what does not exist yet counts as the place where it would be made.
    A path that leads nowhere (a circle of links, an impossible name) is outside.
    """
    try:
        real = os.path.realpath(path)
        return not os.path.islink(real) and any(is_inside(real, os.path.realpath(root)) for root in roots)
    except (OSError, ValueError):
        return False


_KINDS = (
    (stat.S_ISDIR, "a directory; use Glob to list it"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_NO_SPACE = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def refuse_special(mode: int) -> None:
    if stat.S_ISLNK(mode):  # the path was resolved before, so this is a circle or came just now
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(mode):
        raise SpecialFile(mode)


def explain(path: str, error: OSError | ValueError, use: Use) -> FileProblem:
    """The failure in words. A file to be written is as it was, unless the sentence says otherwise."""
    code = "unreadable" if use == "read" else "unwritable"
    return FileProblem(_describe(path, error, use), code)


def _describe(path: str, error: OSError | ValueError, use: Use) -> str:
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, SpecialFile):
        kind = next((words for test, words in _KINDS if test(error.mode)), "not a regular file")
        return f"Path is not a file: {path} (it is {kind})"
    if isinstance(error, Unconfirmed):
        return (
            f"File was written, but the system could not confirm that it is safe on disk: {path} ({reason})"
        )
    if isinstance(error, NotADirectoryError) and use == "written":
        return f"File cannot be written: {path} (a part of its path is a file, not a directory)"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"File not found: {path}"
    if isinstance(error, PermissionError):
        return f"Permission denied: {path}"
    if number == errno.ELOOP:
        return f"File not found: {path} (its links lead in a circle, or it was exchanged just now)"
    if number in _NO_SPACE:
        return f"No space left on the disk: {path} was left as it was. Free some space, then try again."
    return f"File cannot be {use}: {path} ({reason})"
