"""Work beside the conversation: states, limits, logs, groups, and what a later process knows of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from robota import InteractiveSession, create_project_session_store
from robota.core import BackgroundGroupChanged, BackgroundTaskChanged
from robota.sdk import TaskError, TaskRequest, WatchdogLimits
from robota.testing import ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
FREE = "bypassPermissions"


def make(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    more.setdefault("permission_mode", FREE)
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), **more)


def changes_of(session: InteractiveSession) -> list[str]:
    heard: list[str] = []
    session.events.on(BackgroundTaskChanged, lambda event: heard.append(event.change))
    return heard


async def reach(session: InteractiveSession, state: str, count: int = 1) -> None:
    """Wait until so many tasks are in that state."""
    changed = asyncio.Event()
    stop = session.events.on(BackgroundTaskChanged, lambda event: changed.set())
    try:
        while [task.state for task in session.kit.background.list()].count(state) < count:  # type: ignore[arg-type]
            changed.clear()
            await changed.wait()
    finally:
        stop()


async def test_a_task_goes_from_queued_over_running_to_completed(project: Path) -> None:
    async with make(project, "Found it.") as session:
        await session.ready()
        heard = changes_of(session)
        begun = await session.kit.background.spawn(TaskRequest(prompt="Look", agent_type="Explore"))
        assert begun.state == "queued"
        ended = await session.kit.background.wait(begun.task_id)
        assert ended.state == "completed"
        assert ended.result == "Found it."
        assert heard[:2] == ["created", "started"]
        assert heard[-1] == "completed"
        session.kit.background.close(begun.task_id)
        assert heard[-1] == "closed"
        assert session.kit.background.list() == ()


async def test_at_most_four_work_at_once(project: Path) -> None:
    async with make(project, *[[Stall()]] * 6) as session:
        await session.ready()
        tasks = [await session.kit.background.spawn(TaskRequest(prompt=f"Task {n}")) for n in range(6)]
        await reach(session, "running", 4)
        states = [task.state for task in session.kit.background.list()]
        assert states.count("running") == 4
        assert states.count("queued") == 2
        for task in tasks:
            assert (await session.kit.background.cancel(task.task_id)).state == "cancelled"


async def test_only_what_has_ended_is_closed_and_unknown_tasks_are_named(project: Path) -> None:
    async with make(project, [Stall()]) as session:
        await session.ready()
        background = session.kit.background
        task = await background.spawn(TaskRequest(prompt="Wait"))
        with pytest.raises(TaskError, match="cancel it first"):
            background.close(task.task_id)
        with pytest.raises(TaskError, match="no background task 'task-nowhere'"):
            await background.cancel("task-nowhere")
        with pytest.raises(TaskError) as caught:
            await background.spawn(TaskRequest(prompt="  "))
        assert caught.value.failure.category == "validation"
        await background.cancel(task.task_id)


async def test_a_silent_agent_is_ended_with_the_reason(project: Path) -> None:
    async with make(project, [Stall()], watchdog=WatchdogLimits(idle=0.1)) as session:
        await session.ready()
        task = await session.kit.background.spawn(TaskRequest(prompt="Wait"))
        ended = await session.kit.background.wait(task.task_id)
        assert ended.state == "failed"
        assert ended.error is not None
        assert ended.error.category == "timeout"
        assert ended.error.reason == "idle"


async def test_an_agent_that_says_too_much_is_ended(project: Path) -> None:
    words = [f"{number} " * 50 for number in range(200)]
    async with make(project, words, watchdog=WatchdogLimits(output_bytes=2_000)) as session:
        await session.ready()
        task = await session.kit.background.spawn(TaskRequest(prompt="Talk"))
        ended = await session.kit.background.wait(task.task_id)
        assert ended.state == "failed"
        assert ended.error is not None
        assert ended.error.reason == "output_limit"


async def test_the_documented_limits_are_the_defaults() -> None:
    limits = WatchdogLimits()
    assert (limits.idle, limits.max_runtime, limits.output_bytes, limits.deltas) == (
        240.0,
        0.0,
        256_000,
        20_000,
    )
    assert (limits.repetition_window, limits.repetition_threshold) == (800, 8)


async def test_a_command_in_the_background_is_a_task_with_a_log_in_pages(project: Path) -> None:
    command = "for n in $(seq 1 250); do echo line $n; done"
    async with make(
        project, [call("Bash", command=command, run_in_background=True)], "Started.", "Done."
    ) as session:
        await session.submit("Go")
        (task,) = session.kit.background.list()
        assert task.kind == "process"
        ended = await session.kit.background.wait(task.task_id)
        assert (ended.state, ended.exit_code) == ("completed", 0)
        page = session.kit.background.read_log(task.task_id)
        assert len(page.lines) == 200
        shown = await session.execute_command("background", f"read {task.task_id} 200")
        assert shown is not None
        assert "line 250" in shown.message
        assert "line 100\n" not in shown.message


async def test_a_command_that_fails_says_how(project: Path) -> None:
    async with make(
        project, [call("Bash", command="exit 7", run_in_background=True)], "Started.", "Oh."
    ) as session:
        await session.submit("Go")
        (task,) = session.kit.background.list()
        ended = await session.kit.background.wait(task.task_id)
        assert ended.state == "failed"
        assert ended.error is not None
        assert ended.error.category == "process"
        assert "7" in ended.error.message


@pytest.mark.parametrize(("policy", "needs"), [("wait_all", 2), ("wait_any", 1)])
async def test_groups_end_by_their_policy(project: Path, policy: Any, needs: int) -> None:
    replies = ["One.", "Two."] if needs == 2 else ["One.", [Stall()]]
    async with make(project, *replies) as session:
        await session.ready()
        heard: list[str] = []
        session.events.on(BackgroundGroupChanged, lambda event: heard.append(event.change))
        groups = session.kit.background.groups
        group = await groups.spawn([TaskRequest(prompt="a"), TaskRequest(prompt="b")], policy=policy)
        ended = await groups.wait(group.group_id)
        done = [task for task in session.kit.background.list() if task.state == "completed"]
        assert len(done) >= needs
        assert len(ended.summary) <= 1_000
        assert heard[0] == "created"
        assert heard[-1] == "completed"


async def test_agents_in_parallel_by_command(project: Path) -> None:
    async with make(project, "One.", "Two.") as session:
        await session.ready()
        answer = await session.execute_command("agent", "parallel a=Explore:look b=Plan:think")
        assert answer is not None
        assert answer.success, answer.message
        tasks = session.kit.background.list()
        assert [task.agent_type for task in tasks] == ["Explore", "Plan"]
        for task in tasks:
            assert (await session.kit.background.wait(task.task_id)).state == "completed"


async def test_the_model_hears_of_an_end_with_the_next_prompt(project: Path) -> None:
    provider = ScriptedProvider("The report.", "Thanks.")
    async with InteractiveSession(cwd=project, provider=provider, permission_mode=FREE) as session:
        await session.ready()
        task = await session.kit.background.spawn(TaskRequest(prompt="Look", label="the search"))
        await reach(session, "completed")
        await session.submit("And?")
    told = str(provider.requests[-1].messages)
    assert "The report." in told
    assert task.task_id in told


async def test_a_later_process_knows_how_tasks_ended(project: Path, tmp_path: Path) -> None:
    store = create_project_session_store(tmp_path / "sessions")
    async with make(project, "Found.", [Stall()], session_store=store) as session:
        await session.ready()
        done = await session.kit.background.spawn(TaskRequest(prompt="Look"))
        await session.kit.background.wait(done.task_id)
        cut = await session.kit.background.spawn(TaskRequest(prompt="Wait"))
        await reach(session, "running")
    again = make(project, session_store=store, resume_session_id=session.session_id)
    async with again:
        await again.ready()
        states = {task.task_id: task.state for task in again.kit.background.list()}
        assert states == {done.task_id: "completed", cut.task_id: "cancelled"}
        assert "Found." in "\n".join(again.kit.background.read_log(done.task_id).lines)
    record = store.load(session.session_id)
    assert record is not None
    assert {task["taskId"] for task in record.background_tasks or []} == set(states)
