"""A directory held open while a file in it is read or replaced, so that nobody can exchange it meanwhile.

The way down is opened name by name and no link is followed: the caller resolved the path, and a link that
appears afterwards makes the call fail instead of leading it elsewhere. A replacement is complete or does not
happen: the new content goes to a temporary file beside the old one, to the disk, and then takes its name.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from msgspec import Struct

from robota.tools.files.path import Unconfirmed, refuse_special

CHUNK_BYTES = 1024 * 1024


def sync_disk(descriptor: int) -> None:
    """Bring everything on the disk of an open file to it, and nothing on others: one may not answer."""
    if sys.platform != "linux":
        os.sync()
        return
    import ctypes  # noqa: PLC0415 - only where many files are written at once

    if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


class SystemCalls:
    """What the file layer and undo ask of the system, in one place so that each call can be made to fail."""

    relative = os.open in os.supports_dir_fd
    """Whether names can be looked up in an open directory; elsewhere whole paths are used."""
    open = staticmethod(os.open)
    close = staticmethod(os.close)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.stat)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)
    chmod = staticmethod(os.chmod)
    symlink = staticmethod(os.symlink)
    link = staticmethod(os.link)
    lseek = staticmethod(os.lseek)
    utime = staticmethod(os.utime)
    ftruncate = staticmethod(os.ftruncate)
    if sys.platform != "win32":
        chown = staticmethod(os.chown)
        fchmod = staticmethod(os.fchmod)
        fchown = staticmethod(os.fchown)
        mkfifo = staticmethod(os.mkfifo)
        sync_disk = staticmethod(sync_disk)


SYSTEM = SystemCalls()


@contextmanager
def open_descriptor(
    system: SystemCalls, path: str | bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
) -> Iterator[int]:
    """An open file that is closed with the block."""
    descriptor = system.open(path, flags, mode, dir_fd=dir_fd)
    try:
        yield descriptor
    finally:
        system.close(descriptor)


def write_all(system: SystemCalls, descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[system.write(descriptor, rest) :]


def _flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)


# A FIFO or a device that took the file's place must neither block the open nor become our terminal.
_SAFE = _flags("O_NONBLOCK", "O_NOFOLLOW", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE
# O_PATH: passing through a directory takes no right to list it.
_PASS = _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_PATH")
_LIST = _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)


class Content(Struct, frozen=True):
    data: bytes
    facts: os.stat_result
    whole: bool
    """Whether `data` is the whole file and not its beginning."""


class Directory(Struct, eq=False):
    """The directory at a resolved path, made on request. Directories made for a change that failed vanish."""

    path: str
    create: bool = False
    system: SystemCalls = SYSTEM
    _chain: list[int] = []
    _made: list[tuple[int, str]] = []

    def __enter__(self) -> Self:
        if not self.system.relative:
            if self.create:
                os.makedirs(self.path, exist_ok=True)
            return self
        try:
            self._chain.append(self.system.open(os.sep, os.O_RDONLY | _PASS))
            for name in self.path.split(os.sep):
                if name:
                    self._chain.append(self._descend(name))
        except OSError:
            self._leave(failed=True)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._leave(failed=kind is not None)

    def read(self, name: str, limit: int, *, writable: bool = False) -> Content | None:
        """A regular file, or of a longer one the first `limit` bytes; `None` when there is none.

        `writable` fails where the file itself may not be written, although replacing it would work.
        """
        facts = self._look(name)
        if facts is None:
            return None
        refuse_special(facts.st_mode)  # opening some devices already has effects
        flags = _SAFE | (os.O_RDWR if writable else os.O_RDONLY)
        with open_descriptor(self.system, self._where(name), flags, dir_fd=self._here) as descriptor:
            facts = self.system.fstat(descriptor)
            refuse_special(facts.st_mode)  # it may have been exchanged since
            data = self._read_up_to(descriptor, limit + 1)
        return Content(data[:limit], facts, len(data) <= limit)

    def stream(self, name: str) -> Iterator[bytes]:
        """A regular file of any length, piece by piece."""
        flags = _SAFE | os.O_RDONLY
        with open_descriptor(self.system, self._where(name), flags, dir_fd=self._here) as descriptor:
            refuse_special(self.system.fstat(descriptor).st_mode)
            while chunk := self.system.read(descriptor, CHUNK_BYTES):
                yield chunk

    def replace(
        self, name: str, data: bytes, before: os.stat_result | None, *, private: bool = False
    ) -> bool:
        """Put a file with this content in the place of the one that was seen `before`.

        False, and nothing happened, when that is no longer what is there. The new file keeps mode, owner and
        group; a `private` one is its owner's alone. Other names of the old file (hard links) keep the old
        content.
        """
        temporary = f".robota-{os.urandom(8).hex()}.tmp"
        # Only the owner may look into it until it has the mode of the file it replaces.
        mode = 0o666 if before is None and not private else 0o600
        descriptor = self.system.open(self._where(temporary), _CREATE, mode, dir_fd=self._here)
        done = False
        try:
            try:
                self._fill(descriptor, data, None if private else before)
            finally:
                self.system.close(descriptor)
            # What remains between this look and the rename is too short to be met by accident.
            if is_same(before, self._look(name)):
                source, target = self._where(temporary), self._where(name)
                self.system.replace(source, target, src_dir_fd=self._here, dst_dir_fd=self._here)
                done = True
        finally:
            if not done:
                with suppress(OSError):
                    self.system.unlink(self._where(temporary), dir_fd=self._here)
        if done:
            self._confirm()
        return done

    @property
    def _here(self) -> int | None:
        return self._chain[-1] if self._chain else None

    def _where(self, name: str) -> str:
        return name or os.curdir if self._chain else os.path.join(self.path, name)

    def _look(self, name: str) -> os.stat_result | None:
        try:
            return self.system.stat(self._where(name), dir_fd=self._here, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _descend(self, name: str) -> int:
        here = self._chain[-1]
        try:
            return self.system.open(name, os.O_RDONLY | _PASS, dir_fd=here)
        except FileNotFoundError:
            if not self.create:
                raise
        with suppress(FileExistsError):  # another call may need the same directory
            self.system.mkdir(name, 0o777, dir_fd=here)
            self._made.append((here, name))
        return self.system.open(name, os.O_RDONLY | _PASS, dir_fd=here)

    def _read_up_to(self, descriptor: int, limit: int) -> bytes:
        data = bytearray()
        while len(data) < limit:
            chunk = self.system.read(descriptor, min(CHUNK_BYTES, limit - len(data)))
            if not chunk:
                break
            data += chunk
        return bytes(data)

    def _fill(self, descriptor: int, data: bytes, before: os.stat_result | None) -> None:
        write_all(self.system, descriptor, data)
        if before is not None and sys.platform != "win32":
            self.system.fchmod(descriptor, self._keep_owner(descriptor, before))
        self.system.fsync(descriptor)

    def _keep_owner(self, descriptor: int, before: os.stat_result) -> int:
        """Hand the file to the owner and group it had, as far as we may, and say which mode fits then."""
        mode = stat.S_IMODE(before.st_mode)
        if sys.platform == "win32":
            return mode
        with suppress(PermissionError):
            self.system.fchown(descriptor, before.st_uid, before.st_gid)
            return mode
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
        with suppress(PermissionError):
            self.system.fchown(descriptor, -1, before.st_gid)
            return mode
        # Another group now: it may do no more than everybody may.
        return mode & ~stat.S_IRWXG | mode & (mode & stat.S_IRWXO) << 3

    def _confirm(self) -> None:
        """Bring the new names to the disk: of the file, and of directories that were made for it."""
        try:
            for descriptor in (*(parent for parent, _ in self._made), *self._chain[-1:]):
                self._sync(descriptor)
        except OSError as error:
            raise Unconfirmed(*error.args) from error

    def _sync(self, directory: int) -> None:
        try:
            descriptor = self.system.open(os.curdir, os.O_RDONLY | _LIST, dir_fd=directory)
        except PermissionError:  # it may be written but not listed, and then it cannot be synced
            return
        try:
            self.system.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:  # some network file systems have no such call
                raise
        finally:
            self.system.close(descriptor)

    def _leave(self, *, failed: bool) -> None:
        if failed:
            for parent, name in reversed(self._made):
                with suppress(OSError):  # somebody else may use it by now
                    self.system.rmdir(name, dir_fd=parent)
        for descriptor in self._chain:
            with suppress(OSError):
                self.system.close(descriptor)
        self._chain.clear()


def is_same(before: os.stat_result | None, now: os.stat_result | None) -> bool:
    """Whether two looks at a name saw the same version of the same file."""
    if before is None or now is None:
        return before is now
    names = ("st_dev", "st_ino", "st_mode", "st_size", "st_mtime_ns")
    return all(getattr(before, name) == getattr(now, name) for name in names)
