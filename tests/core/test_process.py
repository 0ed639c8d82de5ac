from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.support.cancel import AwaitCounter
from tests.support.processes import mark, read_fifo, running_with, sleeping

from robota.core.plain_text import clip, shorten, strip_controls
from robota.core.process import OUTPUT_LIMIT, ProcessResult, run_process
from robota.core.process_tree import process_ids

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.usefixtures("mark")]

MEGABYTE = 1024 * 1024


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def some_time() -> str:
    """Seconds for which nobody else sleeps."""
    return str(random.randrange(10_000, 10_000_000))


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


async def test_a_program_gives_its_code_and_both_outputs() -> None:
    result = await run_process(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.exit_code, result.signal, result.stdout, result.stderr) == (3, None, "out\n", "err\n")
    assert not result.timed_out
    assert result.error is None


async def test_a_program_runs_in_the_directory_it_was_given(tmp_path: Path) -> None:
    result = await run_process(["pwd", "-P"], cwd=str(tmp_path))
    assert result.stdout.strip() == str(tmp_path)


async def test_without_input_standard_input_is_empty() -> None:
    result = await run_process(["cat"])
    assert (result.exit_code, result.stdout) == (0, "")


async def test_input_arrives_whole_and_can_be_reopened() -> None:
    text = "a" * 300_000
    result = await run_process(["sh", "-c", "cat /dev/stdin | wc -c"], stdin=text.encode())
    assert result.stdout.strip() == "300000"


async def test_a_program_that_never_reads_its_input_is_no_problem() -> None:
    result = await run_process(["true"], stdin=b"x" * 4 * MEGABYTE)
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("argv", "cwd", "said"),
    [
        (["/no/such/program"], None, "No such file or directory"),
        (["true"], "/no/such/directory", "/no/such/directory"),
        (["/etc"], None, "Permission denied"),
        (["echo", "a\0b"], None, "null byte"),
        (["echo", "\ud800"], None, "surrogates"),
    ],
)
async def test_a_program_that_cannot_start_is_a_result(argv: list[str], cwd: str | None, said: str) -> None:
    result = await run_process(argv, cwd=cwd)
    assert result.exit_code is None
    assert result.error is not None
    assert said in result.error


async def test_death_by_signal_is_named() -> None:
    result = await run_process(["sh", "-c", "kill -9 $$"])
    assert (result.exit_code, result.signal) == (None, "SIGKILL")


async def test_the_child_leads_a_session_of_its_own() -> None:
    result = await run_process(python("import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"))
    assert result.stdout == "True\n"


async def test_the_child_has_none_of_our_descriptors() -> None:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        result = await run_process(["ls", "/proc/self/fd"])
    finally:
        os.close(descriptor)
    assert result.stdout.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads


async def test_credentials_do_not_reach_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SOME_API_KEY",
        "FORGE_TOKEN",
        "APIKEY",
        "db_password",
        "CLIENT_SECRET",
        "MONKEY",
        "KEYBOARD",
    ):
        monkeypatch.setenv(name, "value")
    result = await run_process(["env"])
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    assert names & {"SOME_API_KEY", "FORGE_TOKEN", "APIKEY", "db_password", "CLIENT_SECRET"} == set()
    assert {"MONKEY", "KEYBOARD", "PATH"} <= names


async def test_a_flood_is_kept_at_both_ends_and_counted() -> None:
    code = "import sys; w = sys.stdout.write; w('first'); [w('x' * 2**20) for _ in range(64)]; w('last')"
    result = await run_process(python(code))
    assert result.stdout.startswith("firstx")
    assert result.stdout.endswith("xlast")
    assert result.stdout_dropped == 64 * MEGABYTE + len("firstlast") - 2 * OUTPUT_LIMIT
    assert f"[... {result.stdout_dropped:,} bytes left out ...]" in result.stdout
    assert len(result.stdout) < 3 * OUTPUT_LIMIT


async def test_a_program_that_prints_forever_is_stopped() -> None:
    result = await run_process(["yes"], timeout=0.2)
    assert result.timed_out
    assert result.stdout_dropped > 0


async def test_output_is_text_without_escape_sequences() -> None:
    result = await run_process(
        ["printf", r"\033[31mred\033[0m\033]0;title\007 caf\303\251 \377\bend\r\nnext\rlast"]
    )
    assert result.stdout == "red café \ufffdend\nnext\nlast"


async def test_binary_output_is_a_note() -> None:
    result = await run_process(["head", "-c", "5000", "/dev/zero"])
    assert result.stdout == "[binary output, 5,000 bytes]"


async def test_records_that_end_in_nul_become_lines() -> None:
    result = await run_process(["printf", r"./a\0./b\0"])
    assert result.stdout == "./a\n./b\n"


async def test_undecodable_bytes_count_as_binary() -> None:
    result = await run_process(python("import sys; sys.stdout.buffer.write(bytes(range(128, 256)) * 10)"))
    assert result.stdout == "[binary output, 1,280 bytes]"


async def test_a_cut_character_leaves_no_debris() -> None:
    result = await run_process(python("print('x' + 'é' * 50_000, end='')"), output_limit=1000)
    head, _, tail = result.stdout.partition("\n[... 98,001 bytes left out ...]\n")
    assert (head, tail) == ("x" + "é" * 499, "é" * 500)


async def test_a_timeout_keeps_what_was_printed() -> None:
    result = await run_process(["sh", "-c", "echo early; sleep 1000"], timeout=1.5)
    assert (result.timed_out, result.stdout, result.signal) == (True, "early\n", "SIGTERM")


async def test_a_child_that_ignores_the_polite_signal_is_killed() -> None:
    result = await run_process(
        ["bash", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], timeout=1.5
    )
    assert (result.timed_out, result.signal, result.stdout) == (True, "SIGKILL", "ready\n")


async def test_a_child_may_clean_up_when_asked_to_end() -> None:
    command = "trap 'echo cleaned; exit 0' TERM; sleep 1000 & wait"
    result = await run_process(["bash", "-c", command], timeout=1.5)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 0, "cleaned\n")


async def test_a_grandchild_that_keeps_the_pipe_does_not_hang_us() -> None:
    result = await run_process(["sh", "-c", "sleep 1000 & echo done"])
    assert (result.exit_code, result.stdout) == (0, "done\n")
    assert [entry.partition(" ")[2] for entry in result.ended] == ["sleep 1000"]


async def test_a_grandchild_without_the_pipe_is_ended_too() -> None:
    result = await run_process(["sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo done"])
    assert [entry.partition(" ")[2] for entry in result.ended] == ["sleep 1000"]


async def test_late_output_of_a_grandchild_still_counts(fifo: Path) -> None:
    command = f"(cat {fifo} >/dev/null; echo late) & echo early; (: > {fifo}) &"
    result = await run_process(["sh", "-c", command])
    assert result.stdout == "early\nlate\n"


async def test_a_timeout_ends_a_grandchild_in_its_own_session() -> None:
    result = await run_process(["sh", "-c", "setsid sleep 1000; true"], timeout=1.5)
    assert result.timed_out
    assert any("sleep 1000" in entry for entry in result.ended)


async def test_a_daemon_that_outlives_its_starter_is_reported() -> None:
    result = await run_process(
        ["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & until pgrep -s $! ; do :; done"]
    )
    [survivor] = result.survivors
    pid, _, command = survivor.partition(" ")
    assert (result.exit_code, command, result.ended) == (0, "sleep 1000", ())
    handle = os.pidfd_open(int(pid))
    signal.pidfd_send_signal(handle, signal.SIGKILL)
    await anyio.wait_readable(handle)
    os.close(handle)


async def test_cancelling_leaves_no_process(fifo: Path, mark: str) -> None:
    command = f"trap '' HUP; (setsid sleep 1000 &); sleep 1000 & echo ready > {fifo}; wait"
    async with anyio.create_task_group() as group:
        group.start_soon(run_process, ["bash", "-c", command])
        assert await read_fifo(fifo) == "ready\n"
        assert running_with(mark)
        group.cancel_scope.cancel()
    assert running_with(mark) == []


@pytest.mark.parametrize(
    "daemon",
    [
        "env -i setsid sleep {time} & echo ready > {fifo}; wait",
        "(env -i setsid sleep {time} &); echo ready > {fifo}; sleep {time}",
        "env -i setsid sh -c 'sleep {time}; true' > /dev/null 2>&1 & echo ready > {fifo}; wait",
    ],
)
async def test_cancelling_ends_a_daemon_without_its_environment(fifo: Path, daemon: str) -> None:
    result: list[ProcessResult] = []
    time = some_time()
    command = daemon.format(fifo=fifo, time=time)

    async def run() -> None:
        result.append(await run_process(["bash", "-c", command], timeout=1.5))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        assert await read_fifo(fifo) == "ready\n"
    assert any(f"sleep {time}" in entry for entry in result[0].ended)
    assert not sleeping(time)


async def test_a_daemon_without_its_environment_is_reported_while_it_holds_the_pipe() -> None:
    result = await run_process(
        ["sh", "-c", "(env -i setsid sleep 1004 &) ; until pgrep -f 'sleep 1004$'; do :; done"]
    )
    [survivor] = [entry for entry in result.survivors if "sleep 1004" in entry]
    os.kill(int(survivor.partition(" ")[0]), signal.SIGKILL)


@pytest.mark.parametrize("command", ["sleep {0}", "(setsid sleep {0} > /dev/null 2>&1 &); sleep {0}"])
async def test_killing_us_ends_the_command_too(tmp_path: Path, command: str) -> None:
    ready, time = tmp_path / "ready", some_time()
    os.mkfifo(ready)
    code = (
        "import anyio, sys; from robota.core.process import run_process; "
        "anyio.run(run_process, ['bash', '-c', sys.argv[1]])"
    )
    argv = [*python(code), f"{command.format(time)} & echo ready > {ready}; wait"]
    async with await anyio.open_process(argv, stdout=None, stderr=None) as process:
        assert await read_fifo(ready) == "ready\n"
        process.send_signal(signal.SIGKILL)
    with anyio.fail_after(20):
        while sleeping(time) or running_with(os.environ["ROBOTA_TEST_MARK"]):  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.02)


async def test_cancelling_before_the_child_runs_leaves_no_process() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run_process(["sh", "-c", "sleep 1000 & sleep 1000"])
    assert scope.cancelled_caught


async def test_an_outer_timeout_reaches_the_caller_and_the_child() -> None:
    with pytest.raises(TimeoutError):
        with anyio.fail_after(0.2):
            await run_process(["sleep", "1000"])


async def test_cancelling_twice_is_harmless(fifo: Path) -> None:
    import asyncio

    command = f"trap '' TERM; echo ready > {fifo}; while :; do sleep 1; done"
    task = asyncio.ensure_future(run_process(["bash", "-c", command]))
    await read_fifo(fifo)
    task.cancel()
    await anyio.lowlevel.checkpoint()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_at(moment: int, command: str, *, from_outside: bool) -> bool:
    scope = anyio.CancelScope()

    async def work() -> None:
        with scope:
            await run_process(["sh", "-c", command])

    counter = AwaitCounter(moment, lambda: counter.task.cancel() if from_outside else scope.cancel())
    with anyio.fail_after(20):
        task = await counter.run(work)
    assert task.cancelled() or task.exception() is None
    return counter.reached


@pytest.mark.parametrize("from_outside", [False, True])
@pytest.mark.parametrize("to", ["/dev/null", "/dev/stdout"])
async def test_cancelling_at_any_await_leaves_no_process(to: str, from_outside: bool, mark: str) -> None:
    """Nor waits for one, that holds the pipes open."""
    moment = 1
    while await cancel_at(moment, f"sleep 1000 >{to} 2>&1 & echo done", from_outside=from_outside):
        assert running_with(mark) == []
        moment += 1
    assert moment > 3


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancellation_while_the_child_starts_waits_for_nobody(turns: int, mark: str) -> None:
    import asyncio

    task = asyncio.ensure_future(run_process(["bash", "-c", "sleep 1000; true"]))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with anyio.fail_after(20), pytest.raises(asyncio.CancelledError):
        await task
    assert running_with(mark) == []


def test_no_control_character_survives() -> None:
    everything = "".join(map(chr, range(0x300)))
    cleaned = strip_controls(
        "\x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b\x1b[[31m\x9b1m\x1bPdata\x1b\\" + everything
    )
    assert [char for char in cleaned if ord(char) < 32 or 127 <= ord(char) < 160 if char not in "\n\t"] == []
    assert cleaned.startswith("link ")


def test_an_unfinished_sequence_does_not_swallow_the_rest() -> None:
    assert strip_controls("\x1b]0;unfinished\nmore") == "0;unfinished\nmore"


def test_shortening_keeps_both_ends_within_the_limit() -> None:
    text = shorten("a" * 500 + "b" * 500, 200, dropped=1000)
    assert text.startswith("aaa")
    assert text.endswith("bbb")
    assert "1,864 characters left out" in text
    assert len(text) <= 200
    assert shorten("short", 200) == "short"


def test_clipping_keeps_the_beginning() -> None:
    assert clip("abcdef", 4) == "abcd\n[... 2 more characters left out]"
    assert clip("abcd", 4) == "abcd"


async def test_a_child_that_prints_a_gigabyte_costs_no_more_memory_than_the_cap() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await run_process(["head", "-c", str(1024 * MEGABYTE), "/dev/zero"])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before

    assert result.exit_code == 0
    assert grown * 1024 < 16 * MEGABYTE


def test_only_processes_started_since_are_looked_at() -> None:
    """Also where the numbers have begun anew, and older processes have higher ones."""
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            assert child.pid in process_ids(child.pid)
            assert os.getpid() not in process_ids(child.pid)
            assert {os.getpid(), child.pid} <= set(process_ids())
        finally:
            child.kill()
