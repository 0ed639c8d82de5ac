"""A recording replays in another process, another directory and without a network, and after a kill."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import run_process, to_thread
from anyio.abc import Process
from tests.sessions.recorded_process import hang
from tests.sessions.recorded_session import RecordedSession, add, scripted, served, turn_events

from robota.core.events import TurnEvent
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.questions import PermissionQuestion
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import ReplayReport, replay_session
from robota.sessions.start import restore_journal
from robota.testing import Gate, ModelServer, call

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]

REPLAY = """
import asyncio, json, os, sys

def guard(event, arguments):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.posix_spawn"):
        raise PermissionError(event)
    if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise PermissionError(f"open {arguments}")

sys.addaudithook(guard)
from robota.core.event_names import event_to_wire
from robota.core.events import ToolProgressed
from robota.core.jsontext import encode
from robota.sessions.replay.session_replay import replay_session

events = []
report = asyncio.run(replay_session(sys.argv[1], on_event=events.append))
told = [event_to_wire(event) for event in events if not isinstance(event, ToolProgressed)]
outcome = {"report": str(report.divergence), "events": told, "messages": report.messages}
sys.stdout.buffer.write(encode(outcome))
"""


async def replay_in_another_process(path: Path, cwd: Path) -> JsonObject:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(cwd), "PATH": "/nowhere"}
    done = await run_process([sys.executable, "-c", REPLAY, str(path)], cwd=cwd, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    outcome: JsonObject = json.loads(done.stdout)
    return outcome


def as_json(value: Any) -> Any:
    return json.loads(encode(value))


async def test_a_session_replays_in_another_process_and_directory_without_network_or_processes(
    tmp_path: Path,
) -> None:
    async def person(request: PermissionQuestion) -> str:
        return "allow-session"

    script = tmp_path / "hook.sh"
    script.write_text("#!/bin/sh\ncat > /dev/null\necho the weather is fine\n")
    script.chmod(0o755)
    hooks = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": str(script)}]}]}
    home = tmp_path / "home"
    home.mkdir()
    async with served(
        home,
        [call("add", "a", a=1, b=2), call("add", "b", a=3, b=4)],
        ["3 ", "and ", "7"],
        "a summary",
        "x" * 50_000,
        handler=person,
        rules=PermissionRules(ask=("add",)),
        hooks=hooks,
    ) as recorded:
        await recorded.run("go")
        await recorded.session.compact()
        await recorded.run("on")
        await recorded.session.shutdown()
    moved = tmp_path / "moved"
    shutil.copytree(home / "sessions", moved)
    shutil.rmtree(home)
    script.unlink()

    outcome = await replay_in_another_process(moved / "s-1.jsonl", tmp_path)

    assert outcome["report"] == "None"
    assert outcome["events"] == as_json(turn_events(recorded.events))
    assert outcome["messages"] == as_json(recorded.session.messages)


# --- after a kill ----------------------------------------------------------------------------------------


@asynccontextmanager
async def running(home: Path, server: ModelServer) -> AsyncIterator[Process]:
    command = [sys.executable, "-m", "tests.sessions.recorded_process", str(home), server.url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    async with await anyio.open_process(command, cwd=ROOT, env=environment) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()


async def appears(path: Path, content: bytes = b"") -> None:
    """Wait for what another process writes: in whole lines, because a kill tears the one being written."""

    def there() -> bool:
        return path.exists() and content in path.read_bytes().rpartition(b"\n")[0]

    with anyio.fail_after(30):
        while not await to_thread.run_sync(there):  # noqa: ASYNC110 - no event reaches us from there
            await anyio.sleep(0.01)


async def go_on_and_replay(home: Path) -> tuple[RecordedSession, ReplayReport]:
    resumed = scripted(home, "back again", tools=(add, hang))
    await resumed.run("third")
    heard: list[TurnEvent] = []
    report = await replay_session(resumed.path, on_event=heard.append)
    assert report.divergence is None, str(report.divergence)
    assert report.messages == tuple(resumed.session.messages)
    live = turn_events(resumed.events)
    assert turn_events(heard)[-len(live) :] == live
    return resumed, report


async def test_a_session_killed_in_mid_stream_goes_on_and_replays(tmp_path: Path) -> None:
    gate = Gate()
    pieces = [f"piece {at} of the answer. " for at in range(40)]
    async with ModelServer([call("add", a=1, b=2)], "3", [*pieces, gate, "the end"]) as server:
        async with running(tmp_path, server):
            await gate.reached.wait()
            await appears(tmp_path / "sessions" / "s-1.jsonl", pieces[20].encode())
        gate.open()

    resumed, _ = await go_on_and_replay(tmp_path)

    cut = [message for message in resumed.session.messages if message.metadata.get("recovered")]
    assert [message.state for message in cut] == ["interrupted"]
    assert "".join(pieces).startswith(cut[0].content)


async def test_a_session_killed_while_tools_run_goes_on_and_replays(tmp_path: Path) -> None:
    replies = ("hello", [call("add", a=1, b=2), call("hang")])
    async with ModelServer(*replies) as server, running(tmp_path, server):
        await appears(tmp_path / "hanging")
        await appears(tmp_path / "sessions" / "s-1.jsonl", b'"tool_result"')

    resumed, _ = await go_on_and_replay(tmp_path)

    results = [message for message in resumed.session.messages if message.role == "tool"]
    assert [message.content.partition(";")[0] for message in results] == ["3", "Error: interrupted"]


async def test_a_recording_that_ends_anywhere_replays_up_to_there(tmp_path: Path) -> None:
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}
    recorded = scripted(
        tmp_path,
        ["a", call("add", "x", a=1, b=2), call("add", "y", a=2, b=2)],
        ["b", "c"],
        "a summary",
        "d",
        hooks=hooks,
    )
    await recorded.run("first")
    await recorded.session.compact()
    await recorded.run("second")
    await recorded.session.shutdown()
    lines = recorded.path.read_bytes().splitlines(keepends=True)

    for end in range(1, len(lines)):
        recorded.path.write_bytes(b"".join(lines[:end]))
        report = await replay_session(recorded.path)
        assert report.divergence is None, f"{end}: {lines[end - 1]!r}: {report.divergence}"
        known = restore_journal(str(recorded.path)).messages
        both = zip(report.messages, known, strict=False)
        assert all(ours.role == theirs.role for ours, theirs in both), end
