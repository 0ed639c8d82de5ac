"""Stopping a session wherever it is: the run ends with `AbortError`, and everything goes on afterwards."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sessions.live_session import Studio, listen_to, names_of, run
from tests.support.processes import mark, read_fifo

from robota.core.errors import AbortError
from robota.core.events import (
    AssistantMessageCommitted,
    Compacted,
    RunCompleted,
    RunInterrupted,
    SessionInit,
    TextDelta,
)
from robota.core.messages import AssistantMessage, ToolMessage
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import ModelServer, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]

LONG = "x" * 13_000
ALLOWED = PermissionRules(mode="bypassPermissions")
ADDITION = [call("add", a=1, b=2)]


class Gate:
    """A place where a session gets stuck until it is aborted."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.left = False

    async def wait(self, *_: object) -> Any:
        self.reached.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.left = True


async def aborted(studio: Studio, work: Any, reached: Callable[[], Any]) -> AbortError:
    """Start the work, abort it when it is where it should be, and expect that it says so."""
    outcomes: list[AbortError] = []

    async def start() -> None:
        try:
            await work
        except AbortError as error:
            outcomes.append(error)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start)
            await reached()
            studio.session.abort()
    [error] = outcomes
    assert not studio.session.is_running
    return error


async def assert_it_goes_on(studio: Studio) -> None:
    studio.session.agent.provider = ScriptedProvider("still here")
    assert await studio.session.run("and now?") == "still here"
    await studio.session.shutdown()
    studio.assert_journal_is_good()


def hook_that_hangs(home: Path, event: str) -> tuple[dict[str, Any], Callable[[], Any]]:
    """A hook that tells when it has started and then does not end; only its first run does so."""
    fifo = home / "started"
    os.mkfifo(fifo)
    hang = f"test -e {home}/hung || {{ touch {home}/hung; echo up > {fifo}; sleep 600; }}"
    return {event: [run(hang)]}, lambda: read_fifo(fifo)


# --- where it may be ----------------------------------------------------------------------------------------


async def test_an_abort_while_the_journal_is_opened_is_not_lost(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "never")
    stop = studio.session.events.on(SessionInit, lambda _: studio.session.abort())

    with pytest.raises(AbortError):
        await studio.session.run("hello")

    stop()
    assert studio.provider.requests == []
    assert "interrupted" in [entry["event"] for entry in studio.log()]
    await assert_it_goes_on(studio)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
async def test_an_abort_during_a_hook_before_the_model_was_asked(tmp_path: Path, event: str) -> None:
    hooks, started = hook_that_hangs(tmp_path, event)
    studio = Studio(tmp_path, "never", hooks=hooks)

    await aborted(studio, studio.session.run("hello"), started)

    assert studio.provider.requests == []
    assert studio.session.messages == []
    assert "interrupted" in [entry["event"] for entry in studio.log()]
    await assert_it_goes_on(studio)


async def test_an_abort_in_the_middle_of_an_answer_keeps_its_words(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", "lo", Stall()], hooks=listen_to(tmp_path, "Stop", "StopFailure"))
    async with studio.session.events.open(TextDelta) as deltas:
        await aborted(studio, studio.session.run("hello"), lambda: second(deltas))

    answer = studio.session.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.content, answer.state) == ("Hello", "interrupted")
    assert studio.provider.open_streams == 0
    assert studio.session.message_count == 0
    assert studio.fired == []
    await assert_it_goes_on(studio)


async def second(events: Any) -> None:
    await anext(events)
    await anext(events)


async def test_an_abort_during_a_tool_answers_its_call(tmp_path: Path) -> None:
    gate = Gate()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        await gate.wait()

    studio = Studio(tmp_path, [call("wait")], tools=[wait], rules=ALLOWED)
    await aborted(studio, studio.session.run("hello"), gate.reached.wait)

    assert gate.left
    result = studio.session.messages[-1]
    assert isinstance(result, ToolMessage)
    assert "interrupted" in result.content
    await assert_it_goes_on(studio)


async def test_an_abort_while_the_user_is_asked_counts_as_no(tmp_path: Path) -> None:
    gate = Gate()
    studio = Studio(tmp_path, ADDITION, handler=gate.wait)
    await aborted(studio, studio.session.run("hello"), gate.reached.wait)

    assert gate.left
    [decision] = [record["verdict"] for record in studio.records if "verdict" in record]
    assert decision["decision"] != "allow"
    assert decision["by"] == "nobody"
    await assert_it_goes_on(studio)


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse"])
async def test_an_abort_during_a_hook_around_a_tool(tmp_path: Path, event: str) -> None:
    hooks, started = hook_that_hangs(tmp_path, event)
    studio = Studio(tmp_path, ADDITION, hooks=hooks, rules=ALLOWED)

    await aborted(studio, studio.session.run("hello"), started)

    await assert_it_goes_on(studio)


@pytest.mark.parametrize("event", ["Stop", "StopFailure"])
async def test_an_abort_during_a_hook_after_the_answer_keeps_the_answer(tmp_path: Path, event: str) -> None:
    hooks, started = hook_that_hangs(tmp_path, event)
    replies = ["An answer."] if event == "Stop" else []
    studio = Studio(tmp_path, *replies, hooks=hooks)

    await aborted(studio, studio.session.run("hello"), started)

    assert isinstance(studio.session.messages[-1], AssistantMessage)
    await assert_it_goes_on(studio)


async def test_an_abort_during_an_automatic_compaction_leaves_the_conversation_as_it_was(
    tmp_path: Path,
) -> None:
    gate = Gate()
    studio = Studio(tmp_path, LONG, lambda _: (gate.reached.set(), [Stall()])[1], context_window=4_000)
    await studio.session.run("tell me")
    before = studio.session.messages

    await aborted(studio, studio.session.run("and now?"), gate.reached.wait)

    assert studio.session.messages == before
    assert studio.told(Compacted) == []
    studio.session.auto_compact_threshold = False
    await assert_it_goes_on(studio)


async def test_an_abort_of_compact_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    gate = Gate()
    studio = Studio(tmp_path, "one", lambda _: (gate.reached.set(), [Stall()])[1])
    await studio.session.run("tell me")
    before = studio.session.messages

    error = await aborted(studio, studio.session.compact(), gate.reached.wait)

    assert "the conversation is as it was" in str(error)
    assert studio.session.messages == before
    await assert_it_goes_on(studio)


async def test_an_abort_behind_the_summary_says_that_it_is_there(tmp_path: Path) -> None:
    hooks, started = hook_that_hangs(tmp_path, "PostCompact")
    studio = Studio(tmp_path, "one", "what was said", hooks=hooks)
    await studio.session.run("tell me")

    error = await aborted(studio, studio.session.compact(), started)

    assert "the summary is in its place" in str(error)
    assert len(studio.told(Compacted)) == 1
    await assert_it_goes_on(studio)


async def test_an_abort_while_stop_hooks_keep_the_turn_going_ends_it(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", ["two", Stall()], hooks={"Stop": [run("echo more >&2; exit 2")]})

    async def in_the_second_run() -> None:
        async with studio.session.events.open(TextDelta) as deltas:
            async for delta in deltas:
                if delta.text == "two":
                    return

    await aborted(studio, studio.session.run("hello"), in_the_second_run)
    assert len(studio.told(RunInterrupted)) == 1


# --- at the edge of a run ----------------------------------------------------------------------------------


async def test_an_abort_without_a_run_does_nothing(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    studio.session.abort()
    assert await studio.session.run("hello") == "one"
    studio.session.abort()
    assert await studio.session.run("again") == "two"
    assert not (studio.kept / "never").exists()


async def test_an_abort_when_the_run_is_over_changes_nothing(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", ["t", "wo"])
    stop = studio.session.events.on(RunCompleted, lambda _: studio.session.abort())

    assert await studio.session.run("hello") == "one"
    stop()

    assert await studio.session.run("again") == "two"
    studio.assert_journal_is_good()


async def test_an_abort_in_the_last_moment_is_stronger_than_stop_hooks(tmp_path: Path) -> None:
    hooks = {"Stop": [run("echo more >&2; exit 2")]}
    studio = Studio(tmp_path, "one", "two", "three", hooks=hooks)
    studio.session.events.on(AssistantMessageCommitted, lambda _: studio.session.abort())

    with pytest.raises(AbortError):
        await studio.session.run("hello")

    assert len(studio.provider.requests) == 1


async def test_an_abort_at_once_is_not_lost(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()])

    async def start() -> None:
        with pytest.raises(AbortError):
            await studio.session.run("hello")

    with anyio.fail_after(20):
        task = asyncio.ensure_future(start())
        await asyncio.sleep(0)  # the first step of the run, and no more
        studio.session.abort()
        await task
    await assert_it_goes_on(studio)


async def test_aborting_twice_is_harmless(tmp_path: Path) -> None:
    cleaned: list[str] = []
    gate = Gate()

    @tool
    async def tidy() -> None:
        """Wait, and take a moment to clean up."""
        try:
            await gate.wait()
        finally:
            studio.session.abort()
            await asyncio.sleep(0)
            cleaned.append("up")

    studio = Studio(tmp_path, [call("tidy")], tools=[tidy], rules=ALLOWED)

    await aborted(studio, studio.session.run("hello"), gate.reached.wait)

    assert cleaned == ["up"]
    studio.session.abort()
    await assert_it_goes_on(studio)


async def test_an_abort_comes_from_any_thread(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()])

    def from_elsewhere(_: object) -> None:
        threading.Thread(target=studio.session.abort).start()

    stop = studio.session.events.on(TextDelta, from_elsewhere)
    with anyio.fail_after(20), pytest.raises(AbortError):
        await studio.session.run("hello")
    stop()
    await assert_it_goes_on(studio)


async def test_an_abort_comes_from_a_signal_handler(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()])
    stop = studio.session.events.on(TextDelta, lambda _: os.kill(os.getpid(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: studio.session.abort())
    try:
        with anyio.fail_after(20), pytest.raises(AbortError):
            await studio.session.run("hello")
    finally:
        signal.signal(signal.SIGUSR1, before)
    stop()
    await assert_it_goes_on(studio)


# --- what hooks and listeners hear --------------------------------------------------------------------------


async def test_an_abort_is_no_failure(tmp_path: Path) -> None:
    studio = Studio(
        tmp_path, ["Hel", Stall()], hooks=listen_to(tmp_path, "Stop", "StopFailure", "SessionEnd")
    )
    studio.session.events.on(TextDelta, lambda _: studio.session.abort())

    with pytest.raises(AbortError, match="stopped by the user"):
        await studio.session.run("hello")
    await studio.session.shutdown()

    assert names_of(studio.fired) == ["SessionEnd"]
    assert [entry for entry in studio.log() if entry["event"] == "error"] == []
    assert [entry["content"] for entry in studio.log() if entry["event"] == "interrupted"] == ["Hel"]


async def test_an_abort_ends_a_real_connection(tmp_path: Path) -> None:
    words = Gate()
    async with (
        ModelServer(["Hel", Stall()], "still here") as server,
        OpenAICompatibleProvider(api_key="k", base_url=f"{server.url}/v1", model="m") as provider,
    ):
        studio = Studio(tmp_path, provider=provider, model="m")
        studio.session.events.on(TextDelta, lambda _: words.reached.set())
        await aborted(studio, studio.session.run("hello"), words.reached.wait)

        assert studio.session.messages[-1].content == "Hel"
        assert await studio.session.run("and now?") == "still here"
        await studio.session.shutdown()
    studio.assert_journal_is_good()
