"""Every file operation of a journal fails once, in every way: SQLite's method."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.faulty_files import Fault, FaultyFiles, SimulatedCrash
from tests.support.forms import some_of
from tests.support.journal_files import JournalFile

from robota.core.jsontext import decode, encode
from robota.sessions.files import Files
from robota.sessions.journal.file.line import Line
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalProblem

ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR)
SEEDS = 6
TORN = b'{"crc":"00000000","v":1,"seq":25,"timest'


class Work:
    """Two sittings of one session: records 0 to 11 and 12 to 23, a large value in every fourth."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "sessions"
        self.path = str(self.directory / "s1.jsonl")
        self.appended = 0
        self.safe = 0
        self.unsaved = 0
        self.told: list[str] = []

    def do(self, files: Files, pause: Callable[[], None] = lambda: None) -> None:
        for _ in range(2):
            journal = JournalFile(self.path, "s1", files=files, now=lambda: 1_800_000_000.0)
            journal.on_trouble = self.told.append
            payloads = PayloadStore(str(self.directory), "s1", files=files)
            journal.open()
            for _ in range(12):
                self.append(journal, payloads)
            pause()
            journal.close()
            self.unsaved += journal.unsaved

    def append(self, journal: JournalFile, payloads: PayloadStore) -> None:
        number = self.appended
        value = encode("x" * 40)
        if number % 4 == 3:
            value = encode(f"{number:05}" * 8_000)
            try:
                value = payloads.put(value)
            except OSError:
                assert len(value) == 40_002  # stays in the line
        self.appended += 1
        journal.append(b'"event":"user","n":%d,"value":%b}' % (number, value))
        if number % 3 == 2 and journal.sync():
            self.safe = self.appended

    def found(self) -> list[int]:
        """The numbers in the journal, their large values followed and compared."""
        payloads = PayloadStore(str(self.directory), "s1")
        numbers = []
        for item in read_lines(self.path, session_id="s1"):
            if isinstance(item, Line):
                fields = payloads.resolve(item.fields())
                number = fields["n"]
                assert fields["value"] == (f"{number:05}" * 8_000 if number % 4 == 3 else "x" * 40)
                numbers.append(number)
        return numbers

    def problems(self) -> list[str]:
        return [item.message for item in read_lines(self.path) if isinstance(item, JournalProblem)]

    def tear(self) -> None:
        """Its last record was being written when the power went."""
        self.do(FaultyFiles(str(self.directory.parent)))
        with open(self.path, "ab") as file:
            file.write(TORN)
        self.safe = self.appended

    def begin_with(self, torn: Work) -> None:
        shutil.copytree(torn.directory, self.directory)
        self.appended = self.safe = torn.safe

    def keeps_torn_bytes(self) -> bool:
        return any(TORN in path.read_bytes() for path in self.directory.glob("s1.jsonl*"))


@pytest.fixture(params=[False, True], ids=["new", "torn"])
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> Work | None:
    """What there was before, if anything."""
    if not request.param:
        return None
    work = Work(tmp_path / "before")
    work.tear()
    return work


def begin(root: Path, torn: Work | None) -> Work:
    root.mkdir()
    work = Work(root)
    if torn is not None:
        work.begin_with(torn)
    return work


def run_until_nothing_fails(tmp_path: Path, fault: Fault, error: int, torn: Work | None) -> int:
    for fail_at in range(10_000):
        root = tmp_path / str(fail_at)
        work = begin(root, torn)
        files = FaultyFiles(str(root), fail_at=fail_at, fault=fault, error=error)
        work.do(files)
        assert work.unsaved == 0
        assert work.found() == list(range(work.appended)), f"operation {fail_at}: {work.problems()}"
        assert work.problems() == []
        assert [word for word in work.told if word == ""] == [""] * (len(work.told) // 2)
        if not files.fired:
            return fail_at
    raise AssertionError("the faults never end")


@pytest.mark.parametrize("error", ERRORS, ids=lambda code: errno.errorcode[code])
def test_no_record_is_missing_whichever_operation_fails(
    tmp_path: Path, error: int, torn: Work | None, capsys: pytest.CaptureFixture[str]
) -> None:
    count = run_until_nothing_fails(tmp_path, "error", error, torn)

    assert count > 50
    with capsys.disabled():
        print(f"\n{count} operations failed once with {errno.errorcode[error]}, nothing lost")


def test_no_record_is_missing_whichever_write_is_short(tmp_path: Path, torn: Work | None) -> None:
    assert run_until_nothing_fails(tmp_path, "short", 0, torn) > 25


def test_what_was_safe_survives_a_power_cut_at_every_operation(
    tmp_path: Path, torn: Work | None, capsys: pytest.CaptureFixture[str]
) -> None:
    points = states = 0
    while True:
        root = tmp_path / str(points)
        work = begin(root, torn)
        files = FaultyFiles(str(root), fail_at=points, fault="crash")
        try:
            work.do(files)
        except SimulatedCrash:
            points += 1
        for seed in some_of(range(SEEDS)):
            files.after_crash(seed)
            check_after_crash(work, f"operation {points - 1}, seed {seed}")
            assert not torn or work.keeps_torn_bytes()
            states += 1
        if not files.fired:
            break
    assert points > 50
    with capsys.disabled():
        print(f"\n{points} power cuts, {states} states of the disk, nothing safe was lost")


def check_after_crash(work: Work, where: str) -> None:
    """Every safe record is there, and the session goes on behind whatever else survived."""
    before = work.found() if Path(work.path).exists() else []
    assert before[: work.safe] == list(range(work.safe)), f"{where}: {before}"
    journal = JournalFile(work.path, "s1", files=FaultyFiles(str(work.directory.parent)))
    journal.open()
    seq = journal.append(b'"event":"user","n":99,"value":"' + b"x" * 40 + b'"}')
    journal.close()
    records = [item for item in read_lines(work.path) if isinstance(item, Line)]
    assert (journal.trouble, journal.unsaved) == ("", 0), where
    assert [record.fields()["n"] for record in records] == [*before, 99], where
    numbers = [record.seq for record in records]
    assert numbers == sorted(set(numbers)), where
    assert numbers[-1] == seq


@pytest.mark.parametrize("error", ERRORS, ids=lambda code: errno.errorcode[code])
def test_a_disk_that_refuses_for_a_while_gets_everything_in_order_later(tmp_path: Path, error: int) -> None:
    refused = (
        "make_directory",
        "open_append",
        "create",
        "write",
        "truncate",
        "sync",
        "sync_directory",
        "replace",
    )
    for fail_at in range(0, 200, 7):
        root = tmp_path / str(fail_at)
        root.mkdir()
        work = Work(root)
        files = FaultyFiles(str(root), fail_at=fail_at, error=error, lasting=True, only=refused)
        work.do(files, pause=files.heal)
        assert work.unsaved == 0
        assert work.found() == list(range(24))
        assert len(work.told) <= 8  # a few kinds of trouble, not one per record
        if not files.fired:
            return
    raise AssertionError("the faults never end")


def test_a_failed_sync_writes_everything_again_because_the_next_one_would_lie(tmp_path: Path) -> None:
    path = str(tmp_path / "s1.jsonl")
    files = FaultyFiles(str(tmp_path), fail_at=0, only=("sync",))
    journal = JournalFile(path, "s1", files=files)
    journal.append(b'"event":"user"}')

    assert journal.sync()
    assert files.fired
    files.after_crash()

    assert [decode(line)["event"] for line in Path(path).read_bytes().splitlines()] == ["user"]


@pytest.mark.parametrize("length", [10, 9_000_000])
def test_what_is_written_again_comes_from_memory_as_far_as_it_is_kept(tmp_path: Path, length: int) -> None:
    class Evicting(FaultyFiles):
        def sync(self, fd: int) -> None:
            if self.fired or self.fail_at is None:
                return super().sync(fd)
            self.fired = True
            newest = Path(path).read_bytes().rindex(b"{")
            with open(path, "r+b") as file:  # the kernel gave the pages up, and the disk has nothing there
                file.seek(newest)
                file.write(bytes(100))
            raise OSError(errno.EIO, "lost")

    path = str(tmp_path / "s1.jsonl")
    journal = JournalFile(path, "s1", files=Evicting(str(tmp_path), fail_at=10_000))
    journal.append(b'"event":"user","text":"%b"}' % (b"x" * length))
    journal.append(b'"event":"user","text":""}')

    assert journal.sync()
    journal.close()

    assert [item.seq for item in read_lines(path) if isinstance(item, Line)] == [1, 2]


def test_a_sync_that_keeps_failing_is_never_called_safe(tmp_path: Path) -> None:
    files = FaultyFiles(str(tmp_path), fail_at=0, lasting=True, only=("sync",))
    journal = JournalFile(str(tmp_path / "s1.jsonl"), "s1", files=files)
    told: list[str] = []
    journal.on_trouble = told.append
    journal.append(b'"event":"user"}')

    assert [journal.sync(), journal.sync()] == [False, False]
    assert (journal.synced_seq, journal.unsaved, len(told)) == (0, 0, 1)
    assert "cannot be made safe on the disk: the disk reports an error" in journal.trouble

    files.heal()
    assert journal.sync()
    assert (journal.synced_seq, journal.trouble, told[1:]) == (1, "", [""])
    journal.close()
