from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import anyio
import pytest

from robota.core.process import CALL_VARIABLE
from robota.core.tool import ToolContext
from robota.tools.builtins.search import glob_tool, grep_tool
from robota.tools.search.engine import Stop, find_engine, run_stoppable

pytestmark = pytest.mark.anyio

MARK = f"search-child-test-{os.getpid()}"


@pytest.fixture(autouse=True)
def mark(monkeypatch):
    """Every child of this test can be told by its environment; at the end none is left."""
    monkeypatch.setenv(CALL_VARIABLE, MARK)
    yield
    assert find_children() == []


def find_children() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and f"{CALL_VARIABLE}={MARK}/".encode() in (entry / "environ").read_bytes()
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture
def ripgrep_that_hangs(tmp_path):
    """It says when it was started, and then neither prints nor ends; it ignores polite requests."""
    path = tmp_path / "rg"
    os.mkfifo(tmp_path / "started")
    path.write_text(
        f"#!{sys.executable}\nimport signal, sys\n"
        "if '--version' in sys.argv: sys.exit(print('ripgrep 99.0.0'))\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(tmp_path / 'started')!r}, 'w').write('up\\n')\n"
        "while True: signal.pause()\n"
    )
    path.chmod(0o755)
    return str(path)


async def wait_until_started(tmp_path: Path) -> None:
    assert await anyio.Path(tmp_path / "started").read_text() == "up\n"


@pytest.mark.parametrize("make_tool", [grep_tool, glob_tool])
async def test_cancelling_ends_the_program(tmp_path, ripgrep_that_hangs, make_tool):
    tool = make_tool(ripgrep=ripgrep_that_hangs)
    async with anyio.create_task_group() as group:
        group.start_soon(tool.run, {"pattern": "x"}, ToolContext(cwd=str(tmp_path)))
        await wait_until_started(tmp_path)
        assert len(find_children()) == 1
        group.cancel_scope.cancel()
    assert find_children() == []


async def test_after_its_time_a_search_ends_with_what_it_found(tmp_path):
    (tmp_path / "a.txt").write_text("fish\n")
    (tmp_path / "b.txt").write_text("a" * 40 + "!\n")
    tool = grep_tool(ripgrep=False, timeout=2)
    result = await tool.run(
        {"pattern": "fish|(a*)*(a*)*(a*)*$", "output_mode": "content"}, ToolContext(cwd=str(tmp_path))
    )
    assert result.text.endswith("[The search was ended after 2 s: there may be more.]")


async def test_a_search_without_results_in_time_says_so(tmp_path, ripgrep_that_hangs):
    tool = grep_tool(ripgrep=ripgrep_that_hangs, timeout=0.2)
    result = await tool.run({"pattern": "x"}, ToolContext(cwd=str(tmp_path)))
    assert result.text == "(no matches)\n[The search was ended after 0.2 s: there may be more.]"


async def test_a_program_that_was_killed_is_an_error(tmp_path, ripgrep_that_hangs):
    tool = grep_tool(ripgrep=ripgrep_that_hangs)
    results = []

    async def search() -> None:
        results.append(await tool.run({"pattern": "x"}, ToolContext(cwd=str(tmp_path))))

    async with anyio.create_task_group() as group:
        group.start_soon(search)
        await wait_until_started(tmp_path)
        os.kill(find_children()[0], signal.SIGKILL)
    assert results[0].text == "Error: The search failed: it ended with -9"


async def test_keys_and_configuration_do_not_reach_the_program(tmp_path, monkeypatch):
    program = tmp_path / "rg"
    version = 'case "$*" in *--version) echo ripgrep 99.0.0; exit;; esac'
    program.write_text(f"#!/bin/sh\n{version}\nenv > {tmp_path}/environment\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("SOME_API_KEY", "secret")
    await grep_tool(ripgrep=str(program)).run({"pattern": "x"}, ToolContext(cwd=str(tmp_path)))
    environment = (tmp_path / "environment").read_text()
    assert "secret" not in environment
    assert f"{CALL_VARIABLE}={MARK}/" in environment


async def test_a_configuration_file_of_ripgrep_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("fish\n")
    (tmp_path / "config").write_text("--invert-match\n--pre=/bin/false\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "config"))
    tool = grep_tool()
    assert (await tool.run({"pattern": "fish"}, ToolContext(cwd=str(tmp_path)))).text == "a.txt"


async def test_work_that_fails_raises_its_own_error():
    def work(stop: Stop) -> None:
        raise LookupError("this one")

    with pytest.raises(LookupError, match="this one"):
        await run_stoppable(work, timeout=60)


async def test_work_is_asked_to_stop_and_waited_for_when_cancelled():
    stopped = threading.Event()

    def work(stop: Stop) -> None:
        started.set()
        while not stop.requested:
            stopped.wait(0.001)
        stopped.set()

    started = threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(run_stoppable, work, 60)
        await anyio.to_thread.run_sync(started.wait)
        group.cancel_scope.cancel()
    assert stopped.is_set()


def test_the_engine_in_python_is_isolated_from_the_directory_it_searches():
    assert find_engine(False).command[1:3] == ("-I", "-S")
