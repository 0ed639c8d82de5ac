from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support.cancel import AwaitCounter
from tests.support.history import assert_valid_for_a_request

from robota.core.events import RunCompleted, RunFailed, RunInterrupted, RunStarted, ToolEnded, ToolStarted
from robota.core.messages import AssistantMessage, JsonObject, ToolMessage
from robota.core.process_tree import GUARDIAN
from robota.core.robota import Robota
from robota.core.tool import ToolContext, ToolResult
from robota.testing import Delay, ScriptedProvider, call
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import read_tool

pytestmark = pytest.mark.anyio


class Wait:
    """A tool that suspends a few times before it answers."""

    name = "Wait"
    description = "Waits a little."
    parameters: ClassVar[JsonObject] = {"type": "object", "properties": {"times": {"type": "integer"}}}

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        for _ in range(arguments["times"]):
            await asyncio.sleep(0)
        return ToolResult(content="waited")


def make_agent(path: Path) -> tuple[Robota, ScriptedProvider]:
    path.joinpath("notes.txt").write_text("remember the milk\n")
    provider = ScriptedProvider(
        ["Let me ", Delay(0), "look.", call("Wait", "call_0", times=3), call("Wait", "call_1", times=1)],
        [
            "Now all ",
            Delay(0),
            "three.",
            call("Bash", "call_0", command="echo hello; exit 3"),
            call("Read", "call_1", file_path=str(path / "notes.txt")),
            call("Wait", "call_2", times=2),
        ],
        [Delay(0), "Done: ", Delay(0), "milk."],
    )
    agent = Robota(provider, model="scripted", tools=[Wait(), bash_tool(), read_tool()], max_rounds=5)
    return agent, provider


def open_descriptors() -> Counter[str]:
    """What is open; something of earlier may be closed meanwhile, so only what is new counts."""
    listing = Path("/proc/self/fd")
    if not listing.exists():
        return Counter()
    names = []
    for entry in listing.iterdir():
        try:
            names.append(os.readlink(entry))
        except FileNotFoundError:
            continue  # the descriptor of this very listing
    return Counter(name for name in names if "/fd" not in name)


def children() -> set[str]:
    found = set()
    for task in Path("/proc/self/task").iterdir() if Path("/proc/self/task").exists() else ():
        with suppress(FileNotFoundError):  # a thread that ended meanwhile
            found |= set(task.joinpath("children").read_text().split())
    return found


async def run_with_cut(path: Path, at: int, cut: Callable[[Robota, AwaitCounter], None]) -> AwaitCounter:
    agent, provider = make_agent(path)
    seen: list[Any] = []
    agent.events.subscribe(seen.append)
    GUARDIAN.begin("before")  # it comes with the first command and stays
    GUARDIAN.end("before")
    before = open_descriptors(), children()
    tasks = asyncio.all_tasks()
    counter: AwaitCounter
    counter = AwaitCounter(at, lambda: cut(agent, counter))
    task = await counter.run(lambda: agent.run("go"))

    assert asyncio.all_tasks() == tasks
    assert children() == before[1]
    async with asyncio.timeout(10):  # a reader's thread that was left alone closes its file when it is done
        while open_descriptors() - before[0]:  # noqa: ASYNC110 - nobody tells when a thread is done
            await asyncio.sleep(0.001)
    assert provider.open_streams == 0
    assert not agent.is_running
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    assert isinstance(seen[0], RunStarted)
    endings = [event for event in seen if isinstance(event, RunCompleted | RunInterrupted | RunFailed)]
    assert endings == seen[-1:]
    started = [event.call_id for event in seen if isinstance(event, ToolStarted)]
    ended = [event.call_id for event in seen if isinstance(event, ToolEnded)]
    assert sorted(started) == sorted(ended)
    if task.cancelled():
        assert isinstance(endings[0], RunInterrupted)
    else:
        assert task.result().interrupted == isinstance(endings[0], RunInterrupted)
    streamed = "".join(message.content for message in agent.messages if isinstance(message, AssistantMessage))
    assert streamed in "Let me look.Now all three.Done: milk."

    agent.provider = ScriptedProvider("still here")
    assert (await agent.run("and now?")).text == "still here"
    return counter


async def test_an_outer_cancellation_at_every_await_leaves_a_usable_agent(tmp_path: Path) -> None:
    at, cancelled = 1, 0
    while True:
        counter = await run_with_cut(tmp_path, at, lambda _, counter: counter.task.cancel())
        if not counter.reached:
            break
        cancelled += counter.task.cancelled()
        at += 1
    assert cancelled > 20


async def test_an_abort_at_every_await_leaves_a_usable_agent(tmp_path: Path) -> None:
    at, interrupted = 1, 0
    while True:
        counter = await run_with_cut(tmp_path, at, lambda agent, _: agent.abort())
        if not counter.reached:
            break
        assert not counter.task.cancelled()
        interrupted += counter.task.result().interrupted
        at += 1
    assert interrupted > 20


async def test_the_uncut_run_really_does_all_its_work(tmp_path: Path) -> None:
    agent, _ = make_agent(tmp_path)

    result = await agent.run("go")

    assert (result.text, result.rounds) == ("Done: milk.", 3)
    contents = [message.content for message in agent.messages if isinstance(message, ToolMessage)]
    assert contents[:2] == ["waited", "waited"]
    assert "hello" in contents[2]
    assert "remember the milk" in contents[3]
