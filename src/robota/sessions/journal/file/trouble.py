"""What the user is told about a disk that refuses a journal: once when it begins, once when it is over."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

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
IN_MEMORY = "The session goes on in memory, and what is missing is written as soon as that works again."
UNSAFE = "What was written since that last worked may still be lost."


def explain(error: OSError) -> tuple[str, str]:
    """Why the disk refused and what the user can do, both as parts of a sentence."""
    reason = _REASONS.get(error.errno or 0)
    return reason or (_plain(error), "check the disk and the permissions")


def _plain(error: OSError) -> str:
    return error.strerror or (os.strerror(error.errno) if error.errno else type(error).__name__)


class Trouble:
    """The state of a journal's disk, in words."""

    __slots__ = ("_path", "_told", "listener", "text")

    def __init__(self, path: str) -> None:
        self._path = path
        self._told: tuple[str, ...] = ()
        self.listener: Callable[[str], None] | None = None
        self.text = ""
        """What is wrong, in one sentence; "" when nothing is."""

    def __bool__(self) -> bool:
        """Whether something was told and is not over."""
        return bool(self._told)

    def knows(self, what: str) -> bool:
        return what in self._told

    def forget(self) -> None:
        self._told = ()

    def tell(self, what: str, error: OSError, *, unsafe: bool = False) -> None:
        """The journal cannot be `what`; `unsafe`: everything was written, but may not be on the disk."""
        reason, advice = explain(error)
        sentence = f"The journal {self._path} cannot be {what}: {reason}."
        consequence = UNSAFE if unsafe else IN_MEMORY
        self.tell_once(f"{what} {error.errno}", f"{sentence} {consequence} To help, {advice}.")
        self._told += (what,)

    def tell_once(self, kind: str, sentence: str) -> None:
        if kind not in self._told:
            self._told += (kind,)
            self.say(sentence)

    def recover(self, warning: str) -> None:
        """It is over; `warning` is what remains to be said."""
        if self._told:
            self._told = ()
            self.say("")
            self.text = warning

    def say(self, sentence: str) -> None:
        self.text = sentence
        self.mention(sentence)

    def mention(self, sentence: str) -> None:
        """Something that is no trouble any more."""
        if self.listener is not None:
            self.listener(sentence)
