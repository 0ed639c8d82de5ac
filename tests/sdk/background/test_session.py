"""Background work through the front door: the tools of the model, commands, resume, a kill in the middle."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from robota.core.events import BackgroundTaskChanged
from robota.core.messages import UserMessage
from robota.core.provider import ChatRequest
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.watchdog import WatchdogLimits
from robota.sdk.interactive import InteractiveSession
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "project"
    path.mkdir()
    return path


def open_session(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    more = {"permission_mode": "bypassPermissions", **more}
    provider = replies[0] if isinstance(replies[0], Script) else ScriptedProvider(*replies)
    return InteractiveSession(cwd=project, provider=provider, **more)


class Script(ScriptedProvider):
    """Answers agents by what they were asked, and the session in turn."""

    def __init__(self, agents: dict[str, Any], *replies: Any) -> None:
        super().__init__(*replies, "Ok.")
        self._agents = agents

    async def stream(self, request: ChatRequest) -> AsyncIterator[Any]:
        known = ScriptedProvider([self._agents.get(str(request.messages[-1].content), "")])
        asked = str(request.messages[-1].content) in self._agents
        async for chunk in known.stream(request) if asked else super().stream(request):
            yield chunk


async def test_a_command_in_the_background_is_a_task_and_its_end_is_told(
    project: Path, tmp_path: Path
) -> None:
    start = call("Bash", command="echo done", run_in_background=True)
    store = SessionStore(tmp_path / "sessions")
    async with open_session(project, [start], "Started.", "I see.", session_store=store) as session:
        changes: list[str] = []
        session.events.on(BackgroundTaskChanged, lambda event: changes.append(event.change))
        await session.submit("start it")
        [task] = session.kit.background.list()
        await session.kit.background.wait(task.task_id)
        await session.submit("and now?")
        told = [m for m in session.session.messages if m.metadata.get("origin") == "task"]
        assert isinstance(told[0], UserMessage)
        assert told[0].content.startswith("The background process bash_1 (echo done) has completed.")
        assert [change for change in changes if change != "text_delta"] == ["created", "started", "completed"]
    report = await replay_session(store.journal_path(session.session_id))
    assert report.divergence is None


async def test_the_model_hands_work_to_an_agent_in_the_background_and_goes_on(project: Path) -> None:
    hand = call("Agent", prompt="count the files", description="Counting", run_in_background=True)
    async with open_session(
        project, Script({"count the files": "There are 12."}, [hand], "Begun.")
    ) as session:
        first = await session.submit("how many files are there?")
        assert first.text == "Begun."
        [task] = session.kit.background.list()
        assert (task.kind, task.label, task.agent_type) == ("agent", "Counting", "general-purpose")
        ended = await session.kit.background.wait(task.task_id)
        assert (ended.state, ended.result) == ("completed", "There are 12.")
        await session.submit("and?")
        told = [m.content for m in session.session.messages if m.metadata.get("origin") == "task"]
        assert told == [
            f"The background agent {task.task_id} (Counting) has completed. It reports:\nThere are 12."
        ]


async def test_an_agent_whose_definition_says_so_works_in_the_background(project: Path) -> None:
    agents = project / ".robota" / "agents"
    agents.mkdir(parents=True)
    (agents / "slow.md").write_text("---\nname: slow\ndescription: Slow.\nbackground: true\n---\nBe slow.\n")
    hand = call("Agent", prompt="look", subagent_type="slow")
    provider = Script({"look": "Seen."}, [hand], "Begun.")
    async with open_session(project, provider, trust_project=True) as session:
        await session.submit("go")
        [task] = session.kit.background.list()
        assert (await session.kit.background.wait(task.task_id)).result == "Seen."


async def test_something_scheduled_sleeps_and_then_reminds_the_model_or_begins_an_agent(
    project: Path,
) -> None:
    async with open_session(project, Script({"look": "Seen."}, "Ok.")) as session:
        await session.ready()
        tasks = session.kit.background
        tea = await tasks.spawn(TaskRequest(kind="scheduled", prompt="Make tea.", delay=0.01))
        look = await tasks.spawn(
            TaskRequest(kind="scheduled", prompt="look", agent_type="general-purpose", delay=0.01)
        )
        assert (await tasks.wait(tea.task_id)).state == "completed"
        assert (await tasks.wait(look.task_id)).result == "Seen."
        await session.submit("hello")
        told = [str(m.content) for m in session.session.messages if m.metadata.get("origin") == "task"]
        assert f"It is time for what was scheduled as {tea.task_id}: Make tea." in told
        assert any("It reports:\nSeen." in words for words in told)


async def test_an_agent_that_waits_for_its_turn_is_not_silent(project: Path) -> None:
    replies = {f"{number}": "Done." for number in range(3)}
    async with open_session(project, Script(replies), watchdog=WatchdogLimits(idle=60)) as session:
        await session.ready()
        subagents, tasks = session.kit.subagents, session.kit.background
        async with subagents._turn, subagents._turn, subagents._turn, subagents._turn:  # four are at work
            begun = asyncio.Event()
            tasks.subscribe(lambda event: event.change == "started" and begun.set())
            task = await tasks.spawn(TaskRequest(prompt="0"))
            await begun.wait()
            live = tasks.find(task.task_id)
            assert live is not None
            assert live.watchdog is not None
            live.watchdog._last -= 1_000
            live.watchdog._look()  # what its timer does
            assert tasks.get(task.task_id).state == "running"
            assert live.stop_cause is None
        assert (await tasks.wait(task.task_id)).state == "completed"


async def test_work_beside_a_run_is_replayed_with_it(project: Path, tmp_path: Path) -> None:
    hand = call("Agent", prompt="look", run_in_background=True)
    write = call("Write", file_path="made.txt", content="x")
    store = SessionStore(tmp_path / "sessions")
    provider = Script({"look": "Seen."}, [hand], [write, call("Glob", pattern="*")], "Done.", "Bye.")
    async with open_session(project, provider, session_store=store) as session:
        await session.submit("go")
        [task] = session.kit.background.list()
        await session.kit.background.wait(task.task_id)
        await session.submit("and?")
    report = await replay_session(store.journal_path(session.session_id))
    assert report.divergence is None
    assert [m.content for m in report.messages] == [m.content for m in session.session.messages]


async def test_whoever_makes_a_session_says_how_long_agents_may_hang(project: Path) -> None:
    hand = call("Agent", prompt="hang", run_in_background=True)
    provider = Script({"hang": Stall()}, [hand], "Begun.")
    async with open_session(project, provider, watchdog=WatchdogLimits(max_runtime=0.05)) as session:
        await session.submit("go")
        [task] = session.kit.background.list()
        ended = await session.kit.background.wait(task.task_id)
        assert ended.error is not None
        assert (ended.state, ended.error.reason) == ("failed", "max_runtime")


def start_and_kill(project: Path, store: Path) -> str:
    """The id of a session whose process was killed in the middle of everything."""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "HOME": str(project.parent), "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.sdk.background.killed_process", str(project), str(store)],
        stdout=subprocess.PIPE,
        env=environment,
        cwd=root,
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        session_id = process.stdout.readline().decode().strip()
        process.kill()
    return session_id


async def test_after_a_kill_each_task_is_in_its_true_state_with_its_log(
    project: Path, tmp_path: Path
) -> None:
    store = SessionStore(tmp_path / "sessions")
    os.mkfifo(project / "go")
    session_id = await asyncio.to_thread(start_and_kill, project, tmp_path / "sessions")
    assert session_id
    async with open_session(project, "Again.", session_store=store, resume_session_id=session_id) as session:
        await session.ready()
        tasks = session.kit.background
        thinker, ended, serving = sorted(tasks.list(), key=lambda task: task.label)
        assert (ended.state, ended.exit_code, ended.error) == ("completed", 0, None)
        for task in (serving, thinker):
            assert task.state == "failed"
            assert task.error is not None
            assert (task.error.category, task.error.reason) == ("crash", "stale_worker")
        assert tasks.read_log(ended.task_id).lines == ("finished",)
        assert tasks.read_log(serving.task_id).lines == ("serving",)
        assert tasks.read_log(thinker.task_id).lines == ("thinking about it",)
        assert session.session.past.cut is not None  # the turn that waited for an answer
        assert dict(session.questions.open) == {}  # which nobody waits for any more
        await session.submit("what happened?")
        told = [m.content for m in session.session.messages if m.metadata.get("origin") == "task"]
        assert sum("has failed. The process that worked on it ended" in str(words) for words in told) == 2
        assert not (project / "made.txt").exists()
    release(project / "go")
    record = store.load(session_id)
    assert record is not None
    states = [task["state"] for task in record.background_tasks or ()]
    assert sorted(states) == ["completed", "failed", "failed"]


def release(fifo: Path) -> None:
    """Let the command go that a killed process left behind, where no sandbox has ended it."""
    with suppress(OSError):  # nobody reads from it any more
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
