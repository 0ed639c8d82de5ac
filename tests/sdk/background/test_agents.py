"""Agents that work beside the conversation: what they say and ask, what they may do, how they end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.background.office import Office

from robota.core.background import TaskSnapshot
from robota.core.errors import ProviderError
from robota.core.events import BackgroundTaskChanged, QuestionAsked
from robota.core.questions import PermissionQuestion
from robota.sdk.background.live_task import Work
from robota.sdk.background.request import TaskRequest
from robota.sdk.background.states import TaskError
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.builtins.files import read_tool, write_tool

pytestmark = pytest.mark.anyio

TOOLS = (read_tool(), write_tool())
WRITE = call("Write", file_path="made.txt", content="x")


class Agency(Office):
    """Its agents are children of the session, with a script of their own."""

    def __init__(self, home: Path, *script: Any, **options: Any) -> None:
        super().__init__(home, "The parent answers.", "Again.", tools=TOOLS, **options)
        self.script = ScriptedProvider(*script)

    async def work(self, work: Work) -> str:
        async with self.session.child(work.task_id) as child:
            child.agent.provider = self.script
            result = await child.submit(work.request.prompt)
        if not result.success:
            raise TaskError("runner", str(result.error or "stopped"))
        return result.text

    async def delegate(self, prompt: str = "go") -> TaskSnapshot:
        return await self.tasks.spawn(TaskRequest(prompt=prompt))


async def test_what_an_agent_says_and_does_is_in_its_log_and_shown(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("content")
    reading = call("Read", file_path=str(tmp_path / "project" / "a.txt"))
    agency = Agency(tmp_path, ["Let me look.\n", reading], ["It ", "says content."])
    task = await agency.delegate()
    ended = await agency.tasks.wait(task.task_id)
    assert (ended.state, ended.result) == ("completed", "It says content.")
    log = agency.tasks.read_log(task.task_id).lines
    assert [log[0], log[-1]] == ["Let me look.", "It says content."]
    assert any(line.startswith("[Read ") and line.endswith("a.txt]") for line in log)
    told = agency.told(BackgroundTaskChanged)
    assert [event.text for event in told if event.change in ("tool_start", "tool_end")] == ["Read", "Read"]
    assert "says content." in "".join(event.text for event in told if event.change == "text_delta")
    written = [each["change"] for each in agency.records if each["event"] == "background_task_event"]
    assert written == ["created", "started", "completed"]  # the words are in the agent's own journal
    assert (tmp_path / "sessions" / "s-1" / "subagents" / f"{task.task_id}.jsonl").exists()


async def test_a_question_of_an_agent_is_asked_through_the_session_and_its_task_waits(
    tmp_path: Path,
) -> None:
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def decide(question: PermissionQuestion) -> bool:
        return await answer

    agency = Agency(tmp_path, [WRITE], "written", handler=decide)
    task = await agency.delegate()
    await agency.until(task.task_id, "waiting_permission")
    [asked] = agency.told(QuestionAsked)
    assert asked.question.agent_id == task.task_id
    answer.set_result(True)
    ended = await agency.tasks.wait(task.task_id)
    assert ended.state == "completed"
    assert (tmp_path / "project" / "made.txt").read_text() == "x"
    changes = [change for change in agency.changes if change not in ("tool_start", "tool_end", "text_delta")]
    assert changes == ["created", "started", "permission_request", "updated", "completed"]


async def test_a_no_ends_the_task_and_nothing_was_done(tmp_path: Path) -> None:
    async def refuse(question: PermissionQuestion) -> bool:
        return False

    agency = Agency(tmp_path, [WRITE], "never said", handler=refuse)
    task = await agency.delegate()
    ended = await agency.tasks.wait(task.task_id)
    assert ended.error is not None
    assert (ended.state, ended.error.category) == ("failed", "permission")
    assert ended.error.message.startswith("It may not use Write")
    assert not (tmp_path / "project" / "made.txt").exists()
    assert len(agency.script.requests) == 1


async def test_with_nobody_to_ask_the_call_is_denied_and_the_agent_goes_on(tmp_path: Path) -> None:
    agency = Agency(tmp_path, [WRITE], "I may not write.")
    task = await agency.delegate()
    ended = await agency.tasks.wait(task.task_id)
    assert (ended.state, ended.result) == ("completed", "I may not write.")
    assert not (tmp_path / "project" / "made.txt").exists()
    assert "[Write: denied]" in agency.tasks.read_log(task.task_id).lines


async def test_a_failing_model_is_a_failure_of_the_provider(tmp_path: Path) -> None:
    agency = Agency(tmp_path, [Fail(ProviderError("overloaded"))])
    task = await agency.delegate()
    ended = await agency.tasks.wait(task.task_id)
    assert ended.error is not None
    assert (ended.state, ended.error.category) == ("failed", "provider")
    assert "overloaded" in ended.error.message


async def test_an_agent_hears_what_it_is_told_while_it_works(tmp_path: Path) -> None:
    agency = Agency(tmp_path, ["Working. ", Stall()])
    task = await agency.delegate()
    spoken = asyncio.Event()
    agency.tasks.subscribe(lambda event: event.change == "text_delta" and spoken.set())
    await spoken.wait()
    agency.tasks.send(task.task_id, "Mind the tests.")
    child: Any = agency.session.resources.children[task.task_id]
    assert len(child.inbox) == 1
    assert "> Mind the tests." in agency.tasks.read_log(task.task_id).lines
    await agency.tasks.cancel(task.task_id)
    with pytest.raises(TaskError, match="takes no messages: it is cancelled"):
        agency.tasks.send(task.task_id, "Too late.")


async def test_agents_end_with_their_session(tmp_path: Path) -> None:
    agency = Agency(tmp_path, ["Working. ", Stall()])
    await agency.session.own(agency.tasks)
    task = await agency.delegate()
    await agency.until(task.task_id, "running")
    await agency.session.shutdown()
    assert agency.tasks.get(task.task_id).state == "cancelled"
    assert agency.record_names[-1] == "session_shutdown"


async def test_the_model_hears_of_the_end_before_its_next_round(tmp_path: Path) -> None:
    agency = Agency(tmp_path, "Found three.")
    task = await agency.delegate("count")
    await agency.tasks.wait(task.task_id)
    await agency.session.run("go on")
    request = agency.provider.requests[0]
    assert any("It reports:\nFound three." in str(message.content) for message in request.messages)
