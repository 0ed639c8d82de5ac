from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.journal_files import JournalFile

from robota.core.errors import StorageError
from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalError, JournalProblem

USER = b'"event":"user"}'


def write_records(path: Path, count: int = 3) -> bytes:
    journal = JournalFile(str(path), "s1")
    for _ in range(count):
        journal.append(USER)
    journal.close()
    return path.read_bytes()


def numbers(path: Path) -> list[int]:
    return [item.seq for item in read_lines(str(path)) if isinstance(item, Line)]


def problems(path: Path) -> list[str]:
    return [item.kind for item in read_lines(str(path)) if isinstance(item, JournalProblem)]


def test_nothing_is_touched_before_the_first_record(tmp_path: Path) -> None:
    journal = JournalFile(str(tmp_path / "home" / "s1.jsonl"), "s1")

    assert journal.sync()
    journal.close()
    assert os.listdir(tmp_path) == []


def test_records_are_numbered_on_over_sittings(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write_records(path)
    journal = JournalFile(str(path), "s1")

    journal.open()
    assert journal.seq == 3
    assert [journal.append(USER), journal.append(USER)] == [4, 5]
    assert (journal.sync(), journal.synced_seq) == (True, 5)
    journal.close()

    assert numbers(path) == [1, 2, 3, 4, 5]
    assert (journal.bytes_written, journal.unsaved, journal.trouble) == (path.stat().st_size * 2 // 5, 0, "")


def test_a_record_can_be_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    for count in (1, 2, 3):
        journal.append(USER)
        assert numbers(path) == list(range(1, count + 1))
    journal.close()


def test_a_newline_between_tokens_does_not_break_the_line(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    journal.append(b'"event":"stream",\n"native":{\n"a":1}}')
    journal.close()

    (record,) = read_lines(str(path))

    assert isinstance(record, Line)
    assert record.fields()["native"] == {"a": 1}


def test_the_time_of_a_record_follows_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    times = iter([0.0, 0.001, 0.0019, 59.9994, 60.0, 1_800_000_000.5, 1.0])
    journal = JournalFile(str(path), "s1", now=lambda: next(times))
    journal.open()
    for _ in range(6):
        journal.append(USER)
    journal.close()

    records = [item for item in read_lines(str(path)) if isinstance(item, Line)]

    assert [record.fields()["timestamp"] for record in records] == [
        "1970-01-01T00:00:00.001Z",
        "1970-01-01T00:00:00.001Z",
        "1970-01-01T00:00:59.999Z",
        "1970-01-01T00:01:00.000Z",
        "2027-01-15T08:00:00.500Z",
        "1970-01-01T00:00:01.000Z",
    ]


def test_files_are_private_whatever_the_umask_says(tmp_path: Path) -> None:
    directory = tmp_path / "home" / "sessions"
    old = os.umask(0)
    try:
        journal = JournalFile(str(directory / "s1.jsonl"), "s1")
        journal.append(USER)
    finally:
        os.umask(old)

    modes = {path.name: path.stat().st_mode & 0o777 for path in directory.iterdir()}
    assert modes == {"s1.jsonl": 0o600, "s1.lock": 0o600}
    assert directory.stat().st_mode & 0o777 == 0o700
    journal.close()


def test_a_torn_end_is_set_aside_and_the_next_record_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    whole = write_records(path)
    start = whole.rindex(b"{")

    for cut in range(start + 1, len(whole) - 1):
        torn = whole[:cut]
        path.write_bytes(torn)
        write_records(path, 1)
        side = path.with_name("s1.jsonl.torn-1")
        assert side.read_bytes() == torn[start:]
        assert side.stat().st_mode & 0o777 == 0o600
        assert path.read_bytes().startswith(whole[:start])
        assert (numbers(path), problems(path)) == ([1, 2, 3], [])
        side.unlink()


def test_a_second_torn_end_gets_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write_records(path)
    for rubbish in (b'{"crc":"first', b"\0" * 300_000, b'{"crc":"third'):
        with open(path, "ab") as file:
            file.write(rubbish)
        write_records(path, 1)

    assert [path.with_name(f"s1.jsonl.torn-{number}").read_bytes() for number in (1, 2, 3)] == [
        b'{"crc":"first',
        b"\0" * 300_000,
        b'{"crc":"third',
    ]
    assert (numbers(path), problems(path)) == ([1, 2, 3, 4, 5, 6], [])


def test_a_last_record_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_bytes(write_records(path)[:-1])
    write_records(path, 1)

    assert (numbers(path), problems(path)) == ([1, 2, 3, 4], [])
    assert not list(tmp_path.glob("*torn*"))


def test_a_whole_record_in_a_torn_end_is_not_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    whole = write_records(path)
    path.write_bytes(whole[:-1] + b'{"crc":"12345678","v":1,"seq":4,"times')
    write_records(path, 1)

    assert (numbers(path), problems(path)) == ([1, 2, 3, 5], ["spliced", "gap"])


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda lines: [*lines[:-1], lines[-1].replace(b"user", b"lies")], 4),
        (lambda lines: [*lines[:-2], b"rubbish\n", b"\0\0\0rubbish\n"], 4),
        (lambda lines: [*lines[:-2], lines[-2].rstrip() + lines[-1]], 4),
        (lambda lines: [*lines[:-2], lines[-2].rstrip() + lines[-1][:70] + b"\n"], 4),
        (lambda lines: [lines[0], lines[2], lines[1]], 4),
        (lambda lines: [*lines, b"\0" * 200_000 + b"\n"], 4),
        (lambda lines: [*lines, b"x" * 3_000_000 + b"\n"], 5),
        (lambda lines: [*lines, b"x" * 20_000_000 + b"\n"], 5),
        (lambda lines: [b"rubbish\n", b"rubbish\n"], 3),
        (lambda lines: [*lines, lines[0].replace(b'"seq":1', b'"seq":900000000')], 4),
        (lambda lines: [b"\n", b" \n"], 1),
        (lambda lines: [*lines, b"\0" * 20_000_000], 4),
        (lambda lines: [b"rubbish\n", b"torn"], 2),
    ],
)
def test_a_number_is_never_given_twice_even_behind_damage(
    tmp_path: Path, damage: object, expected: int
) -> None:
    assert callable(damage)
    path = tmp_path / "s1.jsonl"
    lines = write_records(path).splitlines(keepends=True)
    damaged = b"".join(damage(lines))
    path.write_bytes(damaged)
    journal = JournalFile(str(path), "s1")

    assert journal.append(USER) == expected
    journal.close()

    assert path.read_bytes().startswith(damaged[: damaged.rindex(b"\n") + 1])
    assert numbers(path)[-1] == expected
    assert "repeated" not in problems(path)


def test_a_file_of_another_session_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s2.jsonl"
    content = write_records(path)
    journal = JournalFile(str(path), "s2")

    with pytest.raises(
        JournalError, match="is the journal of session s1, so session s2 does not write to it"
    ):
        journal.append(USER)

    assert (path.read_bytes(), journal.seq, journal.unsaved) == (content, 0, 0)
    assert not (tmp_path / "s2.lock").exists()


def test_a_few_records_of_another_session_at_the_end_do_not_change_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "s2.jsonl"
    foreign = write_records(tmp_path / "s1.jsonl", 1000)
    journal = JournalFile(str(path), "s2")
    journal.append(USER)
    journal.close()
    path.write_bytes(path.read_bytes() + foreign)

    journal.open()

    assert journal.seq >= 1
    journal.close()


def test_a_journal_of_a_newer_version_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write_records(path)
    with open(path, "ab") as file:
        file.write(b'{"crc":"00000000","v":2,"seq":4,"timestamp":"t","sessionId":"s1","event":"x"}\n')
    content = path.read_bytes()

    with pytest.raises(JournalError, match=r"by a newer robota .* can be read here but not continued"):
        JournalFile(str(path), "s1").open()

    assert path.read_bytes() == content
    assert isinstance(JournalError(""), StorageError)


def test_a_full_disk_keeps_the_session_in_memory_and_says_so_once(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    files = FaultyFiles(str(tmp_path), fail_at=2, error=errno.ENOSPC, lasting=True, only=("write",))
    journal = JournalFile(str(path), "s1", files=files)
    told: list[str] = []
    journal.on_trouble = told.append
    journal.append(USER)

    assert [journal.append(USER) for _ in range(3)] == [2, 3, 4]
    assert journal.sync() is False
    assert (journal.seq, journal.unsaved, numbers(path), problems(path)) == (4, 3, [1], [])
    assert told == [
        f"The journal {path} cannot be written: the disk is full. The session goes on in memory, and what is "
        "missing is written as soon as that works again. To help, free some space."
    ]
    assert journal.trouble == told[0]

    files.heal()
    assert journal.append(USER) == 5
    assert (journal.unsaved, numbers(path), problems(path)) == (0, [1, 2, 3, 4, 5], [])
    assert (told[1:], journal.trouble) == ([""], "")
    journal.close()


def test_trouble_with_syncing_is_not_over_when_writing_works_again(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, lasting=True, only=("sync",))
    journal = JournalFile(str(tmp_path / "s1.jsonl"), "s1", files=files)
    told: list[str] = []
    journal.on_trouble = told.append
    journal.append(USER)
    journal.sync()
    files.only = ("write",)
    journal.append(USER)
    files.only = ("sync",)
    journal.append(USER)

    assert (journal.unsaved, journal.synced_seq, len(told)) == (0, 0, 2)
    assert "" not in told

    files.heal()
    assert journal.sync()
    assert told[2:] == [""]
    journal.close()


def test_what_could_never_be_written_is_still_counted_after_closing(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=1, error=errno.EDQUOT, lasting=True, only=("write",))
    journal = JournalFile(str(tmp_path / "s1.jsonl"), "s1", files=files)
    journal.append(USER)
    journal.append(USER)

    journal.close()

    assert journal.unsaved == 2
    assert "the disk quota is used up" in journal.trouble


def test_a_torn_line_that_cannot_be_cut_back_is_cut_before_the_next_write(tmp_path: Path) -> None:
    class Stubborn(FaultyFiles):
        refuse = True
        half = True

        def write(self, fd: int, data: bytes) -> int:
            if self.half and data.startswith(b'{"crc"'):
                super().write(fd, data[:30])
                raise OSError(errno.EIO, "half of it")
            return super().write(fd, data)

        def truncate(self, fd: int, size: int) -> None:
            if self.refuse and size:
                raise OSError(errno.EIO, "no")
            super().truncate(fd, size)

    path = tmp_path / "s1.jsonl"
    write_records(path)
    files = Stubborn(str(tmp_path))
    journal = JournalFile(str(path), "s1", files=files)
    told: list[str] = []
    journal.on_trouble = told.append
    journal.append(USER)
    files.half = False
    journal.append(USER)
    assert (journal.unsaved, problems(path)) == (2, ["torn"])
    assert [sentence.split(":")[0].split(" cannot ")[1] for sentence in told] == [
        "be written",
        "be cut back to its last whole record",
    ]

    files.refuse = False
    assert journal.sync()

    assert (numbers(path), problems(path)) == ([1, 2, 3, 4, 5], [])
    journal.close()


@pytest.mark.parametrize("share", [0, 20, 10_000], ids=["before", "half", "after"])
def test_an_interrupt_in_the_middle_of_a_write_neither_tears_nor_repeats_a_record(
    tmp_path: Path, share: int
) -> None:
    class Interrupted(FaultyFiles):
        waiting = True

        def write(self, fd: int, data: bytes) -> int:
            if self.waiting and b'"seq":2' in data:
                self.waiting = False
                super().write(fd, data[:share])
                raise KeyboardInterrupt
            return super().write(fd, data)

    path = tmp_path / "s1.jsonl"
    files = Interrupted(str(tmp_path), fail_at=0, only=("sync",))
    journal = JournalFile(str(path), "s1", files=files)
    journal.append(USER)
    with pytest.raises(KeyboardInterrupt):
        journal.append(USER)

    assert journal.append(USER) == 3

    assert journal.sync()  # at the second attempt, after everything was written again
    files.after_crash()
    assert (numbers(path), problems(path)) == (([1, 2, 3], []) if share > 20 else ([1, 3], ["gap"]))


def test_a_journal_that_somebody_removes_is_never_called_safe(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    journal.append(USER)
    path.unlink()

    assert journal.sync() is False

    assert journal.synced_seq == 0
    assert journal.trouble == (
        f"The journal {path} cannot be made safe on the disk: its file was removed or replaced meanwhile. "
        "What was written since that last worked may still be lost. "
        "To help, fork the session to save it elsewhere."
    )
    journal.close()


@pytest.mark.parametrize("size", [0, 30, 250])
def test_a_journal_that_somebody_cuts_is_continued_on_a_fresh_line(tmp_path: Path, size: int) -> None:
    path = tmp_path / "s1.jsonl"
    files = FaultyFiles(str(tmp_path), fail_at=4, fault="short")
    journal = JournalFile(str(path), "s1", files=files)
    for _ in range(3):
        journal.append(USER)
    os.truncate(path, size)

    assert journal.append(USER) == 4
    journal.close()

    assert files.fired
    assert numbers(path)[-1] == 4
    assert b"\0" not in path.read_bytes()


def test_a_home_without_permission_keeps_the_session_in_memory(tmp_path: Path) -> None:
    # Simulated: to root, who may run the tests, nothing is forbidden.
    files = FaultyFiles(str(tmp_path), fail_at=0, error=errno.EACCES, lasting=True, only=("make_directory",))
    journal = JournalFile(str(tmp_path / "sessions" / "s1.jsonl"), "s1", files=files)

    assert journal.append(USER) == 1

    assert "cannot be opened: permission is missing" in journal.trouble


def test_a_home_that_is_no_directory_keeps_the_session_in_memory_until_it_is_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("")
    path = home / "sessions" / "s1.jsonl"
    journal = JournalFile(str(path), "s1")
    told: list[str] = []
    journal.on_trouble = told.append

    journal.open()
    assert [journal.append(USER), journal.append(USER)] == [1, 2]
    assert (journal.unsaved, len(told)) == (2, 1)
    assert f"The journal {path} cannot be opened" in journal.trouble

    home.unlink()
    assert journal.append(USER) == 3
    assert (numbers(path), told[1:]) == ([1, 2, 3], [""])
    journal.close()


def test_a_read_only_disk_still_tells_the_last_number(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write_records(path)
    files = FaultyFiles(str(tmp_path), fail_at=0, error=errno.EROFS, lasting=True, only=("open_append",))
    journal = JournalFile(str(path), "s1", files=files)

    assert journal.append(USER) == 4

    assert "the file system is read-only" in journal.trouble


def test_records_kept_while_the_file_could_not_be_seen_are_numbered_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    write_records(path)
    files = FaultyFiles(str(tmp_path), fail_at=0, lasting=True, only=("open_append", "open_read"))
    journal = JournalFile(str(path), "s1", files=files)
    journal.append(USER)
    files.heal()

    assert journal.append(USER) == 5

    assert numbers(path) == [1, 2, 3, 4, 5]
    journal.close()


GROW_TO_THE_LIMIT = """
import resource, signal, sys
from tests.support.journal_files import JournalFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
journal = JournalFile(sys.argv[1], "s1")
journal.on_trouble = lambda sentence: print(sentence or "well again")
for _ in range(40):
    journal.append(b'"event":"user"}')
print(journal.seq, journal.unsaved > 5, journal.sync())
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(journal.sync(), journal.unsaved)
journal.close()
"""


def test_a_real_limit_in_the_middle_of_a_line_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"

    # -B: what Python compiles below the limit would be cut there too, and taken for whole by the next process
    command = [sys.executable, "-B", "-c", GROW_TO_THE_LIMIT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    lines = done.stdout.splitlines()
    assert "cannot be written: the " in lines[0]
    assert lines[1:] == [*lines[1:-3], "40 True False", "well again", "True 0"]
    assert (numbers(path), problems(path)) == (list(range(1, 41)), [])


def test_what_others_could_look_into_is_made_private_and_told(tmp_path: Path) -> None:
    home = tmp_path / "sessions"
    home.mkdir(mode=0o755)
    path = home / "s1.jsonl"
    path.touch(mode=0o644)
    told: list[str] = []
    journal = JournalFile(str(path), "s1")
    journal.on_trouble = told.append
    journal.append(USER)
    journal.close()
    again = JournalFile(str(path), "s1")
    again.on_trouble = told.append
    again.open()
    again.close()

    assert told == [f"Other users could look into {home} and {path}; now only you can."]
    assert (journal.trouble, path.stat().st_mode & 0o777, home.stat().st_mode & 0o777) == ("", 0o600, 0o700)


def test_a_directory_that_is_shared_with_other_things_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "notes.txt").touch()
    sticky = tmp_path / "sticky"
    sticky.mkdir()
    told: list[str] = []
    for directory, mode in ((shared, 0o755), (sticky, 0o1777)):
        directory.chmod(mode)
        journal = JournalFile(str(directory / "s1.jsonl"), "s1")
        journal.on_trouble = told.append
        journal.append(USER)
        journal.close()
        assert directory.stat().st_mode & 0o7777 == mode
        assert (directory / "s1.jsonl").stat().st_mode & 0o777 == 0o600

    assert told == []
