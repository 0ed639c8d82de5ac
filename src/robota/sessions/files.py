"""Every file operation of the session layer, in one object that tests exchange for one that fails.

Files are private whatever the umask says: 0600 in 0700 directories. Nothing here retries or recovers; that
is the business of whoever knows what the file means.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


class Files:
    """The real disk."""

    __slots__ = ()

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; one that exists already is made private."""
        if not os.path.isdir(path):
            parent = os.path.dirname(path)
            if parent and not os.path.isdir(parent):
                os.makedirs(parent, exist_ok=True)
            try:
                os.mkdir(path, PRIVATE_DIRECTORY)
            except FileExistsError:
                if not os.path.isdir(path):
                    raise
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, PRIVATE_DIRECTORY)

    def open_append(self, path: str) -> int:
        """A descriptor whose writes go to the end, for a file that is created when missing."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
        self._make_private(fd)
        return fd

    def create(self, path: str) -> int:
        """A descriptor for a file that must not exist yet."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        self._make_private(fd)
        return fd

    def open_read(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, fd: int, size: int) -> bytes:
        return os.read(fd, size)

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        return os.pread(fd, size, offset)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def write(self, fd: int, data: bytes) -> int:
        """One `write`; how much of the data it took."""
        return os.write(fd, data)

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Content and length are on the disk when this returns."""
        os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, path: str) -> None:
        """Names created, replaced or removed in the directory are on the disk when this returns."""
        with self._opened_directory(path) as fd:
            os.fsync(fd)

    def _make_private(self, fd: int) -> None:
        if os.fstat(fd).st_mode & 0o077:
            os.fchmod(fd, PRIVATE_FILE)

    @contextmanager
    def _opened_directory(self, path: str) -> Iterator[int]:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


REAL_FILES = Files()


def write_all(files: Files, fd: int, data: bytes) -> None:
    """Write all of it to a file that nobody else sees yet; short writes are continued."""
    view = memoryview(data)
    while view:
        view = view[files.write(fd, bytes(view)) :]


def write_durably(files: Files, path: str, data: bytes, *, temporary: str) -> None:
    """Replace a file as a whole: readers see the old content or the new one, also after a power cut.

    `temporary` is an unused name in the same directory. Any failure leaves the old file as it was.
    """
    fd = files.create(temporary)
    try:
        try:
            write_all(files, fd, data)
            files.sync(fd)
        finally:
            files.close(fd)
        files.replace(temporary, path)
    except BaseException:
        _discard(files, temporary)
        raise
    files.sync_directory(os.path.dirname(path) or ".")


def _discard(files: Files, path: str) -> None:
    """Remove a half-written file; that the disk refuses even this changes nothing for the caller."""
    try:
        files.unlink(path)
    except OSError:
        return
