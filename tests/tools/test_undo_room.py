from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from robota.core.errors import StorageError
from robota.core.ports import REAL_WORLD
from robota.tools.files.directory import SystemCalls
from robota.tools.undo import journal
from robota.tools.undo.plan import Plan, plan_command
from robota.tools.undo.snapshot import Limits, Scope, cover
from robota.tools.undo.store import UndoStore


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def everything(work: Path) -> Plan:
    return Plan(Scope(), cover([str(work)]), workspace=str(work))


def change(store: UndoStore, path: Path, content: bytes) -> str:
    saved = store.save(Plan(cover([str(path)])), f"write {content[:1].hex()}")
    assert saved.entry_id is not None
    path.write_bytes(content)
    store.finish(saved.entry_id)
    return saved.entry_id


def noise(letter: int) -> bytes:
    return bytes([letter]) + os.urandom(10_000)


# --- limits --------------------------------------------------------------------------------------------


def test_a_huge_file_is_refused_politely_and_the_rest_is_saved(tmp_path, work):
    store = UndoStore(tmp_path / "undo", limits=Limits(file_bytes=1000))
    (work / "huge").write_bytes(bytes(1001))
    (work / "small").write_bytes(bytes(1000))

    saved = store.save(everything(work), "call")

    reason = f"{work}/huge is too large to be saved for undo (1,001 bytes)."
    assert [(each.code, each.reason) for each in saved.unprotected] == [("file_too_large", reason)]
    (work / "huge").write_bytes(b"")
    (work / "small").unlink()
    entry = store.finish(saved.entry_id)
    assert (entry.files, entry.unprotected) == (1, (reason,))
    assert store.undo(entry.id).restored == (f"{work}/small",)


def test_too_many_files_are_refused_before_they_are_read(tmp_path, work):
    class NoWrites(SystemCalls):
        @staticmethod
        def write(descriptor: int, data: object) -> int:
            raise AssertionError("something was saved")

    store = UndoStore(tmp_path / "undo", limits=Limits(files=5), system=NoWrites())
    for number in range(6):
        (work / str(number)).write_text(str(number))
    saved = store.save(everything(work), "call")
    reason = "The workspace has more than 5 files, too many to be saved for undo."
    assert (saved.entry_id, [each.reason for each in saved.unprotected]) == (None, [reason])
    assert store.entries() == []


def test_what_does_not_fit_the_quota_is_said_and_leaves_nothing_behind(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=15_000)
    (work / "a").write_bytes(noise(1))
    (work / "b").write_bytes(noise(2))

    saved = store.save(everything(work), "call")

    reason = "The workspace does not fit into the undo store (0 of 15,000 bytes are used)."
    assert (saved.entry_id, [each.reason for each in saved.unprotected]) == (None, [reason])
    assert [path for path in (tmp_path / "undo").rglob("*") if path.is_file()] == [tmp_path / "undo" / "lock"]


def test_far_too_much_is_not_even_tried(tmp_path, work):
    class NoWrites(SystemCalls):
        @staticmethod
        def write(descriptor: int, data: object) -> int:
            raise AssertionError("something was saved")

    (work / "a").write_bytes(bytes(50_000))
    store = UndoStore(tmp_path / "undo", quota_bytes=10_000, system=NoWrites())
    assert [each.code for each in store.save(everything(work), "call").unprotected] == ["quota"]


def test_a_file_larger_than_what_is_left_is_not_copied_to_its_end(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=2_000_000)
    (work / "a").write_bytes(os.urandom(5_000_000))
    assert store.save(Plan(cover([str(work / "a")])), "call").entry_id is None
    assert list((tmp_path / "undo" / "tmp").iterdir()) == []


def test_what_a_command_names_is_saved_when_the_workspace_does_not_fit(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=12_000)
    (work / "a").write_bytes(noise(1))
    (work / "b").write_bytes(noise(2))
    content = (work / "a").read_bytes()
    plan = plan_command("rm a; unknown-program", str(work), [str(work)])
    assert plan is not None

    saved = store.save(plan, "call")

    assert [each.code for each in saved.unprotected] == ["quota"]
    (work / "a").unlink()
    store.finish(saved.entry_id)
    store.undo(saved.entry_id)
    assert (work / "a").read_bytes() == content


def test_a_save_that_failed_is_not_remembered_as_done(tmp_path, work):
    (work / "a").write_bytes(noise(1))
    (work / "b").write_bytes(noise(2))
    content = (work / "a").read_bytes()
    for path in work.iterdir():
        os.utime(path, (1, 1))
    store = UndoStore(tmp_path / "undo", quota_bytes=15_000)
    assert store.save(everything(work), "too much").entry_id is None
    store.quota_bytes = 1_000_000
    saved = store.save(everything(work), "fits")
    (work / "a").unlink()
    store.finish(saved.entry_id)
    store.undo(saved.entry_id)
    assert (work / "a").read_bytes() == content


def test_an_undo_works_in_a_full_store(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=11_000)
    (work / "a").write_bytes(noise(1))
    content = (work / "a").read_bytes()
    entry = change(store, work / "a", noise(2))
    assert store.undo(entry).entry_id is not None
    assert (work / "a").read_bytes() == content


def test_a_full_disk_is_an_error_that_says_so(tmp_path, work):
    class FullDisk(SystemCalls):
        @staticmethod
        def write(descriptor: int, data: object) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (work / "a").write_text("x")
    with pytest.raises(StorageError, match="cannot be written: No space left on device"):
        UndoStore(tmp_path / "undo", system=FullDisk()).save(everything(work), "call")
    assert list((tmp_path / "undo" / "tmp").iterdir()) == []


def test_a_place_that_cannot_be_a_store_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"The undo store cannot be used: .*file"):
        UndoStore(tmp_path / "file").entries()


# --- making room ---------------------------------------------------------------------------------------


def test_a_dry_run_reports_what_would_go_and_removes_nothing(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    path = work / "f"
    path.write_bytes(noise(0))
    ids = [change(store, path, noise(letter)) for letter in (1, 2, 3)]

    report = store.gc(quota_bytes=25_000)

    assert (report.done, [each.id for each in report.entries]) == (False, ids[:1])
    assert (report.entries[0].label, report.entries[0].files) == ("write 01", 1)
    assert report.bytes_before > 30_000 > 25_000 > report.bytes_after > 20_000
    assert [entry.id for entry in store.entries()] == ids


def test_the_oldest_entries_go_and_the_others_can_still_be_undone(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    path = work / "f"
    contents = [noise(letter) for letter in range(4)]
    path.write_bytes(contents[0])
    ids = [change(store, path, content) for content in contents[1:]]

    report = store.gc(dry_run=False, quota_bytes=25_000)

    assert (report.done, [each.id for each in report.entries]) == (True, ids[:1])
    assert [entry.id for entry in store.entries()] == ids[1:]
    disk = sum(file.stat().st_size for file in (tmp_path / "undo" / "blobs").rglob("*") if file.is_file())
    assert disk == report.bytes_after == store.used_bytes
    for entry, content in zip(reversed(ids[1:]), reversed(contents[1:3]), strict=True):
        store.undo(entry)
        assert path.read_bytes() == content


def test_a_content_that_a_kept_entry_needs_stays(tmp_path, work, monkeypatch):
    monkeypatch.setattr(journal, "INLINE_BYTES", 0)  # so that each entry has something of its own to lose
    store = UndoStore(tmp_path / "undo")
    same, path = noise(7), work / "f"
    path.write_bytes(same)
    change(store, path, noise(1))
    path.write_bytes(same)
    last = change(store, path, noise(2))
    store.gc(dry_run=False, quota_bytes=store.gc().bytes_after - 1)
    assert [entry.id for entry in store.entries()] == [last]
    store.undo(last)
    assert path.read_bytes() == same


def test_what_only_manifests_needed_goes_without_any_entry_going(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    (work / "f").write_bytes(noise(1))
    (work / "unchanged").write_bytes(noise(2))
    saved = store.save(everything(work), "call")
    (work / "f").unlink()
    store.finish(saved.entry_id)

    report = store.gc(dry_run=False)

    assert (report.entries, report.blobs, report.leftovers) == ((), 1, 1)
    store.undo(saved.entry_id)
    assert (work / "f").exists()


def test_after_making_room_an_unchanged_file_is_stored_again(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    (work / "f").write_bytes(noise(1))
    content = (work / "f").read_bytes()
    other = UndoStore(tmp_path / "undo")
    saved = other.save(everything(work), "call")
    other.finish(saved.entry_id)
    store.gc(dry_run=False, quota_bytes=0)
    saved = other.save(everything(work), "call")
    (work / "f").unlink()
    other.finish(saved.entry_id)
    other.undo(saved.entry_id)
    assert (work / "f").read_bytes() == content


def test_an_entry_whose_call_runs_is_never_removed(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    (work / "f").write_bytes(noise(1))
    saved = store.save(everything(work), "running")
    report = store.gc(dry_run=False, quota_bytes=0)
    assert report.entries == ()
    (work / "f").unlink()
    store.finish(saved.entry_id)
    assert store.undo(saved.entry_id).kept == ()


def test_making_room_again_finds_nothing_to_do(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    (work / "f").write_bytes(noise(1))
    change(store, work / "f", b"")
    store.gc(dry_run=False)
    report = store.gc(dry_run=False)
    assert (report.blobs, report.entries, report.bytes_before) == (0, (), report.bytes_after)


def test_many_small_changes_in_a_large_workspace_fit_a_small_quota(tmp_path, work):
    for number in range(2000):
        (work / f"file-{number}").write_text(f"{number}")
    store = UndoStore(tmp_path / "undo", quota_bytes=400_000)
    taken: list[int] = []
    for turn in range(30):
        saved = store.save(everything(work), f"turn {turn}")
        assert (saved.notices, saved.unprotected) == ((), ())
        (work / "file-7").write_text(f"turn {turn}")
        store.finish(saved.entry_id)
        taken.append(store.used_bytes)
    assert len(store.entries()) == 30
    assert max(after - before for before, after in pairwise(taken)) < 1000
    assert store.used_bytes == sum(file.stat().st_size for file in (tmp_path / "undo/blobs").rglob("*/*"))
    for entry in reversed(store.entries()):
        assert store.undo(entry.id).kept == ()
    assert (work / "file-7").read_text() == "7"


def test_calls_at_the_same_time_share_a_list_of_what_was_there(tmp_path, work):
    (work / "f").write_text("old")
    (work / "g").write_text("old")
    store = UndoStore(tmp_path / "undo")
    first, second = store.save(everything(work), "first"), store.save(everything(work), "second")
    (work / "f").write_text("new")
    store.finish(first.entry_id)
    (work / "g").write_text("new")
    store.finish(second.entry_id)
    assert store.undo(first.entry_id).kept == ()
    assert (work / "f").read_text() == "old"


def test_the_oldest_entries_make_room_and_that_is_said(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=100_000)
    (work / "kept").write_bytes(noise(1))
    notices: list[str] = []
    for letter in range(20):
        (work / "f").write_bytes(noise(letter))
        saved = store.save(everything(work), f"turn {letter}")
        assert saved.unprotected == ()
        notices += saved.notices
        (work / "f").unlink()
        last = store.finish(saved.entry_id)
    assert notices
    assert all(re.fullmatch(NOTICE, notice) for notice in notices), notices
    assert 0 < len(store.entries()) < 20
    assert store.used_bytes <= 100_000
    assert store.undo(last.id).kept == ()
    assert (work / "f").read_bytes()[0] == 19


NOTICE = (
    r"The (oldest undo entry was|\d+ oldest undo entries were) removed \(up to [-\d]+ [:\d]+\), "
    r"because the undo store was full\."
)


def test_nothing_goes_for_a_call_that_would_not_fit_anyway(tmp_path, work):
    store = UndoStore(tmp_path / "undo", quota_bytes=100_000)
    (work / "f").write_bytes(noise(1))
    kept = change(store, work / "f", b"")
    (work / "large").write_bytes(os.urandom(200_000))
    saved = store.save(everything(work), "call")
    assert (saved.entry_id, saved.notices) == (None, ())
    assert [each.code for each in saved.unprotected] == ["quota"]
    assert [entry.id for entry in store.entries()] == [kept]


def test_entries_that_are_old_go_and_that_is_said(tmp_path, work):
    clock = [1_000_000.0]
    ports = msgspec.structs.replace(REAL_WORLD, now=lambda: clock[0])
    store = UndoStore(tmp_path / "undo", max_age_days=30, ports=ports)
    (work / "f").write_bytes(noise(1))
    first = change(store, work / "f", noise(2))
    clock[0] += 20 * 86_400
    second = change(store, work / "f", noise(3))
    clock[0] += 20 * 86_400
    saved = store.save(everything(work), "call")
    [notice] = saved.notices
    assert notice.endswith("because they were older than 30 days.")
    left = [entry.id for entry in store.entries()]
    assert first not in left
    assert second in left
    assert store.save(everything(work), "call").notices == ()


# --- several at once -----------------------------------------------------------------------------------


def test_threads_share_a_store(tmp_path, work):
    store = UndoStore(tmp_path / "undo")
    entries: dict[int, str] = {}

    def use(number: int) -> None:
        path = work / str(number)
        path.write_text("old")
        entries[number] = change(store, path, b"new")

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, entry in entries.items():
        assert store.undo(entry).kept == ()
        assert (work / str(number)).read_text() == "old"


def test_processes_share_a_store_also_while_room_is_made(tmp_path, work):
    script = """
import sys
from pathlib import Path
from robota.tools.undo.plan import Plan
from robota.tools.undo.snapshot import cover
from robota.tools.undo.store import UndoStore
base, work, number = sys.argv[1:]
store, path = UndoStore(base), Path(work, number)
for turn in range(10):
    path.write_text(f"old {number} {turn}")
    saved = store.save(Plan(cover([str(path)])), number)
    path.write_text("new")
    store.finish(saved.entry_id)
    if turn % 3 == 0:
        store.gc(dry_run=False)
print(saved.entry_id)
"""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "undo"), str(work), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    last = [child.communicate()[0].strip() for child in children]
    store = UndoStore(tmp_path / "undo")
    assert len(store.entries()) == 30
    for number, entry in enumerate(last):
        store.undo(entry)
        assert (work / str(number)).read_text() == f"old {number} 9"


def test_a_call_of_another_process_that_runs_cannot_be_undone(tmp_path, work):
    script = """
import sys
from robota.tools.undo.plan import Plan
from robota.tools.undo.snapshot import cover
from robota.tools.undo.store import UndoStore
print(UndoStore(sys.argv[1]).save(Plan(cover([sys.argv[2]])), "long call").entry_id, flush=True)
sys.stdin.read()
"""
    (work / "f").write_text("x")
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "undo"), str(work / "f")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        entry = child.stdout.readline().strip()
        store = UndoStore(tmp_path / "undo")
        with pytest.raises(StorageError, match="“long call” is still running"):
            store.undo(entry)
        child.communicate("")
    assert store.undo(entry).kept == ()


def test_a_call_costs_the_same_however_many_were_saved_before(tmp_path, work):
    store, path = UndoStore(tmp_path / "undo"), work / "f"
    path.write_bytes(b"x")

    def count() -> int:
        steps = 0

        def note(*_: object) -> None:
            nonlocal steps
            steps += 1

        sys.setprofile(note)
        try:
            change(store, path, b"new")
        finally:
            sys.setprofile(None)
        return steps

    change(store, path, b"first")
    early = count()
    for number in range(60):
        change(store, path, bytes([number]))

    assert count() < early + 60  # not one step for each of those saved before
    assert len(store.entries()) == 63
    assert store.used_bytes == UndoStore(tmp_path / "undo").used_bytes
