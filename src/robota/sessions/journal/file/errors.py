"""The errors of a session's files."""

from __future__ import annotations

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
