"""Sessions on disk: `{id}.json` beside its journal, replaced as a whole, found again through an index.

A save leaves the old record or the new one, never a part. A record that cannot be read is never reported as
missing and never overwritten without a copy. Deleting moves a session's files into `.trash/`, from where they
are removed after thirty days.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import Raw, Struct

from robota.core.errors import StorageError, ValidationError
from robota.core.messages import Json
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.file.line_file import JournalLock
from robota.sessions.store.session_record import (
    SessionRecord,
    check_session_id,
    encode_field,
    seal,
    split_record,
)
from robota.sessions.store.snapshot_file import SnapshotFile, merge_fields, reason_of, rebuild_record

if TYPE_CHECKING:
    from robota.sessions.journal.port import SessionJournal
    from robota.sessions.redaction import Redactor
    from robota.sessions.store.index import SearchHit, SessionIndex, SessionSummary


class SessionStorePort(Protocol):
    """Where a session keeps its record; `robota.testing.store_conformance` has the tests for one."""

    def save(self, record: SessionRecord | Mapping[str, Json]) -> None:
        """Keep the record, and the fields it does not set from the one that is there."""

    def load(self, id: str) -> SessionRecord | None:
        """The record, `None` if there is none. One that cannot be read raises `StorageError`."""

    def list(self) -> Sequence[SessionSummary]:
        """All sessions, the one that was changed last first."""

    def delete(self, id: str) -> None:
        """Forget a session; one that does not exist is forgotten already."""

    def open_journal(
        self, id: str, *, agent_id: str = "", durable: bool = True, now: Callable[[], float] = time.time
    ) -> SessionJournal | None:
        """Where the records of a session go, or those of one of its sub-agents; `None` if it keeps none.

        Not `durable`: nothing waits until records are safe.
        """


class Migration(Struct, frozen=True):
    """What became of a directory of old records."""

    migrated: tuple[str, ...]
    unchanged: int
    problems: tuple[str, ...]


class SessionStore:
    """The sessions of one directory. Holds no state: any number may be at work, in any process."""

    __slots__ = ("_base_dir", "_files", "_redactor")

    def __init__(
        self,
        base_dir: str | os.PathLike[str] | None = None,
        *,
        files: Files = REAL_FILES,
        redactor: Redactor | None = None,
    ) -> None:
        self._base_dir = None if base_dir is None else os.path.abspath(base_dir)  # the process may move on
        self._files = files
        self._redactor = redactor

    def __repr__(self) -> str:
        return f"<SessionStore in {self.base_dir}>"

    @property
    def base_dir(self) -> str:
        """The directory; without one given `$ROBOTA_HOME/sessions`, without that `~/.robota/sessions`. The
        environment is asked each time."""
        if self._base_dir is not None:
            return self._base_dir
        home = os.environ.get("ROBOTA_HOME") or os.path.join(os.path.expanduser("~"), ".robota")
        return os.path.abspath(os.path.join(home, "sessions"))

    def path_of(self, id: str) -> str:
        return f"{self.base_dir}/{check_session_id(id)}.json"

    def journal_path(self, id: str) -> str:
        return f"{self.base_dir}/{check_session_id(id)}.jsonl"

    def exists(self, id: str) -> bool:
        """Whether anything is kept under that id."""
        return os.path.lexists(self.journal_path(id)) or os.path.lexists(self.path_of(id))

    # --- one session ------------------------------------------------------------------------------------

    def save(self, record: SessionRecord | Mapping[str, Json]) -> None:
        """Keep the record durably. Fields it does not set stay as the file has them.

        A mapping is in the spelling on disk and may hold only what changes; `None` removes a field.
        """
        fields = record.to_mapping() if isinstance(record, SessionRecord) else dict(record)
        self._save(fields, SnapshotFile(self._files, self.path_of(fields.get("id", ""))))

    def load(self, id: str) -> SessionRecord | None:
        """The session as its journal tells it, with what only the snapshot has; `None` without both."""
        journal = self.journal_path(id)
        has_journal = os.path.lexists(journal)
        snapshot, damage = None, ""
        try:
            snapshot = self.load_snapshot(id)
        except StorageError as error:
            if not has_journal:
                raise StorageError(
                    f"{error} There is no journal to rebuild the session from: put a backup in its place, or "
                    "delete the session."
                ) from error
            damage = f"{error} "
        return rebuild_record(self._files, journal, id, snapshot, damage) if has_journal else snapshot

    def load_snapshot(self, id: str) -> SessionRecord | None:
        """What was saved last, whatever the journal says."""
        file = SnapshotFile(self._files, self.path_of(id))
        try:
            return file.load(id)
        except (OSError, ValueError) as error:
            reason = reason_of(error)
            raise StorageError(f"{file.path} cannot be read: {reason}. It is left as it is.") from error

    def snapshot_seq(self, id: str) -> int:
        """The last record of the journal that the snapshot knows of; 0 for none."""
        return SnapshotFile(self._files, self.path_of(id)).read_seq()

    def delete(self, id: str) -> None:
        """Move everything of a session into the trash; silent when there is nothing."""
        discard_session(self._files, self.base_dir, check_session_id(id))

    def open_journal(
        self, id: str, *, agent_id: str = "", durable: bool = True, now: Callable[[], float] = time.time
    ) -> SessionJournal | None:
        from robota.sessions.journal.file.file_journal import FileJournal  # noqa: PLC0415 - for those who write

        return FileJournal(self.base_dir, id, agent_id=agent_id, files=self._files, now=now, durable=durable)

    # --- all sessions -----------------------------------------------------------------------------------

    def list(self, cwd: str | os.PathLike[str] | None = None) -> Sequence[SessionSummary]:
        """All sessions, or those of a working directory, the one that was changed last first."""
        return self._index().summaries(cwd=None if cwd is None else os.fspath(cwd))

    def search(
        self,
        text: str,
        *,
        cwd: str | os.PathLike[str] | None = None,
        limit: int = 20,
        on_step: Callable[[int, int], object] | None = None,
    ) -> Sequence[SearchHit]:
        """What users and models said that holds every word of `text`, newest first; case does not matter.
        `on_step` is told how many of the sessions that have changed are read, and of how many."""
        where = None if cwd is None else os.fspath(cwd)
        return self._index().search(text, cwd=where, limit=limit, on_step=on_step)

    def migrate(self) -> Migration:
        """Write the `history` into every record that has none; the old file is kept beside the new one."""
        migrated, unchanged, problems = [], 0, []
        for name in sorted(self._files.names(self.base_dir)):
            if not name.endswith(".json") or name.startswith("."):
                continue
            try:
                if self._migrate(check_session_id(name.removesuffix(".json"))):
                    migrated.append(name.removesuffix(".json"))
                else:
                    unchanged += 1
            except (OSError, ValueError, StorageError, ValidationError) as error:
                problems.append(f"{self.base_dir}/{name} was left as it is: {reason_of(error)}")
        return Migration(tuple(migrated), unchanged, tuple(problems))

    def empty_trash(self) -> None:
        """Remove for good what was deleted, and the index, which may still hold its words."""
        import shutil  # noqa: PLC0415 - rare

        from robota.sessions.store.index import discard_index  # noqa: PLC0415 - loads SQLite

        shutil.rmtree(f"{self.base_dir}/{TRASH}", ignore_errors=True)
        discard_index(self.base_dir)

    # --- details ----------------------------------------------------------------------------------------

    def _save(self, fields: Mapping[str, Json], file: SnapshotFile) -> None:
        merged = merge_fields(file.path, fields, file.fields())
        ready = {key for key, value in fields.items() if isinstance(value, Raw)}  # without secrets already
        redactor = self._trusted_redactor()
        for key, value in merged.items():
            if key not in ready:
                repeated = key in ("systemPrompt", "toolSchemas")
                merged[key] = Raw(redactor.json(bytes(encode_field(key, value)), key, repeated=repeated))
        file.replace(seal(merged))

    def _migrate(self, id: str) -> bool:
        file = SnapshotFile(self._files, self.path_of(id))
        old = split_record(file.read())
        if bytes(old.get("history", b""))[:1] == b"[":
            return False
        file.keep_copy("old", "it has no history yet")
        self._save({"id": id, "updatedAt": old.get("updatedAt", "")}, file)
        return True

    def _index(self) -> SessionIndex:
        from robota.sessions.store.index import SessionIndex  # noqa: PLC0415 - loads SQLite

        return SessionIndex(
            self.base_dir, files=self._files, redact=lambda text: self._trusted_redactor().text(text)
        )

    def _trusted_redactor(self) -> Redactor:
        if self._redactor is None:
            from robota.sessions.redaction import Redactor  # noqa: PLC0415 - its tables are built on first use

            self._redactor = Redactor()
        return self._redactor


# --- the trash ----------------------------------------------------------------------------------------

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
    """Move a session's files into `.trash/{id}~{n}/`; one that somebody has open raises `SessionLockedError`.

    The snapshot goes first and the journal second, so that a session is either still loaded from its journal
    or gone. If a move fails, what was moved comes back. To have a session again, move its files back by hand.
    """
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
    import shutil  # noqa: PLC0415 - rare

    oldest = time.time() - _SECONDS_KEPT
    with suppress(OSError), os.scandir(trash) as entries:  # others empty it too; the session is deleted
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                shutil.rmtree(entry.path, ignore_errors=True)


def _not_deleted(directory: str, id: str, error: OSError, restored: bool = True) -> StorageError:
    where = "Its files are still there." if restored else f"Some of its files are in {directory}/{TRASH}."
    return StorageError(f"Session {id} in {directory} was not deleted: {error.strerror or error}. {where}")
