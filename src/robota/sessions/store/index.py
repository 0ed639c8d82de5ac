"""An index of a directory of sessions in SQLite, so that listing and searching read only what changed.

The index is a cache: at every use the files are compared with it by time and size. One that is damaged is
thrown away and made anew; one that is locked or cannot be written is done without.
"""

from __future__ import annotations

import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from operator import itemgetter
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from robota.core.errors import StorageError, ValidationError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sessions.files import Files
from robota.sessions.store.message_codec import read_time
from robota.sessions.store.search import SearchHit, SessionTexts, has_full_text
from robota.sessions.store.session_record import check_session_id
from robota.sessions.store.snapshot_file import format_time
from robota.sessions.store.summary import SessionSummary, summarize_session

__all__ = ["SearchHit", "SessionIndex", "SessionSummary"]

FILE_NAME = "index.sqlite3"
Marks: TypeAlias = tuple[int, int, int, int, int]
"""Time, size and inode of the snapshot, time and size of the journal; -1 for a file that is not there."""
_Result = TypeVar("_Result")
_NO_FILES: Marks = (-1, -1, -1, -1, -1)
_BUSY_SECONDS = 2.0
_ABANDONED_SECONDS = 86400.0
_SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, snapshot_time INTEGER, snapshot_size INTEGER, snapshot_inode INTEGER,
    journal_time INTEGER, journal_size INTEGER, updated REAL, cwd TEXT, name TEXT, created_at TEXT,
    updated_at TEXT, message_count INTEGER, first_prompt TEXT, model TEXT, problem TEXT
) WITHOUT ROWID;
"""
_STORED = ("cwd", "name", "created_at", "updated_at", "message_count", "first_prompt", "model", "problem")
"""Fields of a summary, in the order of their columns."""
_INSERT = f"INSERT OR REPLACE INTO sessions VALUES ({', '.join('?' * 15)})"
_UNUSABLE = {
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL, sqlite3.SQLITE_PERM,
}  # fmt: skip


class SessionIndex:
    """The index of one directory; a connection lives for one call."""

    def __init__(
        self, directory: str, *, files: Files, redact: Callable[[str], str], full_text: bool = True
    ) -> None:
        self._directory = directory
        self._files = files
        self._redact = redact
        self._texts = SessionTexts(directory, files, redact, full_text and has_full_text())

    def summaries(self, *, cwd: str | None = None) -> Sequence[SessionSummary]:
        """All sessions, the latest first."""
        found = scan_sessions(self._directory)
        if not found:
            return []
        summaries = self._use(lambda database: self._reconcile(database, found))
        if cwd is None:
            return summaries
        wanted = self._spellings_of(cwd)
        return [summary for summary in summaries if summary.cwd in wanted]

    def search(
        self, text: str, *, cwd: str | None, limit: int, on_step: Callable[[int, int], object] | None = None
    ) -> Sequence[SearchHit]:
        """What was said that holds all words of `text`, the latest first."""
        found = scan_sessions(self._directory)
        if not found or not text.split() or limit <= 0:
            return []

        def look(database: sqlite3.Connection) -> Sequence[SearchHit]:
            valid = {summary.id: found[summary.id] for summary in self._reconcile(database, found)}
            self._texts.refresh(database, valid, on_step)
            cwds = None if cwd is None else self._spellings_of(cwd)
            return self._texts.find(database, text, cwds=cwds, limit=limit)

        return self._use(look)

    # --- the database -----------------------------------------------------------------------------------

    def _use(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Work with the stored index, else with a new one, else with one in memory."""
        path = f"{self._directory}/{FILE_NAME}"
        for _ in range(2):
            try:
                with closing(self._open(path)) as database:
                    return work(database)
            except (OSError, sqlite3.Error, TypeError, ValueError) as error:
                if isinstance(error, OSError) or is_unusable(error):
                    break
                discard_index(self._directory)
        with closing(self._open(":memory:")) as database:
            return work(database)

    def _open(self, path: str) -> sqlite3.Connection:
        if path != ":memory:" and not os.path.exists(path):
            self._files.close(self._files.open_append(path))  # SQLite gives its other files the same mode
        database = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_SECONDS)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            _prepare(database, self._texts.schema)
        except BaseException:
            database.close()
            raise
        return database

    def _spellings_of(self, cwd: str) -> frozenset[str]:
        """A directory as it may stand in a record: what looks secret in its name is not written down, and
        bytes that are not text are not either."""
        places = (cwd, os.path.abspath(cwd), os.path.realpath(cwd))
        return frozenset((*places, *(self._redact(decode(encode(place))) for place in places)))

    # --- reading what changed ---------------------------------------------------------------------------

    def _reconcile(self, database: sqlite3.Connection, found: Mapping[str, Marks]) -> list[SessionSummary]:
        listed: list[tuple[float, str, SessionSummary]] = []
        gone, known = [], set()
        for row in database.execute("SELECT * FROM sessions"):
            marks = found.get(row[0])
            if marks == row[1:6]:
                known.add(row[0])
                listed.append((row[6], row[0], _summary_of(row)))
            elif marks is None:
                gone.append(row[0])
        rows = []
        for id in found.keys() - known:
            with suppress(ValidationError):  # some other file that ends in .json
                summary, updated, lasting = self._look(check_session_id(id), found[id])
                listed.append((updated, id, summary))
                if lasting:
                    told = (getattr(summary, name) for name in _STORED)
                    rows.append((id, *found[id], updated, *told))
        if rows or gone:
            _store(database, rows, gone)
        listed.sort(key=itemgetter(0, 1), reverse=True)
        return [summary for _, _, summary in listed]

    def _look(self, id: str, marks: Marks) -> tuple[SessionSummary, float, bool]:
        """What to say of a session, when it was changed, and whether to remember that."""
        summary, lasting = summarize_session(
            self._files,
            self._directory,
            id,
            snapshot_size=None if marks[1] < 0 else marks[1],
            journal_size=None if marks[4] < 0 else marks[4],
        )
        moment = read_time(summary.updated_at)
        if moment is None:
            moment = datetime.fromtimestamp(max(marks[0], marks[3]) / 1e9, UTC)
            summary = replace(summary, updated_at=format_time(moment))
        return summary, moment.timestamp(), lasting


def scan_sessions(directory: str) -> dict[str, Marks]:
    """The sessions of a directory as seen from outside. What killed saves left is removed on the way."""
    found: dict[str, Marks] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                id, _, kind = entry.name.rpartition(".")
                if kind in ("json", "jsonl"):
                    status, marks = _stat(entry), found.get(id, _NO_FILES)
                    if status is None:
                        continue
                    seen = (status.st_mtime_ns, status.st_size, status.st_ino)
                    found[id] = (*seen, *marks[3:]) if kind == "json" else (*marks[:3], *seen[:2])
                elif kind == "tmp" and id.startswith("."):
                    _remove_abandoned(entry)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StorageError(
            f"The sessions in {directory} cannot be listed: {error.strerror or error}. Check its permissions."
        ) from error
    return found


def is_unusable(error: BaseException) -> bool:
    """Whether nothing is wrong with the index, but it cannot be used or written now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNUSABLE


def _prepare(database: sqlite3.Connection, texts: str) -> None:
    """Have our tables. An index of another version raises, so that it is made anew."""
    version = zlib.crc32((_SCHEMA + texts).encode()) >> 1
    if database.execute("PRAGMA user_version").fetchone()[0] == version:
        return
    database.execute("BEGIN IMMEDIATE")
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found == 0:
        for statement in (_SCHEMA + texts).split(";"):
            database.execute(statement)
        database.execute(f"PRAGMA user_version = {version}")
    elif found != version:
        raise ValueError("The index is of another version.")
    database.execute("COMMIT")


def discard_index(directory: str) -> None:
    """Remove the index; the next use makes a new one."""
    path = f"{directory}/{FILE_NAME}"
    for suffix in ("", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(path + suffix)


def _store(database: sqlite3.Connection, rows: list[tuple[Json, ...]], gone: list[str]) -> None:
    """Remember what was read, if that is possible."""
    try:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("DELETE FROM sessions WHERE id = ?", [(id,) for id in gone])
        database.executemany(_INSERT, rows)
        database.execute("COMMIT")
    except sqlite3.Error as error:
        if not is_unusable(error):
            raise


def _summary_of(row: tuple[Json, ...]) -> SessionSummary:
    size, told = max(row[2], 0) + max(row[5], 0), dict(zip(_STORED, row[7:], strict=True))
    return SessionSummary(id=row[0], size=size, has_journal=row[5] >= 0, **told)


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """None of a file that somebody removed meanwhile: the other sessions are still there."""
    with suppress(OSError):  # a link that leads nowhere, or to itself
        return entry.stat()
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _remove_abandoned(entry: os.DirEntry[str]) -> None:
    """Remove what a save that was killed left behind."""
    with suppress(OSError):
        if entry.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
            os.unlink(entry.path)
