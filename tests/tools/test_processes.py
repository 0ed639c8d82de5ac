from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import anyio
import pytest
from tests.support.processes import mark, read_fifo, running_with

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.tools.processes import FINISHED_LIMIT, LOG_LIMIT, Command, OutputLog, ProcessTable

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]


def sh(script: str, cwd: Path | None = None, timeout: float | None = None) -> Command:
    return Command(argv=["bash", "-c", script], cwd=None if cwd is None else str(cwd), timeout=timeout)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def test_a_foreground_process_needs_no_open_table() -> None:
    chunks: list[tuple[int, bytes]] = []
    result = await ProcessTable().run(
        sh("echo out; echo err >&2; exit 3"), lambda fd, data: chunks.append((fd, data))
    )
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert sorted(chunks) == [(1, b"out\n"), (2, b"err\n")]


async def test_a_background_process_is_listed_and_its_output_kept() -> None:
    async with ProcessTable() as table:
        process = await table.start(sh("echo out; echo err >&2"), title="greet", kind="bash")
        assert (process.id, process.title, table.processes) == ("bash_1", "greet", (process,))
        await process.wait()
        assert (process.status, process.result and process.result.exit_code) == ("exited", 0)
        assert sorted(process.log.read()[0].split()) == ["err", "out"]
        assert table.find("bash_1") is process
        assert table.running == ()


async def test_new_output_is_read_once(fifo: Path, tmp_path: Path) -> None:
    async with ProcessTable() as table:
        process = await table.start(sh("echo one; echo > fifo; cat fifo; echo two", tmp_path), title="")
        await read_fifo(fifo)
        while process.log.total < len("one\n"):  # the loop reads the pipe a moment after the write
            await anyio.lowlevel.checkpoint()
        text, process.position = process.read_new()
        assert text == "one\n"
        assert process.read_new()[0] == ""
        await anyio.to_thread.run_sync(fifo.write_text, "go\n")
        await process.wait()
        assert process.read_new()[0] == "go\ntwo\n"


async def test_stopping_ends_the_process_and_its_children(fifo: Path, tmp_path: Path, mark: str) -> None:
    async with ProcessTable() as table:
        process = await table.start(sh("trap '' TERM; sleep 1000 & echo > fifo; wait", tmp_path), title="")
        await read_fifo(fifo)
        await process.stop()
        assert running_with(mark) == []
        assert (process.status, process.result) == ("stopped", None)
        await process.stop()
        assert table.find("process_9") is None


async def test_closing_the_table_ends_everything(tmp_path: Path, mark: str) -> None:
    ended: list[str] = []
    async with ProcessTable() as table:
        for name in ("a", "b"):
            os.mkfifo(tmp_path / name)
            process = await table.start(
                sh(f"(setsid sleep 1000 &) ; echo > {name}; sleep 1000", tmp_path),
                title=name,
                on_end=lambda name=name: ended.append(name),  # type: ignore[misc]
            )
            await read_fifo(tmp_path / name)
            assert process.is_running
    assert running_with(mark) == []
    assert [process.status for process in table.processes] == ["stopped", "stopped"]
    assert sorted(ended) == ["a", "b"]


async def test_a_table_in_a_cancelled_scope_ends_everything_before_it_is_left(mark: str) -> None:
    with anyio.CancelScope() as scope:
        async with ProcessTable() as table:
            process = await table.start(sh("trap '' TERM; sleep 1000 & wait"), title="")
            scope.cancel()
    assert (process.status, running_with(mark)) == ("stopped", [])


async def test_a_task_that_is_cancelled_while_it_closes_a_table_leaves_nothing_running(
    fifo: Path, tmp_path: Path, mark: str
) -> None:
    closing = asyncio.Event()

    async def work() -> None:
        async with ProcessTable() as table:
            await table.start(
                sh("trap '' TERM; echo > fifo; sleep 1000 & wait; wait", tmp_path), title="stubborn"
            )
            await read_fifo(fifo)
            closing.set()

    task = asyncio.create_task(work())
    await closing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert running_with(mark) == []


def test_a_table_may_be_full_in_one_loop_after_another() -> None:
    table = ProcessTable(limit=2)

    async def run_many() -> set[int | None]:
        return {each.exit_code for each in await asyncio.gather(*(table.run(sh("true")) for _ in range(4)))}

    assert [asyncio.run(run_many()) for _ in range(2)] == [{0}, {0}]


async def test_a_closed_table_starts_nothing() -> None:
    ended: list[bool] = []
    table = ProcessTable()
    with pytest.raises(ToolExecutionError, match="not open"):
        await table.start(sh("true"), title="", on_end=lambda: ended.append(True))
    assert ended == [True]
    assert table.processes == ()


async def test_a_program_that_cannot_start_is_known_at_once() -> None:
    async with ProcessTable() as table:
        process = await table.start(Command(argv=["/no/such/program"]), title="")
        await process.wait()
        assert process.status == "failed"
        assert process.result is not None
        assert "No such file" in (process.result.error or "")


async def test_a_background_process_may_have_a_time_limit() -> None:
    async with ProcessTable() as table:
        process = await table.start(sh("sleep 1000", timeout=0.2), title="")
        await process.wait()
        assert process.result is not None
        assert process.result.timed_out


async def test_the_limit_keeps_one_place_for_the_foreground() -> None:
    async with ProcessTable(limit=3) as table:
        async with anyio.create_task_group() as group:  # at the same time: they must count each other
            for _ in range(2):
                group.start_soon(lambda: table.start(sh("sleep 1000"), title="sleeper"))
        with pytest.raises(ToolExecutionError, match=r"2 processes .* Stop one first: process_1 \(sleeper\)"):
            await table.start(sh("true"), title="")
        assert (await table.run(sh("echo free"))).stdout == "free\n"
        await table.processes[0].stop()
        assert (await table.start(sh("true"), title="")).id == "process_3"


async def test_more_foreground_processes_than_the_limit_wait_their_turn(tmp_path: Path) -> None:
    table = ProcessTable(limit=2)
    os.mkdir(tmp_path / "running")
    counts: list[int] = []

    async def run() -> None:
        script = "mkdir running/$$; ls running | wc -l; rmdir running/$$"
        counts.append(int((await table.run(sh(script, tmp_path))).stdout))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(run)
    assert len(counts) == 6
    assert max(counts) <= 2


async def test_processes_that_ended_are_forgotten_in_the_end() -> None:
    async with ProcessTable() as table:
        for _ in range(FINISHED_LIMIT + 2):
            process = await table.start(Command(argv=["/no/such/program"]), title="")
            await process.wait()
        assert len(table.processes) <= FINISHED_LIMIT + 1
        assert table.find("process_1") is None
        assert table.processes[-1].id == f"process_{FINISHED_LIMIT + 2}"


def test_a_table_without_room_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least two"):
        ProcessTable(limit=1)


async def test_a_cancelled_start_leaves_nothing_running(mark: str) -> None:
    async with ProcessTable() as table:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await table.start(sh("sleep 1000"), title="")
        for process in table.processes:
            await process.wait()
        assert running_with(mark) == []
        assert (await table.run(sh("echo on"))).stdout == "on\n"


async def test_a_flood_is_kept_at_both_ends() -> None:
    flood = "import sys; sys.stdout.write('first' + 'x' * 2**20 + 'last')"
    async with ProcessTable(log_limit=1000) as table:
        process = await table.start(Command(argv=[sys.executable, "-c", flood]), title="")
        await process.wait()
        text, position = process.read_new()
    assert text.startswith("firstx")
    assert text.endswith("xlast")
    assert f"[... {2**20 + 9 - 2000:,} bytes left out ...]" in text
    assert position == process.log.total == 2**20 + 9


def test_a_log_in_pieces_is_the_whole_log() -> None:
    log, text, position = OutputLog(4), "", 0
    for piece in (b"ab", b"cdef", b"gh"):
        log.add(piece)
        new, position = log.read(position)
        text += new
    assert text == "abcdefgh"
    assert log.read(0)[0] == "abcdefgh"


def test_what_was_lost_between_two_reads_is_counted() -> None:
    log = OutputLog(4)
    log.add(b"abcdef")
    _, position = log.read(0)
    log.add(b"-" * 100 + b"last")
    assert log.read(position)[0] == "\n[... 100 bytes left out ...]\nlast"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (b"caf\xc3", b"\xa9 now"),
        (b"caf\xc3\xa9 \xf0\x9f\x98", b"\x80"),
        (b"red \x1b[3", b"1mfish\x1b[0m"),
        (b"red \x1b]0;ti", b"tle\x07fish"),
    ],
)
def test_a_character_or_sequence_cut_in_two_is_read_whole(first: bytes, second: bytes) -> None:
    log = OutputLog(LOG_LIMIT)
    log.add(first)
    begun, position = log.read(0, ended=False)
    log.add(second)
    rest, position = log.read(position, ended=False)
    assert begun + rest in ("café now", "café 😀", "red fish")
    assert position == log.total


def test_whole_lines_leave_the_last_one_until_it_ends() -> None:
    log = OutputLog(LOG_LIMIT)
    log.add(b"one\ntw")
    text, position = log.read(0, ended=False, whole_lines=True)
    assert (text, position) == ("one\n", 4)
    assert log.read(position, ended=False)[0] == "tw"
    assert log.read(position, ended=True, whole_lines=True)[0] == "tw"


def test_binary_output_is_a_note() -> None:
    log = OutputLog(LOG_LIMIT)
    log.add(bytes(5000))
    assert log.read(0)[0] == "[binary output, 5,000 bytes]"
