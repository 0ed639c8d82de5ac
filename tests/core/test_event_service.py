from __future__ import annotations

from pathlib import Path

import pytest
from tests.plugins.office import ADDING, add, open_session

from robota.core import EVENT_NAMES, EVENT_PREFIXES, TASK_EVENTS, USER_EVENTS, EventService, NamedEvent
from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import ToolEnded
from robota.core.robota import AgentConfig, Robota
from robota.testing import Fail, ScriptedProvider, call

pytestmark = pytest.mark.anyio


async def test_the_life_of_a_session_is_published_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    told: list[NamedEvent] = []
    session = open_session(tmp_path, ADDING, "Three.")
    service = EventService(session)
    service.on("*", told.append)
    async with session:
        await session.submit("Add.")
    assert [event.name for event in told] == [
        "agent.created", "user.input", "execution.start", "tool.execute_start", "tool.execute_success",
        "execution.complete", "agent.completion", "agent.destroyed",
    ]  # fmt: skip
    assert {event.owner_path[0].owner_id for event in told} == {session.session_id}
    assert [each.owner_type for each in told[3].owner_path] == ["agent", "execution", "tool"]


async def test_a_task_of_a_subagent_is_published_with_a_longer_path(tmp_path: Path) -> None:
    told: list[NamedEvent] = []
    replies = [[call("Agent", prompt="look", description="look")], "I saw it.", "Done."]
    session = open_session(tmp_path, *replies)
    service = EventService(session)
    service.on("task.*", told.append)
    created: list[NamedEvent] = []
    service.on("agent.created", created.append)
    async with session:
        await session.submit("go")
    assert [event.name for event in told] == ["task.started", "task.completed"]
    assert len(created) == 2
    owner = told[0].owner_path
    assert [each.owner_type for each in owner] == ["agent", "agent", "execution"]
    assert owner[1].owner_id.startswith("general-purpose-")


async def test_a_failed_task_is_told() -> None:
    told: list[str] = []
    inner = Robota(ScriptedProvider([Fail(ProviderError("no"))]))
    outer = Robota(
        ScriptedProvider([call("research", task="x")], "Sorry."),
        tools=[inner.as_tool("research", "Looks things up.")],
        config=AgentConfig(name="main"),
    )
    service = EventService(outer)
    service.on("task.failed", lambda event: told.append(event.name))
    service.on("task.started", lambda event: told.append(event.owner_path[0].owner_id))
    await outer.run("go")
    assert told == ["main", "task.failed"]


async def test_listeners_are_filtered_called_once_and_taken_back() -> None:
    heard: list[str] = []
    agent = Robota(ScriptedProvider([*ADDING, call("add", "b", a="x")], "a", "b", "c"), tools=[add])
    service = EventService(agent)

    def note(event: NamedEvent) -> None:
        heard.append(event.name)

    service.once("user.input", note)
    service.on(
        "tool.*",
        note,
        filter=lambda event: isinstance(event.event, ToolEnded) and event.event.error is not None,
    )
    handler = service.on("agent.completion", note)
    await agent.run("1")
    assert heard == ["user.input", "tool.execute_error", "agent.completion"]
    assert service.off("agent.completion", handler) is True
    assert service.off("agent.completion", note) is False
    await agent.run("2")
    service.on("agent.completion", note)
    service.close()
    await agent.run("3")
    assert len(heard) == 3


async def test_a_listener_that_fails_keeps_no_other_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    agent = Robota(ScriptedProvider("Hi."))
    service = EventService(agent)

    def fail(event: NamedEvent) -> None:
        raise ValueError("I am broken")

    service.on("user.input", fail)
    service.on("user.input", lambda event: heard.append(event.name))
    assert (await agent.run("go")).text == "Hi."
    assert heard == ["user.input"]
    assert "I am broken" in caplog.text


def test_a_name_that_is_not_there_is_refused() -> None:
    service = EventService(Robota(ScriptedProvider("Hi.")))
    with pytest.raises(ConfigurationError, match=r"did you mean 'task.started'"):
        service.on("task.start", print)
    assert {*TASK_EVENTS, *USER_EVENTS} <= set(EVENT_NAMES)
    assert all(name.startswith(EVENT_PREFIXES) for name in EVENT_NAMES)
