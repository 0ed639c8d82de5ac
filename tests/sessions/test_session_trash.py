from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.sessions.stored_sessions import QUESTION, SESSION_INIT, message_event, write_journal
from tests.support.faulty_files import FaultyFiles
from tests.support.journal_files import JournalFile

from robota.core.errors import StorageError
from robota.sessions.journal.port import SessionLockedError
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def store(directory: Path) -> SessionStore:
    return SessionStore(directory)


def fill(store: SessionStore, id: str) -> set[str]:
    """A session with everything a session can have; the names of its files."""
    directory = Path(store.base_dir)
    before = set(os.listdir(directory)) if directory.exists() else set()
    store.save(make_record(id))
    write_journal(directory, id, SESSION_INIT, message_event(0, QUESTION))
    for name in (f"{id}.jsonl.torn-1", f"{id}.json.damaged-1", f"{id}.json.old-1", f".{id}.json.0a.tmp"):
        (directory / name).write_text("x")
    (directory / f"{id}.payloads").mkdir()
    (directory / f"{id}.payloads" / "00.json").write_text("x")
    (directory / id / "subagents").mkdir(parents=True)
    return set(os.listdir(directory)) - before


def test_everything_of_a_session_goes_and_nothing_else(store: SessionStore, directory: Path) -> None:
    kept = fill(store, "s1.2") | fill(store, "s11") | fill(store, "s")
    gone = fill(store, "s1")
    store.delete("s1")
    assert set(os.listdir(directory)) == kept | {".trash"}
    (copy,) = (directory / ".trash").iterdir()
    assert set(os.listdir(copy)) == gone
    assert store.load("s1") is None


def test_a_deleted_session_can_be_moved_back(store: SessionStore, directory: Path) -> None:
    fill(store, "s1")
    before = store.load("s1")
    store.delete("s1")
    store.delete("s1")
    (copy,) = (directory / ".trash").iterdir()
    for path in copy.iterdir():
        path.rename(directory / path.name)
    assert store.load("s1") == before


def test_the_trash_is_private(store: SessionStore, directory: Path) -> None:
    fill(store, "s1")
    store.delete("s1")
    (copy,) = (directory / ".trash").iterdir()
    assert [path.stat().st_mode & 0o777 for path in (copy.parent, copy)] == [0o700, 0o700]


def test_what_was_deleted_long_ago_is_removed(store: SessionStore, directory: Path) -> None:
    fill(store, "old")
    store.delete("old")
    (copy,) = (directory / ".trash").iterdir()
    month_ago = time.time() - 31 * 86400
    os.utime(copy, (month_ago, month_ago))
    fill(store, "new")
    store.delete("new")
    assert [path.name.partition("~")[0] for path in (directory / ".trash").iterdir()] == ["new"]


def test_the_trash_can_be_emptied(store: SessionStore, directory: Path) -> None:
    store.empty_trash()
    fill(store, "s1")
    store.search("turtle")
    store.delete("s1")
    store.empty_trash()
    assert os.listdir(directory) == []


def test_a_session_that_is_open_is_not_deleted(store: SessionStore, directory: Path) -> None:
    names = fill(store, "s1")
    journal = JournalFile(str(directory / "s1.jsonl"), "s1")
    journal.open()
    with pytest.raises(SessionLockedError):
        store.delete("s1")
    journal.close()
    assert names <= set(os.listdir(directory))
    store.delete("s1")
    assert store.load("s1") is None


def test_whatever_fails_a_session_is_there_or_gone(tmp_path: Path) -> None:
    number, failed, fired = 0, 0, True
    while fired:
        store = SessionStore(tmp_path / str(number))
        names = fill(store, "s1")
        files = FaultyFiles(str(tmp_path), fail_at=number)
        try:
            SessionStore(store.base_dir, files=files).delete("s1")
        except StorageError:
            failed += 1
            assert names <= set(os.listdir(store.base_dir))
            assert store.load("s1") is not None
        else:
            assert store.load("s1") is None
        number, fired = number + 1, files.fired
    assert failed > len(names)


def test_a_disk_that_stays_broken_says_where_the_files_are(store: SessionStore, directory: Path) -> None:
    fill(store, "s1")
    files = FaultyFiles(str(directory), fail_at=3, lasting=True, only={"replace"})
    with pytest.raises(StorageError, match=r"Some of its files are in .*\.trash"):
        SessionStore(directory, files=files).delete("s1")
