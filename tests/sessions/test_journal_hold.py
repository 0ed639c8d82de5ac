from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.journal_files import JournalFile

from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.reader import read_lines


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{tmp_path}/s1.jsonl"


@pytest.fixture
def journal(path: str) -> Iterator[JournalFile]:
    journal = JournalFile(path, "s1")
    journal.append(body("first"))
    yield journal
    journal.close()


def body(event: str) -> bytes:
    return b'"event":"%s"}' % event.encode()


def events(path: str) -> list[tuple[int, str]]:
    return [(record.seq, record.event) for record in read_lines(path) if isinstance(record, Line)]


def test_a_held_record_is_written_with_the_next_one_and_before_it(path: str, journal: JournalFile) -> None:
    journal.hold(body("held"))
    journal.hold(body("held too"))
    before = events(path)
    number = journal.append(body("next"))

    assert before == [(1, "first")]
    assert events(path) == [(1, "first"), (2, "held"), (3, "held too"), (4, "next")]
    assert number == 4


@pytest.mark.parametrize("end", ["release", "sync", "close"])
def test_a_held_record_is_written_when_nothing_follows(path: str, journal: JournalFile, end: str) -> None:
    journal.hold(body("held"))
    getattr(journal, end)()

    assert events(path) == [(1, "first"), (2, "held")]


def test_the_first_record_is_never_held(path: str) -> None:
    journal = JournalFile(path, "s1")
    journal.hold(body("held"))

    assert events(path) == [(1, "held")]
    journal.close()


@pytest.mark.parametrize("fault", ["error", "short"])
def test_records_that_the_disk_refuses_together_are_kept_one_by_one_and_written_later(
    tmp_path: Path, path: str, fault: Literal["error", "short"]
) -> None:
    files = FaultyFiles(
        str(tmp_path), fail_at=2, fault=fault, error=errno.ENOSPC, lasting=True, only=("write",)
    )
    journal = JournalFile(path, "s1", files=files)
    journal.append(body("first"))
    journal.hold(body("held"))
    number = journal.append(body("next"))
    kept = journal.unsaved
    files.heal()
    journal.close()

    assert (number, kept) == (3, 2)
    assert events(path) == [(1, "first"), (2, "held"), (3, "next")]
    assert os.path.getsize(path) == journal.bytes_written
