"""`/background` and `/agent`: what may be typed, and what it does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from robota.core.events import BackgroundTaskChanged
from robota.core.provider import ChatRequest
from robota.sdk.commands.effects import AgentSwitcher, CommandResult, LogShown, TasksShown
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "project"
    path.mkdir()
    return path


class Bench:
    """A session whose agents answer what they were asked, or hang."""

    def __init__(self, project: Path, *replies: Any) -> None:
        self.provider = ScriptedProvider(*replies)
        self.session = InteractiveSession(
            cwd=project, provider=self.provider, permission_mode="bypassPermissions"
        )

    async def __aenter__(self) -> Bench:
        await self.session.ready()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.shutdown()

    async def type(self, line: str) -> CommandResult:
        name, _, args = line.removeprefix("/").partition(" ")
        result = await self.session.execute_command(name, args)
        assert result is not None
        return result

    async def begin(self, line: str) -> str:
        """The id of the task that a line begins."""
        result = await self.type(line)
        assert result.success, result.message
        assert isinstance(result.effect, TasksShown)
        return result.effect.tasks[0].task_id

    def asked(self, request: ChatRequest) -> str:
        return str(request.messages[-1].content)


async def test_an_agent_is_begun_watched_and_forgotten(project: Path) -> None:
    async with Bench(project, "It has three parts.") as bench:
        task = await bench.begin("/agent run explain the user's project")
        assert (
            await bench.type(f"/agent wait {task}")
        ).message == f"{task} is completed. It has three parts."
        assert bench.asked(bench.provider.requests[0]) == "explain the user's project"
        listed = await bench.type("/agent list")
        assert listed.message.startswith(f"{task}  completed")
        log = await bench.type(f"/agent read {task}")
        assert log.message == "It has three parts."
        assert isinstance(log.effect, LogShown)
        assert dict(log.data)["page"]["lines"] == ["It has three parts."]
        assert (await bench.type(f"/agent close {task}")).success
        assert (await bench.type("/background list")).message == "Nothing works in the background."


@pytest.mark.parametrize(
    ("line", "agent", "model", "prompt"),
    [
        ("/agent run --agent Explore look around", "Explore", "", "look around"),
        ("/agent run --type=Explore --model m-2 look", "Explore", "m-2", "look"),
        ("/agent -a Explore 'look around'", "Explore", "", "look around"),
        ('/agent run --model "m 2" say "hi" to --all', "", "m 2", 'say "hi" to --all'),
        ('/agent run "say \\"hi\\""', "", "", 'say "hi"'),
        ("/agent run --isolation none don't stop", "", "", "don't stop"),
    ],
)
async def test_options_come_before_the_prompt_which_stays_as_it_is(
    project: Path, line: str, agent: str, model: str, prompt: str
) -> None:
    async with Bench(project, "ok") as bench:
        task = bench.session.kit.background.get(await bench.begin(line))
        assert (task.agent_type, task.model, task.prompt) == (agent, model, prompt)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/agent run --agent Nobody look", "Unknown agent type: Nobody"),
        ("/agent run --colour red look", "There is no option --colour; there are --agent"),
        ("/agent run --agent", "The option --agent needs a value."),
        ("/agent run --isolation full look", "--isolation is none or worktree, not full."),
        ("/agent run", "needs a prompt"),
        ("/agent parallel", "Usage: /agent parallel"),
        ("/agent parallel Explore:look nobody:look", "is not a job"),
        ("/agent parallel 'Explore:look", "Close every quote"),
        ("/agent rum look", "did you mean 'run'?"),
        ("/agent wait task-x", "There is no background task 'task-x'"),
        ("/agent send task-x", "Usage: /agent send"),
        ("/background read", "Usage: /background"),
        ("/background read task-x first", "Usage: /background"),
        ("/background cancel", "There is no background task ''"),
        ("/background close task-x", "There is no background task"),
        ("/background lits", "did you mean 'list'?"),
    ],
)
async def test_what_cannot_be_done_says_why_and_begins_nothing(project: Path, line: str, words: str) -> None:
    async with Bench(project) as bench:
        result = await bench.type(line)
        assert not result.success
        assert words in result.message
        assert bench.session.kit.background.list() == ()


async def test_several_agents_at_once_and_what_came_of_them(project: Path) -> None:
    async with Bench(project, "one", "two") as bench:
        begun = await bench.type("/agent parallel docs=Explore:'read the docs' general-purpose:count")
        assert begun.success, begun.message
        assert isinstance(begun.effect, TasksShown)
        tasks = begun.effect.tasks
        assert [(task.label, task.agent_type, task.prompt) for task in tasks] == [
            ("docs", "Explore", "read the docs"),
            ("general-purpose", "general-purpose", "count"),
        ]
        done = await bench.type(f"/agent wait {tasks[0].group_id}")
        names = [line.partition(" ")[0] for line in done.message.splitlines()]
        assert names == ["docs", "general-purpose"]
        assert done.message.count(": completed, ") == 2


async def test_an_agent_is_told_something_and_stopped(project: Path) -> None:
    async with Bench(project, ["Working.\n", Stall()]) as bench:
        spoken = asyncio.Event()
        bench.session.events.on(
            BackgroundTaskChanged, lambda event: event.change == "text_delta" and spoken.set()
        )
        task = await bench.begin("/agent run work")
        await spoken.wait()
        switcher = await bench.type("/agent")
        assert isinstance(switcher.effect, AgentSwitcher)
        assert [each.task_id for each in switcher.effect.tasks] == [task]
        assert not (await bench.type(f"/agent close {task}")).success
        assert (await bench.type(f"/agent send {task} mind the tests")).success
        short = task.removeprefix("task-")[:4]
        assert (await bench.type(f"/agent stop {short}")).message == f"{task} is cancelled."
        assert (await bench.type(f"/agent stop {task}")).message == f"{task} is cancelled already."


async def test_a_command_in_the_background_is_read_page_by_page_and_ended(project: Path) -> None:
    start = call("Bash", command="seq 300; read x < go", run_in_background=True)
    async with Bench(project, [start], "Started.") as bench:
        all_there = asyncio.Event()
        bench.session.events.on(
            BackgroundTaskChanged, lambda event: "300\n" in event.text and all_there.set()
        )
        os.mkfifo(project / "go")
        await bench.session.submit("start it")
        await all_there.wait()
        first = await bench.type("/background read bash_1")
        lines = first.message.splitlines()
        assert (lines[0], lines[199]) == ("1", "200")
        assert lines[200].startswith("[100 more lines: /background read task-")
        rest = await bench.type(lines[200].partition(": ")[2].removesuffix("]"))
        assert rest.message.splitlines()[-1] == "300"
        assert (await bench.type("/background cancel bash_1")).success
        assert "  cancelled  bash_1  seq 300" in (await bench.type("/background")).message
