from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tools.test_undo_crash import MortalCalls, QuickCalls, die_after
from tests.tools.undo_repository import take_picture

from robota.tools.files.directory import SystemCalls
from robota.tools.undo import blobs, packs
from robota.tools.undo.plan import Plan
from robota.tools.undo.snapshot import Scope, cover
from robota.tools.undo.store import UndoStore

FILES = 2 * blobs._MANY


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    for number in range(FILES):
        (path / f"{number}").write_bytes(b"%d " % number + os.urandom(100))
    return path


def everything(work: Path) -> Plan:
    return Plan(Scope(), cover([str(work)]), workspace=str(work))


def empty(work: Path, names: range = range(FILES)) -> None:
    for number in names:
        (work / f"{number}").unlink()


def remove(store: UndoStore, work: Path, names: range = range(FILES)) -> str:
    saved = store.save(everything(work), "remove")
    assert saved.entry_id is not None
    empty(work, names)
    store.finish(saved.entry_id)
    return saved.entry_id


def on_disk(base: Path) -> int:
    return sum(file.stat().st_size for file in (base / "blobs").rglob("*") if file.is_file())


def test_many_files_take_one_file_of_the_store_and_a_few_syncs(tmp_path, work):
    class CountingCalls(SystemCalls):
        syncs = 0

        def fsync(self, descriptor: int) -> None:  # type: ignore[override]
            CountingCalls.syncs += 1
            os.fsync(descriptor)

        def sync_disk(self, descriptor: int) -> None:  # type: ignore[override]
            raise AssertionError("everybody else's files are no affair of a save")

    store = UndoStore(tmp_path / "undo", system=CountingCalls())
    picture = take_picture(work)
    entry = remove(store, work)

    [pack] = (tmp_path / "undo" / "blobs" / "packs").iterdir()
    assert pack.stat().st_mode & 0o777 == 0o600
    assert CountingCalls.syncs < 16
    assert UndoStore(tmp_path / "undo", system=QuickCalls()).undo(entry).kept == ()
    assert take_picture(work) == picture


def test_what_another_process_packed_is_found_and_not_written_again(tmp_path, work):
    store, other = UndoStore(tmp_path / "undo"), UndoStore(tmp_path / "undo")
    store.entries()
    remove(other, work, range(1))
    used = store.used_bytes
    (work / "0").write_text("new")
    entry = remove(store, work)
    assert store.used_bytes - used < 64 * FILES  # the list of what was removed
    assert store.undo(entry).kept == ()
    assert (work / "0").read_text() == "new"


def test_room_of_a_pack_is_freed_although_something_in_it_is_needed(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    first = (work / "0").read_bytes()
    entry = remove(store, work, range(1))
    before = on_disk(tmp_path / "undo")
    report = store.gc(dry_run=False)

    assert (report.blobs, report.entries) == (FILES - 1, ())
    assert on_disk(tmp_path / "undo") == report.bytes_after == store.used_bytes < before / 10
    store.undo(entry)
    assert (work / "0").read_bytes() == first
    store.gc(dry_run=False, quota_bytes=0)
    assert on_disk(tmp_path / "undo") == store.used_bytes == 0


def test_a_pack_is_closed_when_it_is_large(tmp_path, work, monkeypatch):
    monkeypatch.setattr(blobs, "PACK_BYTES", 1000)
    store, picture = UndoStore(tmp_path / "undo"), take_picture(work)
    entry = remove(store, work)
    assert len(list((tmp_path / "undo" / "blobs" / "packs").iterdir())) > 10
    assert store.used_bytes == on_disk(tmp_path / "undo")
    store.undo(entry)
    assert take_picture(work) == picture


def test_packs_are_compressed_where_they_take_much_of_the_room(tmp_path, work):
    for number in range(FILES):
        (work / f"{number}").write_bytes(b"%d " % number + bytes(1000))
    whole, small = UndoStore(tmp_path / "whole"), UndoStore(tmp_path / "small", quota_bytes=60_000)
    picture = take_picture(work)
    for store in (whole, small):
        assert store.save(everything(work), "look").unprotected == ()
    entry = remove(small, work)
    assert on_disk(tmp_path / "small") < on_disk(tmp_path / "whole") / 3
    small.undo(entry)
    assert take_picture(work) == picture


def test_a_damaged_pack_costs_the_contents_that_are_damaged(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    entry = remove(store, work)
    [pack] = (tmp_path / "undo" / "blobs" / "packs").iterdir()
    data = bytearray(pack.read_bytes())
    data[3] ^= 1
    pack.write_bytes(data)
    [kept] = store.undo(entry).kept
    assert "damaged" in kept.reason
    assert len(list(work.iterdir())) == FILES - 1


def test_a_pack_that_was_cut_and_a_file_of_others_cost_nothing_else(tmp_path, work):
    base = tmp_path / "undo"
    entry = remove(UndoStore(base), work)
    (pack,) = (base / "blobs" / "packs").iterdir()
    os.truncate(pack, 10)
    (pack.parent / ".DS_Store").write_bytes(b"somebody else's")

    again = UndoStore(base)
    kept = again.undo(entry).kept
    assert len(kept) == FILES
    assert all("has lost a content" in each.reason for each in kept)

    (work / "0").write_text("new")
    later = remove(again, work, range(1))
    assert not again.undo(later).kept
    assert (work / "0").read_text() == "new"


def test_a_kill_while_many_files_are_saved_leaves_no_entry_that_is_not_whole(tmp_path, work):
    picture, lives, died = take_picture(work), 0, True
    while died:
        lives += 1
        base = tmp_path / f"undo{lives}"

        def act(system: MortalCalls, base: Path = base) -> None:
            UndoStore(base, system=system).save(everything(work), "call")

        died = die_after(lives, act)
        store = UndoStore(base, system=QuickCalls())
        for entry in store.entries():
            empty(work)
            assert not store.undo(entry.id, overwrite=lambda path: True).kept
            assert take_picture(work) == picture
        store.gc(dry_run=False)
        assert list((base / "tmp").iterdir()) == []
    assert lives > 8


def test_a_kill_while_room_is_made_loses_nothing_that_is_needed(tmp_path, work, monkeypatch):
    monkeypatch.setattr(blobs, "PACK_BYTES", 4000)
    first, lives, died = (work / "0").read_bytes(), 0, True
    while died:
        lives += 1
        base = tmp_path / f"undo{lives}"
        entry = remove(UndoStore(base, system=QuickCalls()), work, range(1))

        def act(system: MortalCalls, base: Path = base) -> None:
            UndoStore(base, system=system).gc(dry_run=False)

        died = die_after(lives, act)
        store = UndoStore(base, system=QuickCalls())
        store.gc(dry_run=False)
        assert on_disk(base) == len(first) + packs._RECORD.size
        assert store.undo(entry).kept == ()
        assert (work / "0").read_bytes() == first
    assert lives > 8
