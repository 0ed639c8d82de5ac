"""Commands under Landlock are started by one process that is kept ready."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.support.processes import mark, read_fifo, running_with, sleeping

from robota.core.tool import ToolContext, ToolResult
from robota.tools.builtins.bash import BashTool, bash_tool
from robota.tools.processes import ProcessTable
from robota.tools.sandbox.sandbox import Sandbox

__all__ = ["mark"]

pytestmark = [pytest.mark.system, pytest.mark.anyio, pytest.mark.usefixtures("mark")]

LAUNCHER_PARENT = "read -r _ _ _ parent _ < /proc/$PPID/stat; echo $parent"
"""Prints the process that started the launcher of the command."""


@pytest.fixture
def workspace() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name).resolve()


def make_tool(table: ProcessTable | None = None) -> BashTool:
    return bash_tool(table=table, sandbox=Sandbox("required", backends=["landlock"]))


async def run(tool: BashTool, command: str, workspace: Path, **arguments: object) -> ToolResult:
    return await tool.run({"command": command, **arguments}, ToolContext(cwd=str(workspace)))


async def find_server(tool: BashTool, workspace: Path) -> int:
    return int((await run(tool, LAUNCHER_PARENT, workspace)).text)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def wait_until_gone(*pids: int) -> None:
    with anyio.fail_after(20):
        while any(map(is_there, pids)):  # noqa: ASYNC110 - nothing tells of the end of somebody else's process
            await anyio.sleep(0.01)


async def test_one_process_starts_all_commands_and_ends_with_the_sandbox(workspace: Path) -> None:
    tool = make_tool()
    servers = {await find_server(tool, workspace) for _ in range(3)}
    assert len(servers) == 1
    assert os.getpid() not in servers
    del tool
    await wait_until_gone(*servers)


async def test_commands_run_beside_each_other(workspace: Path) -> None:
    for name in ("there", "back"):
        os.mkfifo(workspace / name)
    tool, said = make_tool(), dict[str, str]()

    async def keep(name: str, command: str) -> None:
        said[name] = (await run(tool, command, workspace)).text

    async with anyio.create_task_group() as group:
        group.start_soon(keep, "first", "echo hello > there; cat back")
        group.start_soon(keep, "second", "cat there; echo goodbye > back")
    assert said == {"first": "goodbye", "second": "hello"}


async def test_a_server_that_was_ended_is_started_again(workspace: Path) -> None:
    tool = make_tool()
    server = await find_server(tool, workspace)
    os.kill(server, signal.SIGKILL)
    again = await find_server(tool, workspace)
    assert again != server
    assert (await run(tool, "echo works", workspace)).text == "works"


async def test_a_request_that_an_ended_server_never_took_goes_to_the_next(workspace: Path) -> None:
    tool, results = make_tool(), list[ToolResult]()
    server = await find_server(tool, workspace)
    os.kill(server, signal.SIGSTOP)

    async def work() -> None:
        results.append(await run(tool, "echo works", workspace))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        os.kill(server, signal.SIGKILL)
    assert results[0].text == "works"


async def test_a_command_ends_with_its_server_and_the_result_says_so(workspace: Path, mark: str) -> None:
    os.mkfifo(workspace / "ready")
    tool, results = make_tool(), list[ToolResult]()
    server = await find_server(tool, workspace)

    async def work() -> None:
        daemon = "(env -i setsid sleep 1013 > /dev/null 2>&1 &)"
        results.append(await run(tool, f"{daemon}; echo ready > ready; sleep 1013", workspace))

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        assert await read_fifo(workspace / "ready") == "ready\n"
        os.kill(server, signal.SIGKILL)
    assert "SIGKILL" in results[0].text
    assert running_with(mark) == []
    assert sleeping("1013") == []


async def test_a_killed_program_leaves_neither_server_nor_command(workspace: Path) -> None:
    os.mkfifo(workspace / "ready")
    daemon = "(env -i setsid sleep 1019 > /dev/null 2>&1 &)"
    command = f"{daemon}; {LAUNCHER_PARENT} > ready; sleep 1019"
    code = (
        "import anyio, sys; from robota.core.tool import ToolContext; "
        "from robota.tools.builtins.bash import bash_tool; "
        "from robota.tools.sandbox.sandbox import Sandbox; "
        "tool = bash_tool(sandbox=Sandbox('required', backends=['landlock'])); "
        "anyio.run(tool.run, {'command': sys.argv[1]}, ToolContext(cwd=sys.argv[2]))"
    )
    async with await anyio.open_process([sys.executable, "-c", code, command, str(workspace)]) as process:
        server = int(await read_fifo(workspace / "ready"))
        process.kill()
    await wait_until_gone(server, *map(int, sleeping("1019")))


async def test_a_command_in_the_background_ends_with_the_table(workspace: Path, mark: str) -> None:
    os.mkfifo(workspace / "ready")
    async with ProcessTable() as table:
        tool = make_tool(table)
        started = await run(tool, "echo ready > ready; sleep 1000", workspace, run_in_background=True)
        assert started.metadata["sandbox"] == "landlock"
        assert await read_fifo(workspace / "ready") == "ready\n"
    assert running_with(mark) == []


async def test_a_command_has_the_signals_and_descriptors_it_expects(workspace: Path) -> None:
    tool = make_tool()
    assert (await run(tool, "yes | head -n 1; trap", workspace)).text == "y"
    assert (await run(tool, "echo /proc/self/fd/*; cat; echo $?", workspace)).text.splitlines() == [
        "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3", "0"
    ]  # fmt: skip  # 3 is the directory that bash lists


async def test_variables_and_arguments_need_not_be_utf_8(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff\xfe"))
    text = (await run(make_tool(), 'printf %s "$ODD" | od -An -tx1; echo ünï', workspace)).text
    assert text.split() == ["ff", "fe", "ünï"]


async def test_a_command_that_the_system_cannot_start_is_a_sentence(workspace: Path) -> None:
    result = await run(make_tool(), f"echo {'x' * 200_000}", workspace)
    assert "could not start 'bash': Argument list too long; nothing was run." in result.text


async def test_a_zero_byte_is_a_sentence(workspace: Path) -> None:
    result = await run(make_tool(), "echo a\0b", workspace)
    assert "could not start 'bash': embedded null byte; nothing was run." in result.text
    assert "Traceback" not in result.text


async def test_the_end_of_a_fork_ends_nothing_that_belongs_to_its_parent(workspace: Path) -> None:
    code = f"""
import anyio, os, sys
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.sandbox.sandbox import Sandbox

tool = bash_tool(sandbox=Sandbox("required", backends=["landlock"]))

def run(command):
    return anyio.run(tool.run, {{"command": command}}, ToolContext(cwd=sys.argv[1])).text

before = run({LAUNCHER_PARENT!r}), run("ls -d $TMPDIR")
child = os.fork()
if child == 0:
    print("another one", run({LAUNCHER_PARENT!r}) != before[0], flush=True)
    sys.exit()
os.waitpid(child, 0)
print("the same", (run({LAUNCHER_PARENT!r}), run("ls -d $TMPDIR")) == before)
"""
    done = await anyio.run_process([sys.executable, "-c", code, str(workspace)])
    assert done.stdout.decode().splitlines() == ["another one True", "the same True"]


async def test_hidden_names_are_hidden_where_names_are_not_utf_8(workspace: Path) -> None:
    hidden = workspace / os.fsdecode("ü".encode())
    hidden.mkdir()
    (hidden / "secret").write_text("content\n")
    make = ["localedef", "-i", "en_US", "-f", "ISO-8859-1", str(workspace / "en_US.ISO-8859-1")]
    await anyio.run_process(make)
    code = """
import anyio, os, sys
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.sandbox.sandbox import Sandbox

hidden = os.path.join(sys.argv[1], os.fsdecode(b"\\xc3\\xbc"))
sandbox = Sandbox("required", backends=["landlock"], deny_read=[hidden])
print(sys.getfilesystemencoding())
tool, context = bash_tool(sandbox=sandbox), ToolContext(cwd=sys.argv[1])
print(anyio.run(tool.run, {"command": "cat */secret"}, context).text)
"""
    place = {"LOCPATH": str(workspace), "LC_ALL": "en_US.ISO-8859-1"}
    done = await anyio.run_process([sys.executable, "-c", code, str(workspace)], env=os.environ | place)
    said = done.stdout.decode("latin-1")
    assert said.startswith("iso8859-1\n")
    assert "Permission denied" in said
    assert "content" not in said


async def test_commands_go_on_where_no_more_can_be_started() -> None:
    code = f"""
import anyio, os, resource, tempfile
from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.processes import ProcessTable
from robota.tools.sandbox.sandbox import Sandbox

async def main(place):
    async with ProcessTable() as table:
        tool = bash_tool(table=table, sandbox=Sandbox("required", backends=["landlock"]))
        async def run(command, **more):
            return (await tool.run({{"command": command, **more}}, ToolContext(cwd=place))).text

        server = int(await run({LAUNCHER_PARENT!r}))
        os.mkfifo(f"{{place}}/ready")
        await run("echo ready > ready; sleep 1000", run_in_background=True)
        await anyio.Path(f"{{place}}/ready").read_text()
        resource.prlimit(server, resource.RLIMIT_NPROC, (0, 0))
        print(await run("echo works"))
        print(len(table.running), os.path.exists(f"/proc/{{server}}"))

with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
    os.environ["HOME"] = place
    anyio.run(main, place)
"""
    command = [sys.executable, "-B", "-c", code]
    if os.getuid() == 0:  # the limit does not hold for root, and what root installed is not for everybody
        reading = [f"--{kind}-caps=+dac_read_search" for kind in ("inh", "ambient")]
        command = ["setpriv", "--reuid=65534", "--clear-groups", *reading, "--", *command]
    done = await anyio.run_process(command, stderr=None)
    assert done.stdout.decode().splitlines() == [
        f"Error: Could not start {sys.executable!r}: Resource temporarily unavailable.", "1 True"
    ]  # fmt: skip
