"""Every file operation of the session layer, in one object that tests exchange for one that fails.

Files are private whatever the umask says: 0600 in 0700 directories. Nothing here retries or recovers; that
is the business of whoever knows what the file means.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from robota.core.private_directory import PRIVATE_DIRECTORY, make_private_directory

PRIVATE_FILE = 0o600
OWN_SUFFIXES = (".json", ".jsonl", ".lock", ".payloads")
"""How the names end that a session gives to its files."""
_OWN_ENDS = (*OWN_SUFFIXES, ".trash", ".tmp")
_OWN_INDEX = ".sqlite3"

_PRIVATE_TO_THIS_PROCESS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe under a file's name must fail, not wait for somebody to write into it."""
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_DIRECTORY_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}


class Files:
    """The real disk."""

    __slots__ = ()
    close = staticmethod(os.close)
    replace = staticmethod(os.replace)
    truncate = staticmethod(os.ftruncate)
    unlink = staticmethod(os.unlink)
    write = staticmethod(os.write)
    """One `write`; how much of the data it took."""

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, durably; one that exists already is made private if it is one
        for sessions."""
        missing = []
        place = os.path.abspath(path)
        while not os.path.isdir(place):
            missing.append(place)
            place = os.path.dirname(place)
        for place in reversed(missing):
            make_private_directory(place)
            self.sync_directory(os.path.dirname(place))
        if self.is_exposed(path):
            os.chmod(path, PRIVATE_DIRECTORY)

    def is_exposed(self, path: str) -> bool:
        """Whether there is something of ours that other users may look into."""
        try:
            status = os.stat(path)
            if not status.st_mode & 0o077:
                return False
            return not stat.S_ISDIR(status.st_mode) or _is_ours(path, status)
        except OSError:
            return False

    def open_append(self, path: str) -> int:
        """A descriptor whose writes go to the end, for a file that is created when missing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _AT_ONCE | _PRIVATE_TO_THIS_PROCESS
        fd = self._open_regular(path, flags)
        self._make_private(fd)
        return fd

    def create(self, path: str) -> int:
        """A descriptor for a file that must not exist yet."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PRIVATE_TO_THIS_PROCESS, PRIVATE_FILE)
        self._make_private(fd)
        return fd

    def open_read(self, path: str) -> int:
        """A descriptor for reading a regular file; anything else under that name is refused."""
        return self._open_regular(path, os.O_RDONLY | _AT_ONCE | _PRIVATE_TO_THIS_PROCESS)

    def open_read_unlinked(self, path: str) -> int:
        """Like `open_read`, but neither the file nor the directory it stands in may be a link."""
        if os.path.islink(path) or os.path.islink(os.path.dirname(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return self._open_regular(path, os.O_RDONLY | _NO_LINK | _AT_ONCE | _PRIVATE_TO_THIS_PROCESS)

    def read(self, fd: int, size: int) -> bytes:
        return os.read(fd, size)

    def read_at(self, fd: int, size: int, offset: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(fd, size, offset)
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, size)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def write_at(self, fd: int, data: bytes, offset: int) -> int:
        """One `write` in the middle of a file, also through a descriptor of `open_append`."""
        if not hasattr(os, "pwrite"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        import fcntl  # noqa: PLC0415 - only to repair what a failed `sync` may have dropped

        flags = fcntl.fcntl(fd, fcntl.F_GETFL)
        fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_APPEND)  # with it Linux appends whatever the offset says
        try:
            return os.pwrite(fd, data, offset)
        finally:
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)

    def sync(self, fd: int) -> None:
        """Content and length are on the disk when this returns."""
        os.fdatasync(fd) if hasattr(os, "fdatasync") else os.fsync(fd)

    def names(self, path: str) -> list[str]:
        """What a directory holds; nothing when it does not exist."""
        try:
            return os.listdir(path)
        except FileNotFoundError:
            return []

    def size_of(self, path: str) -> int:
        """The size of a file by its name; a link is not followed."""
        return os.lstat(path).st_size

    def sync_directory(self, path: str) -> None:
        """Names created, replaced or removed in the directory are on the disk when this returns."""
        if not hasattr(os, "O_DIRECTORY"):
            return
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _PRIVATE_TO_THIS_PROCESS)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_SYNC:  # a file system without it offers nothing better
                raise
        finally:
            os.close(fd)

    def lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file without waiting; whether it was free."""
        import fcntl  # noqa: PLC0415 - does not exist on every system

        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def is_at(self, fd: int, path: str) -> bool:
        """Whether the open file is still the one under that name."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(path))
        except FileNotFoundError:
            return False

    def _open_regular(self, path: str, flags: int) -> int:
        fd = os.open(path, flags, PRIVATE_FILE)
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            os.close(fd)
            code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
            raise OSError(code, "it is not a regular file", path)
        return fd

    def _make_private(self, fd: int) -> None:
        if hasattr(os, "fchmod") and os.fstat(fd).st_mode & 0o077:
            os.fchmod(fd, PRIVATE_FILE)


def _is_ours(directory: str, status: os.stat_result) -> bool:
    """Whether a directory is there for sessions alone: others must not lose one that they share with us, such
    as /tmp, a home or a project."""
    if status.st_mode & stat.S_ISVTX or (hasattr(os, "geteuid") and status.st_uid != os.geteuid()):
        return False
    with os.scandir(directory) as entries:
        found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    return all(
        name.endswith(_OWN_ENDS) or _OWN_INDEX in name or (is_directory and f"{name}.jsonl" in found)
        for name, is_directory in found.items()
    )


REAL_FILES = Files()
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EDQUOT: ("the disk quota is used up", "free some space or raise the quota"),
    errno.EROFS: ("the file system is read-only", "make it writable, or move the sessions with ROBOTA_HOME"),
    errno.EACCES: ("permission is missing", "give yourself write permission, or set ROBOTA_HOME"),
    errno.EPERM: ("permission is missing", "give yourself write permission, or set ROBOTA_HOME"),
    errno.EIO: ("the disk reports an error", "check the disk"),
    errno.ESTALE: ("its file was removed or replaced meanwhile", "fork the session to save it elsewhere"),
    errno.EFBIG: ("the file may not grow further", "raise the limit for file sizes"),
}


def explain(error: OSError) -> tuple[str, str]:
    """Why the disk refused and what the user can do, both as parts of a sentence."""
    said = error.strerror or (os.strerror(error.errno) if error.errno else type(error).__name__)
    return _REASONS.get(error.errno or 0, (said, "check the disk and the permissions"))


@contextmanager
def opened(files: Files, path: str) -> Iterator[int]:
    """A descriptor for reading a regular file, closed in the end."""
    fd = files.open_read(path)
    try:
        yield fd
    finally:
        close_quietly(files, fd)


def close_quietly(files: Files, fd: int) -> None:
    """Close a file whose content is safe already or of no use; the descriptor is gone in any case."""
    with suppress(OSError):
        files.close(fd)


def write_all(files: Files, fd: int, data: bytes) -> None:
    """Write all of it to a file that nobody else sees yet; short writes are continued."""
    view = memoryview(data)
    while view:
        view = view[files.write(fd, bytes(view)) :]


def write_durably(files: Files, path: str, data: bytes) -> None:
    """Replace a file as a whole: readers see the old content or the new one, also after a power cut.

    What is not finished is called `.{name}.….tmp`. Any failure leaves the old file as it was.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.urandom(8).hex()}.tmp")
    fd = files.create(temporary)
    try:
        try:
            write_all(files, fd, data)
            files.sync(fd)
        finally:
            files.close(fd)
        files.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # that the disk refuses even this changes nothing for the caller
            files.unlink(temporary)
        raise
    files.sync_directory(directory or ".")
