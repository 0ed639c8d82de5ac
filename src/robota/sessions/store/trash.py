"""Deleting a session: its files move into `.trash/{id}~{n}/`, where they stay for thirty days.

The snapshot goes first and the journal second, so that a session is either still loaded from its journal or
gone; what they refer to follows. If a move fails, what was moved comes back. To have a session again, move
its files back by hand.
"""

from __future__ import annotations

import os
import shutil
import time

from robota.core.errors import StorageError
from robota.sessions.files import Files
from robota.sessions.journal.file.lock import JournalLock

TRASH = ".trash"
DAYS_KEPT = 30
_SECONDS_KEPT = DAYS_KEPT * 86400


def names_of_session(names: list[str], id: str) -> list[str]:
    """Which of a directory's entries belong to a session, in the order in which they may go."""
    first = [f"{id}.json", f"{id}.jsonl", f"{id}.payloads", id]
    copies = (f"{id}.json.damaged-", f"{id}.json.old-", f"{id}.jsonl.torn-", f".{id}.json.")
    present = set(names)
    return [name for name in first if name in present] + sorted(
        name for name in names if name.startswith(copies)
    )


def discard_session(files: Files, directory: str, id: str) -> None:
    """Move a session's files away; one that somebody has open raises `SessionLockedError`."""
    lock = JournalLock(f"{directory}/{id}.lock", id, files)
    try:
        names = names_of_session(files.names(directory), id)
        if not names:
            return
        lock.acquire()
    except OSError as error:
        raise _not_deleted(directory, id, error) from error
    try:
        _move_away(files, directory, id, names)
    finally:
        lock.release()


def _move_away(files: Files, directory: str, id: str, names: list[str]) -> None:
    trash = f"{directory}/{TRASH}"
    target = f"{trash}/{id}~{os.urandom(6).hex()}"
    moved: list[str] = []
    try:
        files.make_directory(trash)
        files.make_directory(target)
        for name in names:
            _move(files, f"{directory}/{name}", f"{target}/{name}")
            moved.append(name)
        files.sync_directory(target)
        files.sync_directory(directory)
    except OSError as error:
        raise _not_deleted(directory, id, error, _move_back(files, target, directory, moved)) from error
    _remove_old(trash)


def empty_trash(directory: str) -> None:
    """Remove for good what was deleted from this directory, and the index, which may still hold its words."""
    from robota.sessions.store.index import discard_index  # noqa: PLC0415 - loads SQLite

    shutil.rmtree(f"{directory}/{TRASH}", ignore_errors=True)
    discard_index(directory)


def _move(files: Files, source: str, target: str) -> None:
    try:
        files.replace(source, target)
    except FileNotFoundError:  # somebody else is deleting the same session
        if os.path.lexists(source):
            raise


def _move_back(files: Files, source: str, target: str, names: list[str]) -> bool:
    """Undo a deletion; whether all of it is back."""
    for name in reversed(names):
        try:
            _move(files, f"{source}/{name}", f"{target}/{name}")
        except OSError:
            return False
    return True


def _remove_old(trash: str) -> None:
    oldest = time.time() - _SECONDS_KEPT
    with os.scandir(trash) as entries:
        outdated = [entry.path for entry in entries if entry.stat(follow_symlinks=False).st_mtime < oldest]
    for path in outdated:
        shutil.rmtree(path, ignore_errors=True)


def _not_deleted(directory: str, id: str, error: OSError, restored: bool = True) -> StorageError:
    where = "Its files are still there." if restored else f"Some of its files are in {directory}/{TRASH}."
    return StorageError(f"Session {id} in {directory} was not deleted: {error.strerror or error}. {where}")
