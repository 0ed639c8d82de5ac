"""The exclusive right to write one session: a lock of the operating system on `{id}.lock`.

The kernel frees it when its holder dies, so a lock is never judged by its age. The file is removed while the
lock is held, therefore a lock on a file that lost its name in the meantime counts for nothing.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, json

from robota.sessions.files import Files, close_quietly
from robota.sessions.journal.port import SessionLockedError

if TYPE_CHECKING:
    from filelock import BaseFileLock

_WITHOUT_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS}
_ATTEMPTS = 100
"""Each failed one means that another holder came and went just then."""


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
