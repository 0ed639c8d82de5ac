from __future__ import annotations

import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.processes import mark, read_fifo, running_with

from robota.core.tool import Tool, ToolContext, ToolResult, tool_class, tool_schema
from robota.tools.builtins.background import bash_output_tool, kill_bash_tool
from robota.tools.builtins.bash import bash_tool
from robota.tools.processes import ProcessTable

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]


class Shells:
    """The three tools on one table."""

    def __init__(self, table: ProcessTable, cwd: Path) -> None:
        self.table = table
        self.context = ToolContext(cwd=str(cwd))
        self.bash = bash_tool(table=table)

    async def start(self, command: str, **more: Any) -> ToolResult:
        return await self.bash.run({"command": command, "run_in_background": True, **more}, self.context)

    async def output(self, identity: str = "bash_1", **more: Any) -> ToolResult:
        return await bash_output_tool(self.table).run({"bash_id": identity, **more}, self.context)

    async def kill(self, identity: str = "bash_1") -> ToolResult:
        return await kill_bash_tool(self.table).run({"shell_id": identity}, self.context)

    async def printed(self, size: int) -> None:
        """The pipe is read by the loop, which gets to it a moment after the command wrote."""
        while self.table.processes[0].log.total < size:
            await anyio.lowlevel.checkpoint()

    async def finish(self, command: str, **more: Any) -> None:
        await self.start(command, **more)
        await self.table.processes[-1].wait()


@pytest.fixture
async def shells(tmp_path: Path, mark: str) -> AsyncIterator[Shells]:
    os.mkfifo(tmp_path / "fifo")
    async with ProcessTable() as table:
        yield Shells(table, tmp_path)
    assert running_with(mark) == []


def test_the_companions_are_tools_that_inspect() -> None:
    table = ProcessTable()
    for tool, name in ((bash_output_tool(table), "BashOutput"), (kill_bash_tool(table), "KillBash")):
        assert isinstance(tool, Tool)
        assert (tool.name, tool_class(tool)) == (name, "inspect")
        assert "background" in tool.description


def test_the_background_is_offered_only_with_a_table() -> None:
    assert "run_in_background" in tool_schema(bash_tool(table=ProcessTable())).parameters["properties"]
    assert "run_in_background" not in tool_schema(bash_tool()).parameters["properties"]


async def test_a_command_in_the_background_returns_at_once(shells: Shells, tmp_path: Path) -> None:
    result = await shells.start("echo ready > fifo; sleep 1000")
    assert result.ok
    assert result.metadata == {"shellId": "bash_1"}
    assert 'BashOutput(bash_id="bash_1")' in result.text
    assert await read_fifo(tmp_path / "fifo") == "ready\n"


async def test_output_is_read_as_it_comes_and_only_once(shells: Shells, tmp_path: Path) -> None:
    await shells.start("echo one; echo go > fifo; cat fifo; printf question; echo go > fifo; sleep 1000")
    await read_fifo(tmp_path / "fifo")
    await shells.printed(len("one\n"))
    assert (await shells.output()).text == "one\n[still running]"
    result = await shells.output()
    assert (result.text, result.metadata["status"]) == ("[no new output]\n[still running]", "running")
    await anyio.to_thread.run_sync((tmp_path / "fifo").write_text, "two\n")
    await read_fifo(tmp_path / "fifo")
    await shells.printed(len("one\ntwo\nquestion"))
    assert (await shells.output()).text == "two\nquestion\n[still running]"


@pytest.mark.parametrize(
    ("command", "text", "facts"),
    [
        ("echo done", "done\n[exit code 0]", {"status": "exited", "exitCode": 0}),
        ("echo no >&2; exit 3", "no\n[exit code 3]", {"status": "exited", "exitCode": 3}),
        ("kill -9 $$", "[no new output]\n[ended by SIGKILL]\n[exit code 137]", {"exitCode": 137}),
        (r"printf '\033[31mred\n'", "red\n[exit code 0]", {}),
        ("head -c 5000 /dev/zero", "[binary output, 5,000 bytes]\n[exit code 0]", {}),
    ],
)
async def test_the_end_is_reported(shells: Shells, command: str, text: str, facts: dict[str, Any]) -> None:
    await shells.finish(command)
    result = await shells.output()
    assert result.text == text
    assert facts.items() <= result.metadata.items()


async def test_a_filter_keeps_the_lines_that_match(shells: Shells) -> None:
    await shells.finish("printf 'info a\\nERROR b\\ninfo c\\nERROR d'")
    assert (await shells.output(filter="^ERROR [b-d]$")).text == "ERROR b\nERROR d\n[exit code 0]"
    assert (await shells.output()).text == "[no new output]\n[exit code 0]"


@pytest.mark.parametrize("pattern", ["(", "(?P<n>a)(?P<n>b)", "a\0b", "\ud800"])
async def test_an_invalid_filter_is_said_and_loses_no_output(shells: Shells, pattern: str) -> None:
    await shells.finish("echo kept")
    result = await shells.output(filter=pattern)
    assert not result.ok
    assert "Invalid regex pattern" in (result.error or "")
    assert (await shells.output()).text == "kept\n[exit code 0]"


async def test_a_filter_that_would_take_for_ever_is_given_up(
    shells: Shells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robota.tools.builtins.background.FILTER_SECONDS", 0.5)
    await shells.finish(f"echo {'a' * 60}b")
    result = await shells.output(filter="(a+)+$")
    assert "takes too long" in (result.error or "")


async def test_killing_ends_the_command_and_all_it_started(shells: Shells, tmp_path: Path, mark: str) -> None:
    await shells.start("trap '' TERM; setsid sleep 1000 & echo said; echo > fifo; wait")
    await read_fifo(tmp_path / "fifo")
    assert (await shells.kill()).text.startswith("Stopped bash_1: trap")
    assert running_with(mark) == []
    assert (await shells.output()).text == "said\n[stopped]"


async def test_killing_what_has_ended_is_no_error(shells: Shells) -> None:
    await shells.finish("exit 2")
    assert (await shells.kill()).text == "bash_1 had already ended: [exit code 2]"


async def test_an_unknown_id_is_answered_with_those_that_exist(shells: Shells) -> None:
    assert "none was started" in ((await shells.output("bash_9")).error or "")
    await shells.finish("true")
    for result in (await shells.output("bash_9"), await shells.kill("bash_9")):
        assert result.error == "There is no background command 'bash_9'. Known: bash_1."


async def test_there_is_no_time_limit_unless_one_is_given(shells: Shells) -> None:
    await shells.finish("sleep 1000", timeout=200)
    assert (await shells.output()).text == "[no new output]\n[timed out and ended]"


async def test_a_command_that_cannot_start_says_so_at_once(shells: Shells) -> None:
    result = await shells.start("echo a\0b")
    assert not result.ok
    assert "Could not start" in (result.error or "")


async def test_a_table_that_is_not_open_is_said(tmp_path: Path) -> None:
    result = await Shells(ProcessTable(), tmp_path).start("true")
    assert not result.ok
    assert "not open" in (result.error or "")


async def test_the_eighth_command_in_the_background_is_refused(shells: Shells) -> None:
    for _ in range(7):
        assert (await shells.start("sleep 1000")).ok
    result = await shells.start("sleep 1000")
    assert not result.ok
    assert "Stop one first: bash_1 (sleep 1000)" in (result.error or "")
    assert (await shells.bash.run({"command": "echo free"}, shells.context)).text == "free"


async def test_much_output_takes_little_memory(shells: Shells) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await shells.finish("echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last")
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 < 20_000_000
    result = await shells.output()
    assert result.text.startswith("first\nxxx")
    assert result.text.endswith("xxx\nlast\n[exit code 0]")
    assert len(result.text) < 31_000
