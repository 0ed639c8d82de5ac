from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.sessions.stored_sessions import (
    ANSWER,
    QUESTION,
    SESSION_INIT,
    THANKS,
    message_event,
    write_journal,
)

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.sessions.files import Files
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record

USER = {"event": "user", "input": "Where is the parser?"}


class CountingFiles(Files):
    """The real disk, which says what was read."""

    def __init__(self) -> None:
        self.read_names: list[str] = []

    def open_read(self, path: str) -> int:
        self.read_names.append(os.path.basename(path))
        return super().open_read(path)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "sessions"
    directory.mkdir()
    return directory


@pytest.fixture
def store(directory: Path) -> SessionStore:
    return SessionStore(directory)


def ids(store: SessionStore) -> list[str]:
    return [summary.id for summary in store.list()]


@contextmanager
def removed_before_it_is_looked_at(path: Path) -> Iterator[None]:
    """What happens when somebody else removes a file between the list of a directory and a look at it."""

    def remove(frame: object, event: str, called: object) -> None:
        if event == "c_call" and isinstance(getattr(called, "__self__", None), os.DirEntry):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    before = sys.getprofile()
    sys.setprofile(remove)
    try:
        yield
    finally:
        sys.setprofile(before)


# --- what a list says -----------------------------------------------------------------------------------


def test_a_session_that_is_deleted_meanwhile_costs_no_other(store: SessionStore, directory: Path) -> None:
    write_journal(directory, "kept", SESSION_INIT, USER)
    write_journal(directory, "gone", SESSION_INIT, USER)
    with removed_before_it_is_looked_at(directory / "gone.jsonl"):
        assert "kept" in ids(store)


def test_trash_that_somebody_else_empties_meanwhile_is_no_failure(
    store: SessionStore, directory: Path
) -> None:
    for name in ("first", "second"):
        write_journal(directory, name, SESSION_INIT, USER)
    store.delete("first")
    (copy,) = (directory / ".trash").iterdir()
    with removed_before_it_is_looked_at(copy):
        store.delete("second")
    assert ids(store) == []


def test_a_session_without_a_snapshot_is_listed_from_its_journal(
    store: SessionStore, directory: Path
) -> None:
    journal = write_journal(directory, "s1", SESSION_INIT, USER, message_event(0, QUESTION))
    write_journal(directory, "s1", message_event(1, ANSWER), now=1_772_370_000.0)
    (summary,) = store.list()
    assert (summary.cwd, summary.name, summary.model) == ("/srv/project", "parsing", "some-model")
    assert (summary.created_at, summary.updated_at) == (
        "2026-03-01T12:00:00.000Z",
        "2026-03-01T13:00:00.000Z",
    )
    assert (summary.first_prompt, summary.message_count) == ("Where is the parser?", 2)
    assert (summary.has_journal, summary.damaged) == (True, False)
    assert summary.size == journal.stat().st_size


def test_a_long_journal_is_listed_from_its_two_ends(store: SessionStore, directory: Path) -> None:
    filler = {"event": "tool_result", "content": "x" * 30_000}
    bodies = [SESSION_INIT, USER, *[filler] * 40, message_event(80, THANKS), {"event": "context"}]
    write_journal(directory, "s1", *bodies)
    write_journal(directory, "s1", {"event": "session_change", "change": "name", "value": "renamed"})
    (summary,) = store.list()
    assert (summary.cwd, summary.name, summary.message_count) == ("/srv/project", "renamed", 81)
    assert summary.first_prompt == "Where is the parser?"


def test_a_journal_that_went_on_counts_as_the_last_change(store: SessionStore, directory: Path) -> None:
    store.save(make_record("s1", updated_at="2026-03-01T12:30:00.000Z"))
    store.save(make_record("s2", updated_at="2026-03-01T12:40:00.000Z"))
    assert ids(store) == ["s2", "s1"]
    write_journal(
        directory, "s1", *[{"event": "context"}] * 12, message_event(6, THANKS), now=1_772_370_000.0
    )
    first, _ = store.list()
    assert (first.id, first.updated_at, first.message_count) == ("s1", "2026-03-01T13:00:00.000Z", 7)


def test_the_first_prompt_is_what_the_user_wrote(store: SessionStore) -> None:
    prompt = "<system-reminder>\nToday is Monday.\n</system-reminder>\n\n  Where   is\nit? " + "x" * 1000
    store.save(
        {**make_record("s1"), "messages": [{"role": "user", "content": [{"type": "text", "text": prompt}]}]}
    )
    (summary,) = store.list()
    assert summary.first_prompt.startswith("Where   is\nit? xxx")
    assert len(summary.first_prompt) == 300
    assert summary.preview == "Where is it? " + "x" * 66 + "…"


def test_the_sessions_of_one_working_directory(store: SessionStore, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "project")
    store.save({**make_record("here"), "cwd": str(tmp_path / "project")})
    store.save({**make_record("elsewhere"), "cwd": str(tmp_path / "project-2")})
    for spelling in (tmp_path / "project", tmp_path / "link", f"{tmp_path}/project-2/../project/"):
        assert [summary.id for summary in store.list(cwd=spelling)] == ["here"]


def test_other_files_in_the_directory_are_no_sessions(store: SessionStore, directory: Path) -> None:
    store.save(make_record("s1"))
    write_journal(directory, "s1", SESSION_INIT)
    for name in (
        "s1.jsonl.torn-1",
        "s1.lock",
        "s1.json.damaged-1",
        ".s9.json.0a.tmp",
        "a b.json",
        "notes.txt",
    ):
        (directory / name).write_text("{}")
    (directory / "s1.payloads").mkdir()
    (directory / "s1" / "subagents").mkdir(parents=True)
    assert ids(store) == ids(store) == ["s1"]


def test_what_a_killed_save_left_is_removed_after_a_day(store: SessionStore, directory: Path) -> None:
    old, new = directory / ".s1.json.0a.tmp", directory / ".s2.json.0b.tmp"
    old.touch()
    new.touch()
    os.utime(old, (time.time() - 90_000,) * 2)
    store.list()
    assert (old.exists(), new.exists()) == (False, True)


def test_records_of_the_original_are_listed(store: SessionStore, directory: Path) -> None:
    line = {"timestamp": "2026-03-01T12:00:00.000Z", "sessionId": "s1", "event": "user", "content": "hello"}
    (directory / "s1.jsonl").write_bytes(encode(line) + b"\n")
    record = {"id": "s2", "messages": [{"role": "user", "content": "old"}], "name": 7, "cwd": None}
    (directory / "s2.json").write_text(json.dumps(record))
    by_id = {summary.id: summary for summary in store.list()}
    assert (by_id["s1"].first_prompt, by_id["s1"].updated_at) == ("hello", "2026-03-01T12:00:00.000Z")
    assert (by_id["s2"].first_prompt, by_id["s2"].name, by_id["s2"].cwd) == ("old", None, "")
    assert by_id["s2"].updated_at.startswith("20")
    assert not any(summary.damaged for summary in by_id.values())


# --- damage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", bytes(50), b"[]", b'{"id":"s1"}', b'{"messages":["\xff"]}'])
def test_a_damaged_session_is_listed_as_damaged(store: SessionStore, directory: Path, content: bytes) -> None:
    (directory / "s1.json").write_bytes(content)
    store.save(make_record("s2"))
    for _ in range(2):
        damaged = {summary.id: summary.damaged for summary in store.list()}
        assert damaged == {"s1": True, "s2": False}
    (directory / "s1.json").write_text(json.dumps(make_record("s1")))
    assert not any(summary.damaged for summary in store.list())


def test_a_damaged_snapshot_is_listed_with_what_its_journal_says(
    store: SessionStore, directory: Path
) -> None:
    write_journal(directory, "s1", SESSION_INIT, USER, message_event(0, QUESTION))
    (directory / "s1.json").write_bytes(b"{")
    (summary,) = store.list()
    assert (summary.first_prompt, summary.message_count) == ("Where is the parser?", 1)
    assert summary.problem.startswith("s1.json cannot be read")


@pytest.mark.parametrize("content", [b"", bytes(500), b"no journal\n"])
def test_a_damaged_journal_is_listed_as_damaged(store: SessionStore, directory: Path, content: bytes) -> None:
    (directory / "s1.jsonl").write_bytes(content)
    (summary,) = store.list()
    assert summary.problem.startswith("s1.jsonl")


def test_what_is_no_file_is_listed_as_damaged(store: SessionStore, directory: Path) -> None:
    (directory / "s1.json").mkdir()
    os.mkfifo(directory / "s2.jsonl")
    (directory / "s3.json").symlink_to("nowhere")
    assert sorted((summary.id, summary.damaged) for summary in store.list()) == [
        ("s1", True), ("s2", True), ("s3", True),
    ]  # fmt: skip


def test_a_directory_that_cannot_be_listed_is_no_empty_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be listed"):
        SessionStore(tmp_path / "file").list()
    assert SessionStore(tmp_path / "missing").list() == []
    assert not (tmp_path / "missing").exists()


# --- the index ------------------------------------------------------------------------------------------


def test_only_what_changed_is_read(directory: Path) -> None:
    files = CountingFiles()
    store = SessionStore(directory, files=files)
    for number in range(5):
        store.save(make_record(f"s{number}"))
    write_journal(directory, "s0", SESSION_INIT)
    store.list()
    files.read_names.clear()
    SessionStore(directory, files=files).list()
    assert files.read_names == []
    SessionStore(directory).save({**make_record("s3"), "name": "SUMS"})
    write_journal(directory, "s0", message_event(0, QUESTION))
    store.delete("s4")
    assert {summary.id: summary.name for summary in store.list()} == {
        "s0": "sums", "s1": "sums", "s2": "sums", "s3": "SUMS",
    }  # fmt: skip
    assert sorted(files.read_names) == ["s0.json", "s0.jsonl", "s3.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"no database", bytes(8192), b"SQLite format 3\0" + bytes(8192)],
    ids=["empty", "text", "zeros", "header"],
)
def test_an_index_that_is_none_is_made_anew(store: SessionStore, directory: Path, content: bytes) -> None:
    store.save(make_record("s1"))
    index = directory / "index.sqlite3"
    index.write_bytes(content)
    assert ids(store) == ["s1"]
    with closing(sqlite3.connect(index)) as database:
        assert database.execute("SELECT id FROM sessions").fetchall() == [("s1",)]


def test_an_index_cut_or_overwritten_anywhere_costs_nothing(store: SessionStore, directory: Path) -> None:
    for number in range(30):
        store.save(make_record(f"s{number}"))
    expected = sorted(ids(store))
    store.search("turtle")
    index = directory / "index.sqlite3"
    whole = index.read_bytes()
    for place in range(0, len(whole), 1024):
        for damaged in (whole[:place], whole[:place] + b"\xff" * 512 + whole[place + 512 :]):
            index.write_bytes(damaged)
            assert sorted(ids(store)) == expected
            assert {hit.snippet for hit in store.search("add", limit=50)} <= {"Let me add."}


def test_an_index_of_another_version_is_made_anew(store: SessionStore, directory: Path) -> None:
    store.save(make_record("s1"))
    with closing(sqlite3.connect(directory / "index.sqlite3")) as database:
        database.execute("CREATE TABLE sessions (id TEXT, other TEXT)")
        database.execute("PRAGMA user_version = 77")
    assert ids(store) == ["s1"]


def test_a_locked_index_is_done_without(
    store: SessionStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robota.sessions.store.index._BUSY_SECONDS", 0.01)
    store.save(make_record("s1"))
    store.list()
    with closing(sqlite3.connect(directory / "index.sqlite3", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        store.save(make_record("s2"))
        assert sorted(ids(store)) == ["s1", "s2"]
        assert len(store.search("add")) == 2
    assert sorted(ids(store)) == ["s1", "s2"]


def test_a_place_where_no_index_can_be_is_done_without(store: SessionStore, directory: Path) -> None:
    (directory / "index.sqlite3").mkdir()
    store.save(make_record("s1"))
    assert ids(store) == ["s1"]
    assert len(store.search("add")) == 1
