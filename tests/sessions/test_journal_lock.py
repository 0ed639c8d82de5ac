from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.faulty_files import FaultyFiles
from tests.support.journal_files import JournalFile

from robota.core.jsontext import decode
from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import SessionLockedError

USER = b'"event":"user"}'
HOLD = """
import sys
from tests.support.journal_files import JournalFile
journal = JournalFile(sys.argv[1], "s1")
journal.append(b'"event":"user"}')
print("open", flush=True)
sys.stdin.read()
journal.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s1.jsonl")


@pytest.fixture
def other_process(path: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def count(path: str) -> int:
    return sum(isinstance(item, Line) for item in read_lines(path))


def test_a_second_process_is_told_who_has_the_session(
    path: str, other_process: subprocess.Popen[str]
) -> None:
    with pytest.raises(SessionLockedError) as refusal:
        JournalFile(path, "s1").append(USER)

    host = os.uname().nodename
    assert str(refusal.value).startswith(
        f"Session s1 is open in process {other_process.pid} on {host} since 20"
    )
    assert str(refusal.value).endswith(
        "Z: close it there, or fork it (--fork-session, or fork_session=True)."
    )
    assert (refusal.value.pid, refusal.value.host) == (other_process.pid, host)
    assert count(path) == 1


def test_the_session_is_free_when_the_other_process_closes_it(
    path: str, other_process: subprocess.Popen[str]
) -> None:
    other_process.communicate()

    journal = JournalFile(path, "s1")

    assert journal.append(USER) == 2
    journal.close()


def test_the_session_is_free_at_once_when_its_holder_is_killed(
    path: str, other_process: subprocess.Popen[str]
) -> None:
    other_process.kill()
    other_process.wait()
    lock = Path(path).with_name("s1.lock")
    assert decode(lock.read_bytes())["pid"] == other_process.pid

    journal = JournalFile(path, "s1")

    assert journal.append(USER) == 2
    assert decode(lock.read_bytes())["pid"] == os.getpid()
    journal.close()
    assert not lock.exists()


def test_a_second_object_of_the_same_process_is_refused_too(path: str) -> None:
    first = JournalFile(path, "s1")
    first.open()

    with pytest.raises(SessionLockedError, match=f"open in process {os.getpid()}"):
        JournalFile(path, "s1").open()

    first.close()
    second = JournalFile(path, "s1")
    second.open()
    second.close()


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_not_trusted(tmp_path: Path, path: str) -> None:
    class Racing(FaultyFiles):
        raced = False

        def lock(self, fd: int) -> bool:
            if not self.raced:
                self.raced = True
                os.unlink(tmp_path / "s1.lock")
            return super().lock(fd)

    first = JournalFile(path, "s1", files=Racing(str(tmp_path)))
    first.open()

    with pytest.raises(SessionLockedError):
        JournalFile(path, "s1").open()
    first.close()


def test_a_lock_file_without_content_still_refuses(tmp_path: Path, path: str) -> None:
    first = JournalFile(path, "s1")
    first.open()
    (tmp_path / "s1.lock").write_bytes(b"")

    with pytest.raises(
        SessionLockedError, match="Session s1 is open in another process: close it there, or fork"
    ):
        JournalFile(path, "s1").open()
    first.close()


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_said_once_and_written_all_the_same(
    tmp_path: Path, path: str, error: int
) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, error=error, only=("lock",))
    journal = JournalFile(path, "s1", files=files)
    told: list[str] = []
    journal.on_trouble = told.append

    journal.append(USER)
    journal.append(USER)

    assert journal.sync()
    assert (count(path), journal.unsaved, journal.trouble) == (2, 0, told[0])
    assert len(told) == 1
    assert "has no locks" in told[0]
    journal.close()


def test_without_locks_a_failed_write_never_cuts_off_what_others_wrote(tmp_path: Path, path: str) -> None:
    class Shared(FaultyFiles):
        half = True

        def lock(self, fd: int) -> bool:
            raise OSError(errno.ENOLCK, "no locks")

        def write(self, fd: int, data: bytes) -> int:
            if self.half and data.startswith(b'{"crc"'):
                self.half = False
                taken = super().write(fd, data[:20])
                with open(path, "ab") as file:
                    file.write(b"\n" + foreign)
                return taken
            return super().write(fd, data)

    journal = JournalFile(path, "s1")
    journal.append(USER)
    journal.close()
    foreign = Path(path).read_bytes().replace(b"s1", b"s9")
    shared = JournalFile(path, "s1", files=Shared(str(tmp_path)))

    shared.append(USER)
    shared.close()

    assert foreign in Path(path).read_bytes()
    assert count(path) == 2


def test_without_locks_a_failed_sync_writes_nothing_over_what_others_wrote(tmp_path: Path, path: str) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, error=errno.ENOLCK, lasting=True, only=("lock",))
    journal = JournalFile(path, "s1", files=files)
    journal.open()
    Path(path).write_bytes(b"a line of another process\n")
    journal.append(USER)
    content = Path(path).read_bytes()
    files.only = ("sync",)

    assert not journal.sync()
    assert Path(path).read_bytes() == content

    files.heal()
    assert journal.sync()
    assert "has no locks" in journal.trouble
    journal.close()


def test_a_holder_whose_lock_file_was_removed_does_not_remove_its_successors(
    tmp_path: Path, path: str
) -> None:
    first = JournalFile(path, "s1")
    first.open()
    (tmp_path / "s1.lock").unlink()
    second = JournalFile(path, "s1")
    second.open()

    first.close()

    with pytest.raises(SessionLockedError):
        JournalFile(path, "s1").open()
    second.close()


def test_a_forked_child_does_not_write_what_its_parent_could_not(tmp_path: Path, path: str) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=1, lasting=True, only=("write",))
    journal = JournalFile(path, "s1", files=files)
    journal.append(USER)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            journal.append(USER)
        except SessionLockedError:
            status = journal.unsaved
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)

    assert status == 0
    files.heal()
    journal.close()
    assert count(path) == 1


def test_a_forked_child_neither_writes_nor_frees_the_session(path: str) -> None:
    journal = JournalFile(path, "s1")
    journal.append(USER)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            journal.append(USER)
        except SessionLockedError:
            journal.close()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)

    assert status == 0
    with pytest.raises(SessionLockedError):
        JournalFile(path, "s1").open()
    assert journal.append(USER) == 2
    journal.close()
    assert count(path) == 2


def test_a_forked_child_does_not_keep_the_session_locked_after_its_parent(path: str) -> None:
    journal = JournalFile(path, "s1")
    journal.append(USER)
    reader, writer = os.pipe()
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        os.close(begins)  # it has let go of the journal, which happens before anything else
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    os.close(begins)
    os.read(begun, 1)
    del journal
    gc.collect()

    again = JournalFile(path, "s1")
    again.open()

    lock = Path(path).with_name("s1.lock")
    assert decode(lock.read_bytes())["pid"] == os.getpid()
    again.close()
    os.close(writer)
    os.close(begun)
    os.waitpid(child, 0)


def test_programs_started_meanwhile_do_not_inherit_the_lock(path: str) -> None:
    journal = JournalFile(path, "s1")
    journal.open()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
    ) as process:
        journal.close()
        again = JournalFile(path, "s1")
        again.open()
        again.close()
        assert process.stdin is not None
        process.stdin.write(b"\n")


def test_a_session_that_nobody_closed_is_free_when_it_is_forgotten(path: str) -> None:
    journal = JournalFile(path, "s1")
    journal.append(USER)
    del journal
    gc.collect()

    again = JournalFile(path, "s1")

    assert again.append(USER) == 2
    again.close()


def test_a_system_without_fcntl_locks_with_the_portable_library(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import filelock

    assert filelock.FileLock
    monkeypatch.setitem(sys.modules, "fcntl", None)
    first = JournalFile(path, "s1")
    assert first.append(USER) == 1

    with pytest.raises(SessionLockedError, match="Session s1 is open in another process"):
        JournalFile(path, "s1").append(USER)

    first.close()
    second = JournalFile(path, "s1")
    assert second.append(USER) == 2
    second.close()
    assert count(path) == 2
