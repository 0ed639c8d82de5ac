from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles, SimulatedCrash

from robota.sessions.files import Files, write_durably


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir()}


def states_after_crash(root: Path, files: FaultyFiles) -> set[bytes | None]:
    """What `file` may hold after a power cut; None when it may be missing."""
    found = set()
    for seed in range(200):
        files.after_crash(seed)
        found.add(contents(root).get("file"))
    return found


def create(files: Files, root: Path, content: bytes) -> int:
    fd = files.create(str(root / "file"))
    files.write(fd, content)
    return fd


def test_exactly_the_chosen_operation_fails(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=1, error=errno.ENOSPC)
    fd = files.create(str(tmp_path / "file"))

    with pytest.raises(OSError, match="No space left on device"):
        files.write(fd, b"data")

    assert (files.write(fd, b"data"), files.fired, files.operations) == (4, True, 3)
    files.close(fd)
    assert contents(tmp_path) == {"file": b"data"}


def test_a_short_write_takes_half(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, fault="short")

    files.close(create(files, tmp_path, b"123456"))

    assert contents(tmp_path) == {"file": b"123"}


def test_a_lasting_fault_ends_when_the_disk_is_healed(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, lasting=True, only=("write",))
    fd = files.create(str(tmp_path / "file"))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            files.write(fd, b"data")

    files.heal()

    assert files.write(fd, b"data") == 4
    files.close(fd)


def test_after_a_crash_nothing_works_any_more(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=1, fault="crash")
    fd = files.create(str(tmp_path / "file"))

    for _ in range(2):
        with pytest.raises(SimulatedCrash):
            files.write(fd, b"data")

    files.close(fd)


def test_what_was_not_synced_may_be_lost_cut_or_zero(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    fd = create(files, tmp_path, b"ab")
    files.sync(fd)
    files.sync_directory(str(tmp_path))
    files.write(fd, b"cd")

    found = states_after_crash(tmp_path, files)

    assert {b"ab", b"abc", b"abcd", b"abc\0", b"ab\0\0"} == found


def test_a_name_is_safe_only_after_its_directory_was_synced(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path))
    fd = create(files, tmp_path, b"ab")
    files.sync(fd)
    assert states_after_crash(tmp_path, files) == {None, b"ab"}


def test_a_replaced_file_is_old_or_new_until_the_directory_was_synced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    files = FaultyFiles(str(tmp_path), fail_at=5, fault="crash")
    with pytest.raises(SimulatedCrash):
        write_durably(files, str(tmp_path / "file"), b"new")

    assert states_after_crash(tmp_path, files) == {b"old", b"new"}


def test_a_failed_sync_makes_nothing_safe_not_even_for_the_next_one(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, only=("sync",))
    fd = create(files, tmp_path, b"ab")
    with pytest.raises(OSError, match="Input/output error"):
        files.sync(fd)
    files.write(fd, b"cd")
    files.sync(fd)
    files.sync_directory(str(tmp_path))

    assert states_after_crash(tmp_path, files) == {b"\0\0cd"}
