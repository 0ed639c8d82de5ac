from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.journal_files import JournalFile

from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalProblem

pytestmark = pytest.mark.system


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def remount(place: Path, option: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(place)], check=True)


def read(path: Path) -> tuple[list[int], list[str]]:
    items = list(read_lines(str(path)))
    problems = [item.message for item in items if isinstance(item, JournalProblem)]
    return [item.seq for item in items if isinstance(item, Line)], problems


def test_a_disk_that_fills_up_loses_nothing_once_there_is_space_again(tiny_disk: Path) -> None:
    path = tiny_disk / "sessions" / "s1.jsonl"
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(40_000))
    journal = JournalFile(str(path), "s1")
    told: list[str] = []
    journal.on_trouble = told.append

    for _ in range(20):
        journal.append(b'"event":"message","text":"%b"}' % (b"x" * 3000))
    assert journal.unsaved > 5
    assert not journal.sync()
    numbers, problems = read(path)
    assert (numbers, problems) == (list(range(1, 21 - journal.unsaved)), [])
    with pytest.raises(OSError, match="No space left"):
        PayloadStore(str(path.parent), "s1").put(b'"%b"' % (b"x" * 40_000))

    ballast.unlink()
    remount(tiny_disk, "size=256k")
    assert journal.sync()
    journal.close()
    assert read(path) == (list(range(1, 21)), [])
    assert [sentence.split(": ")[1].split(".")[0] if sentence else "" for sentence in told] == [
        "the disk is full",
        "",
    ]


def test_a_disk_that_becomes_read_only_keeps_the_session_in_memory(tiny_disk: Path) -> None:
    path = tiny_disk / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    journal.append(b'"event":"user"}')
    journal.close()
    remount(tiny_disk, "ro")

    assert journal.append(b'"event":"user"}') == 2
    assert "cannot be opened: the file system is read-only" in journal.trouble
    assert (journal.unsaved, read(path)) == (1, ([1], []))

    remount(tiny_disk, "rw")
    assert journal.sync()
    assert (journal.trouble, read(path)) == ("", ([1, 2], []))
    journal.close()
