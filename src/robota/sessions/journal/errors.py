"""The errors of a session's files and the words for what a disk refuses."""

from __future__ import annotations

import errno
import os

from robota.core.errors import StorageError


class JournalError(StorageError):
    """A journal that cannot be read, or must not be written by this version or this session."""

    code = "JOURNAL_ERROR"


class SessionLockedError(StorageError):
    """Another process (or another object of this one) writes to the session."""

    code = "SESSION_LOCKED"

    def __init__(self, message: str, *, pid: int | None = None, host: str = "") -> None:
        super().__init__(message)
        self.pid = pid
        """The holder, when its lock file says so."""
        self.host = host


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
    reason = _REASONS.get(error.errno or 0)
    return reason or (_plain(error), "check the disk and the permissions")


def _plain(error: OSError) -> str:
    return error.strerror or (os.strerror(error.errno) if error.errno else type(error).__name__)
