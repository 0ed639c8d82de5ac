"""A file that one process holds and that grows by whole lines only.

After a failed write the file ends with its last whole line again, or is known not to; nothing is written
behind a torn line. A forked child has no part in it: there the file counts as closed.

The exclusive right to write is a lock of the operating system on `{id}.lock`. The kernel frees it when its
holder dies, so a lock is never judged by its age. The file is removed while the lock is held, therefore a
lock on a file that lost its name in the meantime counts for nothing.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from msgspec import Struct, json

from robota.sessions.files import Files, close_quietly
from robota.sessions.journal.port import Position, SessionLockedError

if TYPE_CHECKING:
    from filelock import BaseFileLock

KEEP_UNSYNCED = 8 * 1024
"""Bytes written but not yet synced that are also kept in memory, for the case that the sync fails."""
_BLOCK = 1024 * 1024

_CLEAN, _WRITING, _FAILED = range(3)

_open_files: WeakSet[LineFile] = WeakSet()
_watching_forks = False
_WITHOUT_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
_ATTEMPTS = 100
"""Each failed one means that another holder came and went just then."""


class LineFile:
    """`{id}.jsonl` opened for writing, with the session's lock."""

    __slots__ = (
        "__weakref__", "_directory_synced", "_end", "_fd", "_files", "_keep", "_lock", "_path", "_state",
        "_unsynced", "_write", "exposed", "found",
    )  # fmt: skip

    def __init__(
        self, path: str, session_id: str, files: Files, now: Callable[[], float], keep: int = KEEP_UNSYNCED
    ) -> None:
        """Take the lock and make the end whole; raises `OSError`, `SessionLockedError` or `JournalError`.

        `keep` is how much of what is not yet synced stays in memory as well.
        """
        self._path = path
        self._files = files
        self._write = files.write
        self._fd = -1
        self._keep = keep
        self._end = 0
        """Where the last whole line ends."""
        self.found = Position()
        """Where the file ended when it was opened."""
        directory = os.path.dirname(path) or "."
        self.exposed = [place for place in (directory, path) if files.is_exposed(place)]
        """What other users could look into until now."""
        files.make_directory(directory)
        self._lock = JournalLock(f"{path.removesuffix('.jsonl')}.lock", session_id, files)
        self._lock.acquire(now)
        try:
            self._fd = files.open_append(path)
            if files.size(self._fd):
                from robota.sessions.journal.file.tail import prepare_end  # noqa: PLC0415 - for those who go on

                self._end, self.found = prepare_end(files, self._fd, path, session_id)
        except BaseException:
            self.close()
            raise
        self._state = _CLEAN
        """Anything else: bytes of an unfinished line may follow."""
        self._directory_synced = False
        self._unsynced = Unsynced(self._end, self._keep, self._end)
        _watch_forks()
        _open_files.add(self)

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    @property
    def warning(self) -> str:
        return self._lock.warning

    def write(self, line: bytes) -> None:
        """Append one line, newline included; when this raises `OSError`, the line is not in the file."""
        if self._state != _CLEAN:
            self.repair()
        self._state = _WRITING
        try:
            taken = self._write(self._fd, line)
        except OSError:
            self._state = _FAILED
            raise
        if taken != len(line):
            self._state = _FAILED
            raise OSError(errno.ENOSPC, f"only {taken} of {len(line)} bytes were taken")
        self._end += taken
        if self._keep:
            self._unsynced.add(line)
        self._state = _CLEAN

    def repair(self) -> None:
        """Remove what a failed write left behind the last whole line."""
        if self._state == _CLEAN:
            return
        size = self._files.size(self._fd)
        if self._state == _WRITING:  # a signal's exception came in between: the line may be there or not
            if size > self._end:
                self._end += self._files.read_at(self._fd, size - self._end, self._end).rfind(b"\n") + 1
            self._unsynced.forget(self._end)
        if size > self._end and self._lock.held:
            self._files.truncate(self._fd, self._end)
        elif size != self._end:  # others write here too, or somebody cut the file: only end the line
            self._files.write(self._fd, b"\n")
            self._end = self._files.size(self._fd)
            self._unsynced = Unsynced(self._end, self._keep, self._end)
        self._state = _CLEAN

    def sync(self) -> None:
        """Everything written is on the disk when this returns, in a file that still has its name."""
        if not self._files.is_at(self._fd, self._path):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        try:
            self._sync()
        except OSError:
            # Linux counts the pages as clean after a failed sync: the next one would succeed without writing
            # anything. The same bytes at the same place make them dirty again, and none is ever missing.
            if self._lock.held:  # else the places in the file may be other writers'
                self.repair()
                self._unsynced.write_again(self._files, self._fd)
            self._sync()
        self._unsynced = Unsynced(self._end, self._keep, self._end)

    def close(self) -> None:
        """Free the session; nothing is written or synced here."""
        self._close_file()
        self._lock.release()

    def abandon(self) -> None:
        """Close the descriptors and leave the lock file alone: in a forked child it is the parent's."""
        self._close_file()
        self._lock.forget()

    def __del__(self) -> None:
        if self._fd >= 0:  # or a session that nobody closed would stay locked until the process ends
            self.abandon()

    def _sync(self) -> None:
        self._files.sync(self._fd)
        if not self._directory_synced:
            self._files.sync_directory(os.path.dirname(self._path) or ".")
            self._directory_synced = True

    def _close_file(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            close_quietly(self._files, fd)


class Unsynced(Struct, eq=False):
    """The bytes behind the last good sync; those that are too many to keep are in the file alone."""

    _start: int
    _keep: int
    _kept_from: int
    _lines: list[bytes] = []
    _size: int = 0

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        if self._size > self._keep:
            self.forget(self._kept_from + self._size)

    def forget(self, end: int) -> None:
        """Keep nothing of what stands before `end` in memory."""
        self._kept_from = end
        self._lines = []
        self._size = 0

    def write_again(self, files: Files, fd: int) -> None:
        place = self._start
        while place < self._kept_from:
            block = files.read_at(fd, min(_BLOCK, self._kept_from - place), place)
            if not block:
                raise OSError(errno.EIO, "the file lost its end")
            place += files.write_at(fd, block, place)
        rest = memoryview(b"".join(self._lines))
        while rest:
            taken = files.write_at(fd, bytes(rest), place)
            place += taken
            rest = rest[taken:]


def _watch_forks() -> None:
    """From now on a forked child lets go of all journals, so that they stay its parent's alone."""
    global _watching_forks
    if not _watching_forks and hasattr(os, "register_at_fork"):
        _watching_forks = True
        os.register_at_fork(after_in_child=_abandon_all)


def _abandon_all() -> None:
    for file in tuple(_open_files):
        file.abandon()


class Holder(Struct, frozen=True, rename="camel"):
    """What a lock file says about its owner."""

    pid: int
    start_time: str
    host: str


class JournalLock(Struct, eq=False):
    """The lock of one session; not held until `acquire` returns."""

    _path: str
    _session_id: str
    _files: Files
    _fd: int = -1
    _portable: BaseFileLock | None = None
    warning: str = ""
    """One sentence when the file system has no locks, so that nothing keeps a second writer away."""

    @property
    def held(self) -> bool:
        return (self._fd >= 0 or self._portable is not None) and not self.warning

    def acquire(self, now: Callable[[], float] = time.time) -> None:
        """Take the lock or raise `SessionLockedError`; `OSError` when the file cannot be made."""
        for _ in range(_ATTEMPTS):
            fd = self._files.open_append(self._path)
            try:
                if self._take(fd, now):
                    self._fd = fd
                    return
            except ImportError:
                close_quietly(self._files, fd)
                self._acquire_portably()
                return
            except BaseException:
                close_quietly(self._files, fd)
                raise
            close_quietly(self._files, fd)
        raise self._refusal(None)

    def release(self) -> None:
        """Give the session free; in a forked child, which never had it, nothing happens."""
        if self._portable is not None:
            self._portable.release()
            self._portable = None
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        with suppress(OSError):  # else it stays, without a lock on it
            if self._files.is_at(fd, self._path):
                self._files.unlink(self._path)
        close_quietly(self._files, fd)

    def forget(self) -> None:
        """Close a copy of the descriptor that a fork made; the parent's lock stays as it is."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            close_quietly(self._files, fd)

    def _take(self, fd: int, now: Callable[[], float]) -> bool:
        """Whether the lock is ours now; False means that the file was removed before we had it."""
        try:
            free = self._files.lock(fd)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            self.warning = (
                f"The file system of {self._path} has no locks: nothing keeps another process from writing "
                f"to session {self._session_id} at the same time, so open it only once."
            )
            return True
        if not free:
            raise self._refusal(self._read_holder(fd))
        if not self._files.is_at(fd, self._path):
            return False
        self._write_holder(fd, now)
        return True

    def _write_holder(self, fd: int, now: Callable[[], float]) -> None:
        start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now()))
        content = json.encode(Holder(os.getpid(), start, _host()))
        with suppress(OSError):  # the lock counts; a full disk only makes a refusal less precise
            if self._files.read_at(fd, 1, 0):  # somebody was killed while they had it
                self._files.truncate(fd, 0)
            self._files.write(fd, content)

    def _read_holder(self, fd: int) -> Holder | None:
        try:
            return json.decode(self._files.read_at(fd, 4096, 0), type=Holder)
        except (OSError, ValueError):
            return None

    def _refusal(self, holder: Holder | None) -> SessionLockedError:
        advice = "close it there, or fork it (--fork-session, or fork_session=True)."
        if holder is None:
            return SessionLockedError(f"Session {self._session_id} is open in another process: {advice}")
        return SessionLockedError(
            f"Session {self._session_id} is open in process {holder.pid} on {holder.host} "
            f"since {holder.start_time}: {advice}",
            pid=holder.pid,
            host=holder.host,
        )

    def _acquire_portably(self) -> None:
        from filelock import FileLock, Timeout  # noqa: PLC0415 - only for systems without fcntl

        lock = FileLock(self._path, timeout=0, mode=0o600, thread_local=False)
        try:
            lock.acquire()
        except Timeout as error:
            raise self._refusal(None) from error
        self._portable = lock


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "this computer")
