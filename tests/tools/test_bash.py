from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.processes import mark, read_fifo, running_with

from robota.core.errors import ConfigurationError
from robota.core.tool import Tool, ToolContext, ToolResult, tool_class, tool_schema
from robota.sessions.permissions.tool_hooks import truncate_result
from robota.tools.builtins.bash import MAX_OUTPUT_CHARACTERS, PROGRESS_CHARACTERS, bash_tool
from robota.tools.processes import ProcessTable

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]


async def bash(command: str, *, cwd: Path | str = "", **arguments: Any) -> ToolResult:
    return await bash_tool().run({"command": command, **arguments}, ToolContext(cwd=str(cwd)))


def test_it_is_a_tool_that_executes() -> None:
    tool = bash_tool()
    assert isinstance(tool, Tool)
    assert (tool.name, tool_class(tool)) == ("Bash", "execute")
    assert set(tool_schema(tool).parameters["properties"]) == {
        "command",
        "timeout",
        "working_directory",
        "description",
    }
    assert "30,000 characters" in tool.description


async def test_output_comes_back() -> None:
    result = await bash("echo hello; echo world", description="Greet")
    assert (result.ok, result.text, result.metadata) == (True, "hello\nworld", {"exitCode": 0})


async def test_standard_error_follows_standard_output() -> None:
    assert (await bash("echo out; echo err >&2")).text == "out\nstderr:\nerr"
    assert (await bash("echo err >&2")).text == "stderr:\nerr"


async def test_silence_is_said() -> None:
    assert (await bash("true")).text == "(no output)"
    assert (await bash("exit 3")).text == "(no output)\n[exit code 3]"
    assert (await bash("sleep 1000", timeout=300)).text.startswith("(no output)\n")


@pytest.mark.parametrize(
    ("printed", "failed"), [(100_000, 100_000), (100_000, 500), (500, 100_000), (90_000, 1_000_000)]
)
async def test_the_line_before_standard_error_survives_the_cut(printed: int, failed: int) -> None:
    command = f"head -c {printed} /dev/zero | tr '\\0' o; head -c {failed} /dev/zero | tr '\\0' e >&2; exit 1"
    result = truncate_result(await bash(command))
    out, errors = result.text.split("\nstderr:\n")
    assert (out[0], out[-1], errors[0]) == ("o", "o", "e")
    assert errors.endswith("e\n[exit code 1]")
    assert len(result.text) <= MAX_OUTPUT_CHARACTERS
    assert ("left out" in out, "left out" in errors) == (printed > 500, failed > 500)
    assert "truncated" not in result.metadata


async def test_a_failing_command_is_still_an_answer() -> None:
    result = await bash("echo no; exit 3")
    assert (result.ok, result.text, result.metadata) == (True, "no\n[exit code 3]", {"exitCode": 3})


async def test_a_command_that_is_killed_says_so() -> None:
    result = await bash("kill -9 $$")
    assert (result.ok, result.text) == (True, "(no output)\n[ended by SIGKILL]\n[exit code 137]")


async def test_the_grammar_is_that_of_bash() -> None:
    assert (await bash('a=(1 2); [[ ${a[1]} == 2 ]] && echo "${BASH_VERSION:+bash}"')).text == "bash"


async def test_the_environment_cannot_change_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BASHOPTS", "extglob"), ("SHELLOPTS", "noexec"), ("POSIXLY_CORRECT", "1")):
        monkeypatch.setenv(name, value)
    assert (await bash("shopt -q extglob || echo off; set -o | grep -E 'noexec|posix'")).text.split() == [
        "off", "noexec", "off", "posix", "off",
    ]  # fmt: skip


async def test_a_command_is_never_an_option() -> None:
    assert "-c: command not found" in (await bash("-c 'echo injected'")).text


async def test_it_runs_where_the_session_is(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "below")
    assert (await bash("pwd", cwd=tmp_path)).text == str(tmp_path)
    assert (await bash("pwd", cwd=tmp_path, working_directory="below")).text == str(tmp_path / "below")
    assert (await bash("pwd", workingDirectory=str(tmp_path))).text == str(tmp_path)


async def test_nothing_lasts_until_the_next_call(tmp_path: Path) -> None:
    tool, context = bash_tool(), ToolContext(cwd=str(tmp_path))
    await tool.run({"command": "cd /; export LASTING=1"}, context)
    result = await tool.run({"command": 'pwd; echo "${LASTING:-gone}"'}, context)
    assert result.text == f"{tmp_path}\ngone"


async def test_a_missing_directory_is_said() -> None:
    result = await bash("pwd", working_directory="/no/such/directory")
    assert not result.ok
    assert result.error == (
        "The command was not run: its working directory /no/such/directory does not exist. "
        "Pass another `working_directory`."
    )


async def test_a_directory_that_vanished_or_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "file is not a directory" in ((await bash("pwd", cwd=tmp_path / "file")).error or "")
    tool, context = bash_tool(), ToolContext(cwd=str(tmp_path / "below"))
    os.mkdir(tmp_path / "below")
    await tool.run({"command": "rmdir ../below"}, context)
    assert "does not exist" in ((await tool.run({"command": "pwd"}, context)).error or "")


async def test_a_missing_bash_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await bash("true")
    assert (result.ok, result.error) == (False, "bash was not found on the PATH; install it to run commands.")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "command"),
        ({"command": 5}, "command"),
        ({"command": ""}, "command"),
        ({"command": "ls", "timeout": 0}, "timeout"),
        ({"command": "ls", "timeout": "soon"}, "timeout"),
        ({"command": "ls", "run_in_background": True}, "run_in_background"),
    ],
)
async def test_wrong_arguments_are_named(arguments: dict[str, Any], field: str) -> None:
    result = await bash_tool().run(arguments, ToolContext())
    assert not result.ok
    assert field in (result.error or "")


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800", "echo " + "x" * 200_000])
async def test_a_command_that_cannot_be_passed_on_is_an_answer(command: str) -> None:
    result = await bash(command)
    assert not result.ok
    assert "Could not start" in (result.error or "")


async def test_a_command_that_takes_too_long_is_ended() -> None:
    result = await bash("echo begun; sleep 1000", timeout=1500)
    assert (result.ok, result.error_code) == (False, "timeout")
    assert result.error == "Command timed out after 1500ms"
    assert result.text.startswith("begun\n")
    assert result.text.endswith("Error: Command timed out after 1500ms")


async def test_long_output_keeps_both_ends() -> None:
    result = await bash("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last; exit 1")
    assert result.text.startswith("first\nxxx")
    assert result.text.endswith("xxx\nlast\n[exit code 1]")
    assert "characters left out ...]" in result.text
    assert "100,0" not in result.text
    assert MAX_OUTPUT_CHARACTERS - 200 < len(result.text) <= MAX_OUTPUT_CHARACTERS + 20


async def test_a_command_has_no_input_and_no_terminal() -> None:
    assert (await bash("read -r line || echo none; tty; test -t 1 || echo pipe")).text.split("\n")[:3] == [
        "none",
        "not a tty",
        "pipe",
    ]


async def test_credentials_stay_out_unless_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "t")
    monkeypatch.setenv("OTHER_TOKEN", "t")
    command = {"command": 'echo "${FORGE_TOKEN-unset} ${OTHER_TOKEN-unset}"'}
    result = await bash_tool(keep_variables=["FORGE_TOKEN"]).run(command, ToolContext())
    assert result.text == "t unset"


async def test_processes_left_behind_are_ended_and_named() -> None:
    result = await bash("sleep 1000 & echo started")
    first, second = result.text.splitlines()
    assert first == "started"
    assert second.startswith("[ended with the command: ")
    assert second.endswith(" sleep 1000]")


async def test_escape_sequences_do_not_reach_the_model() -> None:
    assert (await bash(r"printf '\033[31mred\033[0m\033]52;c;eA==\007'")).text == "red"


async def test_cancelling_ends_the_command(tmp_path: Path, mark: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: bash("sleep 1000 & echo ready > fifo; wait", cwd=tmp_path))
        assert await read_fifo(tmp_path / "fifo") == "ready\n"
        group.cancel_scope.cancel()
    assert running_with(mark) == []


async def test_lines_are_shown_while_the_command_runs() -> None:
    shown: list[str] = []
    command = r"printf 'one\n\033[31mtwo\033[0m\n\n'; echo err >&2; printf tail"
    await bash_tool().run({"command": command}, ToolContext(progress=shown.append))
    assert sorted(shown) == ["err", "one", "two"]


async def test_a_flood_of_lines_is_shown_ever_more_rarely() -> None:
    shown: list[str] = []
    await bash_tool().run({"command": "seq 1000000"}, ToolContext(progress=shown.append))
    assert shown[:100] == [str(number) for number in range(1, 101)]
    assert 100 < len(shown) < 1500


async def test_lines_that_come_in_pieces_are_shown_whole() -> None:
    shown: list[str] = []
    command = "printf 'be'; sleep 0.05; printf 'gun\\nmid'; sleep 0.05; printf 'dle\\nrest\\n'"
    await bash_tool().run({"command": command}, ToolContext(progress=shown.append))
    assert shown == ["begun", "middle", "rest"]


async def test_of_a_flood_whole_lines_are_shown() -> None:
    shown: list[str] = []
    await bash_tool().run({"command": "seq -f 'line %.0f.' 100000"}, ToolContext(progress=shown.append))
    assert [line for line in shown if not re.fullmatch(r"line \d+\.", line)] == []
    numbers = [int(line[5:-1]) for line in shown]
    assert numbers == sorted(set(numbers))


async def test_a_long_line_is_shown_in_part_and_noise_not_at_all() -> None:
    shown: list[str] = []
    command = "head -c 100000 /dev/zero | tr '\\0' x; echo; head -c 100 /dev/zero; echo"
    await bash_tool().run({"command": command}, ToolContext(progress=shown.append))
    assert shown == ["x" * PROGRESS_CHARACTERS]


async def test_a_shared_table_limits_how_many_run_at_a_time(tmp_path: Path) -> None:
    table = ProcessTable(limit=2)
    os.mkdir(tmp_path / "running")
    counts: list[int] = []

    async def run() -> None:
        command = "mkdir running/$$; ls running | wc -l; rmdir running/$$"
        result = await bash_tool(table=table).run({"command": command}, ToolContext(cwd=str(tmp_path)))
        counts.append(int(result.text))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(run)
    assert max(counts) <= 2


def test_an_unknown_sandbox_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'off', 'auto' or 'required'"):
        bash_tool(sandbox="maybe")  # type: ignore[arg-type]  # what a settings file may say
