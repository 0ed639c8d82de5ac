"""Servers that misbehave: bounded, named, and everything else works."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import PROGRAM, definition
from tests.support.mcp_session import ends, notices, opened, write_servers

from robota.core.tool import ToolContext
from robota.testing import ScriptedProvider, call
from robota.tools.mcp.connection import ServerConnection
from robota.tools.mcp.definition import ServerDefinition, tool_name
from robota.tools.mcp.transports import MAX_LINE

pytestmark = [pytest.mark.anyio, pytest.mark.system]


def connection(**more: Any) -> ServerConnection:
    config = {key: more.pop(key) for key in [*more] if key not in ServerDefinition.__struct_fields__}
    args = ("-S", PROGRAM, json.dumps(config))
    return ServerConnection(ServerDefinition(name="stub", command=sys.executable, args=args, **more))


async def test_tools_with_wrong_schemas_are_left_out_and_named_and_the_others_work() -> None:
    stub = connection(broken=True)
    stub.start()
    await stub.settle()
    try:
        assert stub.state == "connected"
        assert not {"no_schema", "wrong", "odd"} & stub.offer.tools.keys()
        said = "\n".join(stub.noise.describe())
        assert all(name in said for name in ("'no_schema'", "'wrong'", "'odd'", "without a name"))
        assert (await stub.call("add", {"a": 1, "b": 2}, ToolContext())).content == "3"
    finally:
        await stub.close()


async def test_noise_on_both_streams_is_kept_and_harms_nothing() -> None:
    stub = connection(noise=True)
    stub.start()
    await stub.settle()
    try:
        assert (await stub.call("add", {"a": 1, "b": 2}, ToolContext())).content == "3"
        assert stub.noise.stray_lines == 1
        assert "a warning of the server" in stub.noise.last_words
    finally:
        await stub.close()


async def test_a_line_that_never_ends_breaks_the_connection_and_is_named() -> None:
    stub = connection(endless=MAX_LINE * 3)
    stub.start()
    await stub.settle()
    try:
        assert stub.state == "failed"
        assert any("more than" in line for line in stub.noise.describe())
    finally:
        await stub.close()


async def test_ten_megabytes_of_result_arrive_cut() -> None:
    stub = connection()
    stub.start()
    try:
        result = await stub.call("big", {"size": 10_000_000}, ToolContext())
        assert result.ok
        assert len(result.content) <= 100_000
        assert "left out" in result.content
    finally:
        await stub.close()


async def test_a_call_without_a_sign_of_life_is_given_up_and_the_server_serves_on() -> None:
    stub = connection(call_timeout=2.0)
    stub.start()
    try:
        result = await stub.call("hang", {}, ToolContext())
        assert "no sign of life" in str(result.error)
        assert (await stub.call("add", {"a": 1, "b": 2}, ToolContext())).content == "3"
        assert stub.starts == 1
    finally:
        await stub.close()


async def test_a_server_that_never_answers_has_failed_after_its_start_timeout(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "never")
    stub = connection(gate=str(tmp_path / "never"), start_timeout=0.3)
    stub.start()
    try:
        result = await stub.call("add", {"a": 1, "b": 2}, ToolContext())
        assert "did not answer within" in str(result.error) or "has not answered" in str(result.error)
    finally:
        await stub.close()


async def test_whoever_begins_does_not_wait_for_a_server_that_crashes_again() -> None:
    stub = ServerConnection(ServerDefinition(name="stub", command=sys.executable, args=("-c", "1/0")))
    stub.start()
    try:
        await stub.settle(once=True)
        assert (stub.state, stub.starts) == ("pending", 1)
        await stub.settle()
        assert stub.state == "failed"
        assert stub.starts > 1
    finally:
        await stub.close()


async def test_a_server_killed_between_calls_is_started_again_for_the_next() -> None:
    stub = connection()
    stub.start()
    try:
        found = json.loads((await stub.call("environment", {}, ToolContext())).content)
        assert "HOME" in found
        pid = next(int(name) for name in os.listdir("/proc") if name.isdigit() and is_stub(name))
        os.kill(pid, signal.SIGKILL)
        results = [await stub.call("add", {"a": 1, "b": 2}, ToolContext()) for _ in range(2)]
        assert results[-1].content == "3"
        assert stub.starts == 2
    finally:
        await stub.close()
    assert not os.path.exists(f"/proc/{pid}") or not is_stub(str(pid))


def is_stub(pid: str) -> bool:
    """Whether that is a child of this process that runs the stub."""
    try:
        with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as line:
            return stat.read().rsplit(") ", 1)[1].split()[1] == str(os.getpid()) and PROGRAM in line.read()
    except OSError:
        return False


async def test_one_broken_server_leaves_the_others_alone(project: Path) -> None:
    write_servers(
        project,
        good=definition(),
        silent={"command": "cat", "startupTimeout": 500},
        missing={"command": "there-is-no-such-program"},
        dying={"command": "false"},
        nothing={},
        bare={"url": "https://x.example"},
        wrong={"type": "carrier-pigeon", "url": "https://x.example"},
        **{"bad name": definition()},
    )
    provider = ScriptedProvider([call("mcp__good__add", a=1, b=1)], "Two.")
    async with opened(project, provider) as session:
        heard, told = ends(session), notices(session)
        await session.kit.servers.connections["dying"].settle()
        states = {name: each.state for name, each in session.kit.servers.connections.items()}
        await session.submit("Go.")
        problems = "\n".join(map(str, session.problems))
    assert states["good"] == "connected"
    assert states["missing"] == "failed"
    assert states["dying"] == "failed"
    assert heard[0].outcome == "success"
    assert any("'missing' is not connected" in each or "missing" in each for each in told)
    wanted = (
        "nothing: It has neither",
        "bare: It has a `url` and no",
        "wrong: Its type",
        "bad name: Its name",
    )
    assert [words for words in wanted if words not in problems] == []


def test_names_are_made_usable_and_long_ones_stay_apart() -> None:
    stub = ServerDefinition(name="my server.io")
    assert tool_name(stub, "read file") == "mcp__my_server_io__read_file"
    long = [tool_name(stub, "x" * 80 + end) for end in ("a", "b")]
    assert {len(name) for name in long} == {64}
    assert len(set(long)) == 2
