"""Every file operation of the store fails once, in every way: the old record or the new one is left."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.sessions.stored_sessions import ANSWER, QUESTION, SESSION_INIT, message_event, write_journal
from tests.support.faulty_files import Fault, FaultyFiles, SimulatedCrash

from robota.core.errors import StorageError
from robota.sessions.store.session_store import SessionStore
from robota.testing.store_conformance import make_record

OLD = make_record("s1")
NEW = {**make_record("s1"), "name": "new", "systemPrompt": "new" * 5000}
DAMAGED = b'{"id": "s1", "mess'
SEEDS = 8


def prepare(directory: Path, before: dict[str, object] | bytes | None) -> None:
    if isinstance(before, bytes):
        directory.mkdir(parents=True)
        (directory / "s1.json").write_bytes(before)
    elif before is not None:
        SessionStore(directory).save(before)


def found(directory: Path) -> object:
    """The record as a reader sees it; the bytes of one that cannot be read."""
    try:
        record = SessionStore(directory).load("s1")
    except StorageError:
        return (directory / "s1.json").read_bytes()
    return None if record is None else record.to_mapping()


@pytest.mark.parametrize("before", [None, OLD, DAMAGED], ids=["first", "again", "damaged"])
@pytest.mark.parametrize("fault", ["error", "short"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_save_that_fails_leaves_the_old_record(
    tmp_path: Path, before: dict[str, object] | bytes | None, fault: Fault, code: int
) -> None:
    number, fired = 0, True
    while fired:
        directory = tmp_path / str(number) / "sessions"
        prepare(directory, before)
        files = FaultyFiles(str(tmp_path), fail_at=number, fault=fault, error=code)
        try:
            SessionStore(directory, files=files).save(NEW)
        except StorageError:
            assert found(directory) in (before, NEW)
        else:
            assert found(directory) == NEW
        assert not list(directory.glob(".*.tmp"))
        if before is DAMAGED and found(directory) == NEW:
            assert (directory / "s1.json.damaged-1").read_bytes() == DAMAGED
        files.heal()
        SessionStore(directory, files=files).save(NEW)
        assert found(directory) == NEW
        number, fired = number + 1, files.fired
    assert number > 1


@pytest.mark.parametrize("before", [None, OLD, DAMAGED], ids=["first", "again", "damaged"])
def test_after_a_power_cut_there_is_the_old_record_or_the_new_one(
    tmp_path: Path, before: dict[str, object] | bytes | None
) -> None:
    number, fired, seen = 0, True, set()
    while fired:
        root = tmp_path / str(number)
        directory = root / "sessions"
        root.mkdir()
        prepare(directory, before)
        files = FaultyFiles(str(root), fail_at=number, fault="crash")
        saved = True
        try:
            SessionStore(directory, files=files).save(NEW)
        except SimulatedCrash:
            saved = False
        for seed in range(SEEDS):
            files.after_crash(seed)
            state = found(directory)
            assert state == NEW or (state == before and not saved)
            seen.add(state == NEW)
            if before is DAMAGED and state == NEW:
                assert (directory / "s1.json.damaged-1").read_bytes() == DAMAGED
        number, fired = number + 1, files.fired
    assert seen == {True, False}


def test_a_load_that_fails_says_so_and_never_shows_less(tmp_path: Path) -> None:
    number, fired = 0, True
    directory = tmp_path / "sessions"
    store = SessionStore(directory)
    write_journal(directory, "s1", SESSION_INIT, message_event(0, QUESTION))
    store.save({"id": "s1", "messages": [QUESTION], "journalSeq": 2})
    write_journal(directory, "s1", message_event(1, ANSWER))
    while fired:
        files = FaultyFiles(str(tmp_path), fail_at=number)
        record = SessionStore(directory, files=files).load("s1")
        assert record is not None
        assert record.parse_messages() == [QUESTION, ANSWER] or record.problems
        number, fired = number + 1, files.fired
    assert number > 5


def test_a_list_with_a_failing_disk_leaves_nothing_out(tmp_path: Path) -> None:
    number, fired = 0, True
    while fired:
        directory = tmp_path / str(number)
        store = SessionStore(directory)
        for id in ("s1", "s2"):
            store.save(make_record(id))
        write_journal(directory, "s2", SESSION_INIT)
        files = FaultyFiles(str(directory), fail_at=number)
        listed = SessionStore(directory, files=files).list()
        assert sorted(summary.id for summary in listed) == ["s1", "s2"]
        assert not any(summary.damaged for summary in store.list())
        number, fired = number + 1, files.fired
    assert number > 5
