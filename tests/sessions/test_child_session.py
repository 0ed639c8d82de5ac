"""Sessions below a session: their rights, their budget, their journal, and what the parent hears of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.enforced_agent import Person
from tests.sessions.live_session import Studio, fired, heard

from robota.core.errors import ConfigurationError, SessionBusyError
from robota.core.events import (
    PromptQueued,
    QuestionAsked,
    RunCompleted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    TurnEvent,
)
from robota.core.messages import ToolMessage
from robota.core.questions import PermissionQuestion
from robota.sessions.child import RESULT_KEPT
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.usage.budget import Budget
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.files import read_tool, write_tool

pytestmark = pytest.mark.anyio

TOOLS = (read_tool(), write_tool())
WRITE = call("Write", file_path="made.txt", content="x")


def results(session: Session) -> list[str]:
    return [message.content for message in session.messages if isinstance(message, ToolMessage)]


def inner(studio: Studio, kind: type[TurnEvent]) -> list[Any]:
    return [event.inner for event in studio.told(SubagentEvent) if isinstance(event.inner, kind)]


async def test_a_child_may_do_at_most_what_its_parent_may(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "done", [WRITE], "done", tools=TOOLS)
    child = studio.session.child("helper", rules=PermissionRules(mode="bypassPermissions"))
    await child.run("write")
    assert results(child)[0].startswith("Error: Permission denied. Nobody can be asked here")

    studio.session.reload(rules=PermissionRules(mode="acceptEdits"))  # counts for the child as well
    await child.run("again")
    assert results(child)[1].startswith("Written")


async def test_a_child_has_rules_of_its_own_besides(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "done", tools=TOOLS, rules=PermissionRules(mode="bypassPermissions"))
    child = studio.session.child("reader", rules=PermissionRules(mode="plan"))
    await child.run("write")
    assert "the mode plan forbids" in results(child)[0]


async def test_questions_of_a_child_are_asked_where_its_parents_are(tmp_path: Path) -> None:
    person = Person("allow-session")
    studio = Studio(tmp_path, [WRITE], "done", [WRITE], "done", tools=TOOLS, handler=person)
    child = studio.session.child("helper")
    await child.run("write")
    [asked] = studio.told(QuestionAsked)
    assert isinstance(asked.question, PermissionQuestion)
    assert (asked.question.agent_id, asked.question.tool_name) == ("helper", "Write")
    await studio.session.run("write too")  # what was allowed for the session counts here
    assert len(person.asked) == 1
    assert results(studio.session)[0].startswith("Error: File exists and has not been read yet")


async def test_a_child_spends_its_parents_budget(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "1", "2", "3", budget=Budget(max_requests=2))
    child = studio.session.child("helper")
    await child.run("one")
    await studio.session.run("two")
    result = await child.submit("three")
    assert result.error is not None
    assert result.error.code == "BUDGET_EXCEEDED"
    assert studio.session.usage.book.total.requests == 2


async def test_what_a_child_does_is_told_by_its_parent_and_numbered_there(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "long.txt").write_text("x" * 5_000)
    studio = Studio(tmp_path, [call("Read", file_path="long.txt")], "The answer.", "hello", tools=TOOLS)
    await studio.session.open()
    child = studio.session.child("helper")
    own: list[TurnEvent] = []
    child.events.on(TurnEvent, own.append)
    await child.run("read")
    await studio.session.run("hi")
    events = list(studio.events)
    await studio.session.shutdown()

    assert [event.inner for event in studio.told(SubagentEvent)][-1] == own[-1]
    [ended] = inner(studio, ToolEnded)
    assert len(ended.content) == RESULT_KEPT
    assert inner(studio, RunCompleted)[0].text == "The answer."
    numbered = [event.seq for event in events if not _is_delta(event)]
    assert numbered == sorted(set(numbered))
    deltas = [event for event in studio.told(SubagentEvent) if _is_delta(event)]
    assert deltas
    assert {event.seq for event in deltas} <= set(numbered)

    again = [event async for event in _read_all(studio)]
    assert again == [event for event in events if not _is_delta(event) and isinstance(event, TurnEvent)]
    names = sorted(path.name for path in studio.kept.rglob("*.jsonl"))
    assert len(names) == 2
    assert "s-1.jsonl" in names


async def test_what_is_only_shown_by_a_child_is_only_shown_by_its_parent(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "hi")
    await studio.session.open()
    child = studio.session.child("helper")
    before = studio.session.events.seq
    child.steer("By the way.")
    [queued] = inner(studio, PromptQueued)
    assert (queued.prompt, studio.session.events.seq) == ("By the way.", before)
    await studio.session.shutdown()
    assert "subagent" not in studio.record_names


def _is_delta(event: object) -> bool:
    return isinstance(event, SubagentEvent) and isinstance(event.inner, TextDelta)


async def _read_all(studio: Studio) -> Any:
    from robota.sessions.follow import EventReader
    from robota.sessions.journal.port import JournalProblem

    reader = EventReader()
    journal = studio.session.store.open_journal("s-1")  # type: ignore[union-attr]
    assert journal is not None
    for item in journal.read():
        assert not isinstance(item, JournalProblem)
        for event in reader.take(item):
            yield event


async def test_hooks_hear_of_a_child_by_the_names_of_sub_agents(tmp_path: Path) -> None:
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SubagentStop")
    hooks = {event: [heard(tmp_path)] for event in events}
    studio = Studio(tmp_path, [call("Read", file_path="x")], "done", tools=TOOLS, hooks=hooks)
    child = studio.session.child("helper")
    await child.run("read")
    told = [(each["hook_event_name"], each["agent_id"]) for each in fired(tmp_path)]
    assert told == [("PreToolUse", "helper"), ("SubagentStop", "helper")]


async def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    started = asyncio.Event()

    class Endless:
        name = "endless"

        async def stream(self, request: Any) -> Any:
            started.set()
            await asyncio.Event().wait()
            yield None

    studio = Studio(tmp_path, "hi")
    child = studio.session.child("helper")
    child.agent.provider = Endless()  # type: ignore[assignment]
    run = asyncio.create_task(child.submit("go"))
    await started.wait()
    await studio.session.shutdown()
    assert (await run).interrupted
    with pytest.raises(SessionBusyError):
        await child.run("more")


async def test_a_child_may_have_another_model_and_other_tools(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "hi", tools=TOOLS)
    child = studio.session.child("helper", model="small", tools=(read_tool(),), system_message="Be brief.")
    await child.run("hello")
    request = studio.provider.requests[0]
    assert (request.model, [tool.name for tool in request.tools]) == ("small", ["Read"])
    assert request.messages[0].content == "Be brief."
    assert isinstance(studio.provider, ScriptedProvider)


async def test_a_child_has_a_name_of_its_own_as_long_as_it_is_open(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "1", "2")
    with pytest.raises(TypeError, match="rule"):  # a slip must not widen what it may do
        studio.session.child("helper", rule=PermissionRules(mode="plan"))  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="needs a name"):
        studio.session.child("")
    first = studio.session.child("helper")
    with pytest.raises(ConfigurationError, match="has a child 'helper' already"):
        studio.session.child("helper")
    await first.run("one")
    await first.shutdown()
    assert not studio.session.resources.children
    await studio.session.shutdown()
    with pytest.raises(SessionBusyError):
        studio.session.child("late")
