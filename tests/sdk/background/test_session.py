"""Background work through the front door: the tools of the model, commands, resume, a kill in the middle."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from robota.core.events import BackgroundTaskChanged
from robota.core.messages import UserMessage
from robota.sdk.interactive import InteractiveSession
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "project"
    path.mkdir()
    return path


def open_session(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    more = {"permission_mode": "bypassPermissions", **more}
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), **more)


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
