"""The end of a session: once, in order, and with everything on the disk."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sessions.live_session import Studio, listen_to, names_of, run
from tests.support.processes import mark, read_fifo

from robota.core.errors import AbortError, SessionBusyError
from robota.core.events import TextDelta
from robota.core.messages import HistoryEntry
from robota.core.plugin import Plugin
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import Stall, call
from robota.tools.function_tool import tool

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]

ALLOWED = PermissionRules(mode="bypassPermissions")


def look_at_the_end(studio_home: Path) -> dict[str, Any]:
    """A SessionEnd hook that copies what is on the disk at that moment."""
    kept = studio_home / "sessions"
    copy = f"cp {kept}/s-1.json {studio_home}/end.json; cp {kept}/s-1.jsonl {studio_home}/end.jsonl"
    return {"SessionEnd": [run(f"(cat; echo) >> {studio_home}/fired.jsonl; {copy}")]}


async def test_session_end_fires_after_everything_was_saved(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=look_at_the_end(tmp_path))
    await studio.session.run("hello")

    await studio.session.shutdown("prompt_input_exit")

    [told] = studio.fired
    assert told["reason"] == "prompt_input_exit"
    saved = json.loads((tmp_path / "end.json").read_text())
    assert [message["content"] for message in saved["messages"]] == ["You are terse.", "hello", "one"]
    last = json.loads((tmp_path / "end.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["reason"]) == ("session_shutdown", "prompt_input_exit")


async def test_session_end_fires_once_however_often_the_session_is_shut_down(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "SessionEnd"))
    async with studio.session:
        await studio.session.run("hello")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(studio.session.shutdown())
            tasks.create_task(studio.session.shutdown())
        await studio.session.shutdown()

    assert names_of(studio.fired) == ["SessionEnd"]
    assert studio.record_names.count("session_shutdown") == 1


async def test_nobody_is_told_that_it_is_over_before_it_is(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "SessionEnd"))
    await studio.session.run("hello")
    fired: list[int] = []

    async def shut_down() -> None:
        await studio.session.shutdown()
        fired.append(len(studio.fired))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(shut_down())
        tasks.create_task(shut_down())

    assert fired == [1, 1]


async def test_a_session_that_was_never_used_leaves_nothing(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "SessionStart", "SessionEnd"))
    studio.session.name = "idle"
    studio.session.permission_mode = "plan"
    assert studio.session.context_state.used_tokens == 0

    await studio.session.shutdown()

    assert studio.fired == []
    assert not studio.kept.exists()


async def test_a_session_that_is_over_takes_nothing_more(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await studio.session.run("hello")
    await studio.session.shutdown()
    before = studio.path.read_bytes()

    with pytest.raises(SessionBusyError, match="was shut down"):
        await studio.session.run("again")
    with pytest.raises(SessionBusyError, match="was shut down"):
        await studio.session.compact()
    with pytest.raises(SessionBusyError, match="was shut down"):
        studio.session.inject_message("user", "psst")
    with pytest.raises(SessionBusyError, match="was shut down"):
        studio.session.clear_history()
    with pytest.raises(SessionBusyError, match="was shut down"):
        studio.session.add_history_entry(HistoryEntry(category="event", type="note", data={}))
    studio.session.abort()
    studio.session.name = "too late"
    assert [message.content for message in studio.session.messages] == ["You are terse.", "hello", "one"]

    await studio.session.agent.run("behind its back")
    assert studio.path.read_bytes() == before


async def test_a_shutdown_stops_a_run_and_waits_for_its_end(tmp_path: Path) -> None:
    order: list[str] = []
    reached = anyio.Event()

    @tool
    async def tidy() -> None:
        """Wait, and take a moment to clean up."""
        try:
            reached.set()
            await anyio.sleep_forever()
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            order.append("cleaned up")

    studio = Studio(
        tmp_path, [call("tidy")], tools=[tidy], rules=ALLOWED, hooks=listen_to(tmp_path, "Stop", "SessionEnd")
    )

    async def start() -> None:
        with pytest.raises(AbortError):
            await studio.session.run("hello")
        order.append("run ended")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await reached.wait()
            await studio.session.shutdown()
            order.append("shut down")

    assert order == ["cleaned up", "run ended", "shut down"]
    assert names_of(studio.fired) == ["SessionEnd"]
    assert studio.record_names[-2:] == ["session_shutdown", "hook_executed"]
    studio.assert_journal_is_good()
    await assert_free(studio)


async def assert_free(studio: Studio) -> None:
    """Nobody holds the session's lock."""
    again = studio.resume("still here")
    assert await again.session.run("and now?") == "still here"
    await again.session.shutdown()


async def test_a_shutdown_during_a_hook_waits_for_the_end_of_the_run(tmp_path: Path) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    studio = Studio(tmp_path, "never", hooks={"UserPromptSubmit": [run(f"echo up > {fifo}; sleep 600")]})

    async def start() -> None:
        with pytest.raises(AbortError):
            await studio.session.run("hello")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await read_fifo(fifo)
            await studio.session.shutdown()
            assert not studio.session.is_running

    assert studio.record_names[-1] == "session_shutdown"
    await assert_free(studio)


async def test_a_run_cannot_shut_its_own_session_down(tmp_path: Path) -> None:
    @tool
    async def leave() -> str:
        """Shut the session down from a tool."""
        await studio.session.shutdown("logout")
        return "gone"

    studio = Studio(
        tmp_path, [call("leave")], tools=[leave], rules=ALLOWED, hooks=listen_to(tmp_path, "SessionEnd")
    )

    with anyio.fail_after(20), pytest.raises(AbortError):
        await studio.session.run("hello")
    assert "shut it down outside" in studio.session.messages[-1].content
    assert studio.fired == []

    await studio.session.shutdown("clear")
    assert [told["reason"] for told in studio.fired] == ["clear"]
    studio.assert_journal_is_good()
    await assert_free(studio)


async def test_a_shutdown_that_its_own_abort_cuts_off_is_finished_by_the_next_one(tmp_path: Path) -> None:
    @tool
    async def leave(reason: str) -> str:
        """Shut the session down from one of two tools."""
        await studio.session.shutdown(reason)
        return "gone"

    studio = Studio(
        tmp_path,
        [call("leave", "1", reason="one"), call("leave", "2", reason="two")],
        tools=[leave],
        rules=ALLOWED,
        hooks=listen_to(tmp_path, "SessionEnd"),
    )

    with anyio.fail_after(20), pytest.raises(AbortError):
        await studio.session.run("hello")
    await studio.session.shutdown("clear")

    assert [told["reason"] for told in studio.fired] == ["clear"]
    studio.assert_journal_is_good()


async def test_a_listener_may_shut_the_session_down_in_mid_stream(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()])
    ended: list[asyncio.Task[None]] = []

    def leave(_: object) -> None:
        if not ended:
            ended.append(asyncio.ensure_future(studio.session.shutdown()))

    studio.session.events.on(TextDelta, leave)
    with anyio.fail_after(20):
        with pytest.raises(AbortError):
            await studio.session.run("hello")
        await ended[0]

    assert studio.record_names[-1] == "session_shutdown"
    studio.assert_journal_is_good()


async def test_a_session_end_hook_that_fails_changes_nothing(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks={"SessionEnd": [run("echo broken >&2; exit 2")]})
    await studio.session.run("hello")

    await studio.session.shutdown()

    assert "broken" in "".join(studio.notices)
    await assert_free(studio)


async def test_a_shutdown_that_is_cancelled_still_lets_the_session_go(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks={"SessionEnd": [run("sleep 600")]})
    await studio.session.run("hello")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await studio.session.shutdown()

    await studio.session.shutdown()
    studio.assert_journal_is_good()
    await assert_free(studio)


async def test_a_shutdown_that_cannot_be_finished_lets_the_plugins_go(tmp_path: Path) -> None:
    class Keeper(Plugin):
        disposed = False

        async def dispose(self) -> None:
            self.disposed = True

    keeper = Keeper()
    os.mkfifo(tmp_path / "fifo")
    stuck = {"SessionEnd": [run(f"echo > {tmp_path}/fifo; sleep 1000")]}
    studio = Studio(tmp_path, "one", hooks=stuck, plugins=(keeper,))
    await studio.session.run("hello")

    ending = asyncio.create_task(studio.session.shutdown())
    await read_fifo(tmp_path / "fifo")
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending

    assert keeper.disposed
