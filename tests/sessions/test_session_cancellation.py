"""A session cut at every await: from outside, and by its own `abort`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sessions.live_session import Studio
from tests.support.cancel import AwaitCounter
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import AbortError
from robota.core.events import RunCompleted, RunFailed, RunInterrupted, RunStarted, TextDelta
from robota.core.hooks import HookOutcome
from robota.core.messages import Json
from robota.sessions.replay.session_replay import replay_session
from robota.testing import Delay, ScriptedProvider, Stall, call
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import write_tool
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


class SlowHooks:
    """Hooks for everything that suspend once; the first Stop wants the model to go on."""

    def __init__(self, *, silent: bool = False) -> None:
        self.stops = 0
        self.silent = silent

    def has(self, event: str) -> bool:
        return not self.silent

    async def fire(
        self, event: str, hook_input: Mapping[str, Json], *, call_id: str = "", matches_rule: Any = None
    ) -> HookOutcome:
        if self.silent:
            return HookOutcome(event=event)
        await asyncio.sleep(0)
        self.stops += event == "Stop"
        if event == "Stop" and self.stops == 1:
            return HookOutcome(event=event, blocked=True, reason="check again")
        return HookOutcome(event=event)


@tool
async def wait(times: int) -> str:
    """Wait a little."""
    for _ in range(times):
        await asyncio.sleep(0)
    return "waited"


async def slow_yes(request: object) -> bool:
    await asyncio.sleep(0)
    return True


async def make_session(home: Path) -> Studio:
    """One whose next prompt needs a compaction, hooks, questions, tools and a second go."""
    home.mkdir()
    hooks = SlowHooks(silent=True)
    studio = Studio(
        home,
        "x" * 13_000,
        [Delay(0), "what was said"],
        ["Let me ", Delay(0), call("wait", "c0", times=2), call("Write", "c1", file_path="a", content="b")],
        ["One ", Delay(0), "more.", call("wait", "c2", times=1)],
        [Delay(0), "Done."],
        ["Checked", Delay(0), "."],
        tools=[wait, write_tool(), bash_tool()],
        handler=slow_yes,
        context_window=4_000,
        hook_port=hooks,
    )
    await studio.session.run("tell me")
    hooks.silent = False
    studio.events.clear()
    return studio


async def cut(home: Path, at: int, how: Callable[[Studio, AwaitCounter], None]) -> AwaitCounter:
    studio = await make_session(home / f"cut-{at}")
    tasks = asyncio.all_tasks()
    counter: AwaitCounter
    counter = AwaitCounter(at, lambda: how(studio, counter))

    await counter.run(lambda: studio.session.run("go"))

    assert asyncio.all_tasks() == tasks
    assert not studio.session.is_running
    assert studio.provider.open_streams == 0
    assert_valid_for_a_request(studio.session.agent.conversation.messages_for_api())
    started = len(studio.told(RunStarted))
    endings = [
        event for event in studio.events if isinstance(event, RunCompleted | RunInterrupted | RunFailed)
    ]
    assert len(endings) == started

    studio.session.agent.provider = ScriptedProvider("still here", repeat=True)
    assert await studio.session.run("and now?") == "still here"
    await studio.session.shutdown()
    studio.assert_journal_is_good()
    return counter


async def test_a_cancellation_from_outside_at_every_await_is_not_swallowed(tmp_path: Path) -> None:
    at, cancelled = 1, 0
    while True:
        counter = await cut(tmp_path, at, lambda _, counter: counter.task.cancel())
        if not counter.reached:
            break
        assert counter.task.cancelled() or counter.task.exception() is None
        cancelled += counter.task.cancelled()
        at += 1
    assert at > 30
    assert cancelled >= at - 3  # the last awaits may be behind the answer


async def test_an_abort_at_every_await_ends_with_an_abort_error(tmp_path: Path) -> None:
    at, aborted = 1, 0
    while True:
        counter = await cut(tmp_path, at, lambda studio, _: studio.session.abort())
        if not counter.reached:
            break
        assert not counter.task.cancelled()
        assert isinstance(counter.task.exception(), AbortError | None)
        aborted += counter.task.exception() is not None
        at += 1
    assert at > 30
    assert aborted >= at - 3


async def test_a_timeout_around_a_run_is_a_timeout(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()], "better")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await studio.session.run("hello")

    assert studio.session.messages[-1].content == "Hel"
    assert await studio.session.run("again") == "better"
    studio.assert_journal_is_good()


async def test_a_scope_around_a_run_ends_it_as_a_cancellation(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()], "better")

    with anyio.CancelScope() as scope:
        studio.session.events.on(TextDelta, lambda _: scope.cancel())
        await studio.session.run("hello")

    assert scope.cancelled_caught
    assert studio.session.messages[-1].content == "Hel"
    assert not studio.session.is_running


async def test_a_cancellation_and_an_abort_at_the_same_time_is_a_cancellation(tmp_path: Path) -> None:
    studio = Studio(tmp_path, ["Hel", Stall()], "better")
    task = asyncio.ensure_future(studio.session.run("hello"))

    def both(_: object) -> None:
        studio.session.abort()
        task.cancel()

    studio.session.events.on(TextDelta, both)
    await asyncio.wait([task])

    assert task.cancelled()
    assert not studio.session.is_running


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop"])
async def test_a_cancellation_outside_the_agents_run_is_on_record_and_can_be_repeated(
    tmp_path: Path, event: str
) -> None:
    reached = asyncio.Event()

    class HangingHooks(SlowHooks):
        async def fire(self, name: str, hook_input: Mapping[str, Json], **more: Any) -> HookOutcome:
            if name == event:
                reached.set()
                await asyncio.Event().wait()
            outcome = HookOutcome(event=name)
            studio.session.log.record_hooks(outcome, str(more.get("call_id", "")))
            return outcome

    studio = Studio(tmp_path, "one", "never", hook_port=HangingHooks())
    work = studio.session.run("hello")
    if event == "PreCompact":
        await work
        work = studio.session.compact()
    task = asyncio.ensure_future(work)
    await reached.wait()
    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert studio.log()[-1]["event"] == "interrupted"
    await studio.session.shutdown()
    assert (await replay_session(studio.path)).divergence is None
