"""Changing a file of a conversation: only a version it knows, one change at a time, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from threading import Lock

from robota.core.tool import FileVersions
from robota.tools.files.directory import SYSTEM, Content, Directory, SystemCalls, is_same
from robota.tools.files.path import FileProblem, contained, explain, locate

MAX_FILE_BYTES = 10 * 1024 * 1024
"""How much of a file is looked at, from its beginning. A longer one cannot be changed here."""

# The calls of one answer run at the same time, and several edits of one file are normal. Locks are shared by
# paths, so that there is nothing to clean up; whoever holds one never waits for another.
_LOCKS = tuple(Lock() for _ in range(64))


def lock_of(real_path: str) -> Lock:
    return _LOCKS[hash(real_path) % len(_LOCKS)]


def hash_content(data: bytes) -> str:
    return sha256(data).hexdigest()


def load_file(path: str) -> tuple[str, Content]:
    """A file's real path and its content, or of a longer one the beginning."""
    try:
        real = os.path.realpath(path)
        with Directory(os.path.dirname(real)) as directory:
            content = directory.read(os.path.basename(real), MAX_FILE_BYTES)
        if content is None:
            raise FileNotFoundError
    except (OSError, ValueError) as error:
        raise explain(path, error, "read") from error
    return real, content


def remember(files: FileVersions, real: str, content: Content) -> None:
    """Note the version that was read; one that was not read whole counts as not read."""
    version = hash_content(content.data) if content.whole else None
    with lock_of(real):
        if version is None:
            files.forget(real)
        elif _is_current(real, content):  # else a change of our own came in between, and that one is noted
            files.remember(real, version)


def _is_current(real: str, content: Content) -> bool:
    try:
        return is_same(content.facts, os.stat(real))
    except OSError:
        return False


def change_file(
    file_path: str,
    cwd: str,
    files: FileVersions,
    decide: Callable[[str, Content | None], bytes],
    *,
    create: bool = True,
    must_be_read: bool = False,
    system: SystemCalls = SYSTEM,
) -> None:
    """Replace a file by what `decide` makes of its path and content; without `create` it has to be there.

    The version that was read before must still be the one on disk. A file that was never read is refused
    only if `must_be_read`. Raises `FileProblem`, and then the file is as it was.
    """
    path = locate(file_path, cwd)
    if os.path.basename(file_path) in ("", os.curdir, os.pardir):
        raise FileProblem(f"Path is not a file: {path} (it names a directory)", "unwritable")
    try:
        real = os.path.realpath(path)
        _refuse_dangling(path, real, cwd)
        where = Directory(os.path.dirname(real), create=create, system=system)
        with lock_of(real), where as directory:
            name = os.path.basename(real)
            current = directory.read(name, MAX_FILE_BYTES, writable=True)
            if current is not None:
                _check_version(path, current, files.get(real), must_be_read)
            elif not create:
                raise FileNotFoundError
            data = decide(path, current)
            if not directory.replace(name, data, None if current is None else current.facts):
                raise _changed(path)
            files.remember(real, hash_content(data))
    except (OSError, ValueError) as error:
        raise explain(path, error, "written") from error


def _check_version(path: str, current: Content, known: str | None, must_be_read: bool) -> None:
    if not current.whole:
        raise FileProblem(
            f"File is too large to be changed here: {path} ({current.facts.st_size:,} bytes; at most "
            f"{MAX_FILE_BYTES:,}). Use a shell command.",
            "too_large",
        )
    if known is None:
        if must_be_read:
            raise FileProblem(
                f"File exists and has not been read yet: {path}. Read it first, then write it again; "
                "if Read cannot show it and it is not needed, remove it first.",
                "not_read",
            )
    elif known != hash_content(current.data):
        raise _changed(path)


def _changed(path: str) -> FileProblem:
    return FileProblem(
        f"File has changed on disk since it was last read: {path}. Read it again, then repeat the change.",
        "changed",
    )


def _refuse_dangling(path: str, real: str, cwd: str) -> None:
    """A link to nothing hides where a new file would appear; outside, that must be spelled out."""
    seen = path
    while not os.path.lexists(seen) and seen != os.path.dirname(seen):
        seen = os.path.dirname(seen)
    dangling = os.path.islink(seen) and not os.path.exists(seen) and not os.path.islink(real)
    if dangling and not contained(real, (cwd or os.getcwd(),)):
        raise FileProblem(
            f"File cannot be written: {path} (a link in it leads to {real}, which does not exist and is "
            "outside the working directory). Name that path itself if it is meant.",
            "unwritable",
        )
