"""Tasks given to templates: in a session, without one, and what can go wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, add, open_session

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.event_names import owner_path, plugin_events
from robota.core.events import RunStarted, SubagentEvent, ToolEnded, ToolStarted, TurnEvent
from robota.core.messages import ToolMessage
from robota.core.robota import AgentConfig, Robota
from robota.core.templates import AgentTemplate
from robota.plugins import UsagePlugin
from robota.sdk import make_templates, team_tools
from robota.sessions.usage.budget import Budget
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


def assign(job: str = "look", template: str = "general", **more: Any) -> Any:
    return call("assignTask", templateId=template, jobDescription=job, **more)


def results(agent: Robota) -> list[str]:
    return [message.content for message in agent.messages if isinstance(message, ToolMessage)]


async def test_templates_are_found_by_category_and_shown() -> None:
    calls = [
        call("listTemplateCategories"),
        call("listTemplates"),
        call("listTemplates", "b", categoryId="coordination"),
        call("getTemplateDetail", templateId="general"),
        call("listTemplates", "c", categoryId="magic"),
    ]
    provider = ScriptedProvider(calls, "Done.")
    agent = Robota(provider, tools=team_tools(ScriptedProvider("never")))
    await agent.run("go")
    categories, everything, leading, detail, wrong = results(agent)
    assert json.loads(categories) == [
        {"id": "general", "templates": 1},
        {"id": "coordination", "templates": 1},
    ]
    assert [each["id"] for each in json.loads(everything)] == ["general", "task_coordinator"]
    assert [each["id"] for each in json.loads(leading)] == ["task_coordinator"]
    assert "one task" in json.loads(detail)["systemMessage"]
    assert "There is no category 'magic'; there are coordination, general." in wrong


async def test_a_task_is_done_by_an_agent_of_the_template() -> None:
    team = ScriptedProvider(ADDING, "It is three.")
    agent = Robota(
        ScriptedProvider(
            [assign("Add 1 and 2.", context="They are numbers.", temperature=0.5, maxTokens=50)], "Three."
        ),
        tools=team_tools(team, model="small", tools=[add]),
    )
    assert (await agent.run("go")).text == "Three."
    assert results(agent) == ["It is three."]
    asked = team.requests[0]
    assert asked.model == "small"
    assert (asked.settings.temperature, asked.settings.max_tokens) == (0.5, 50)
    assert asked.messages[0].content.startswith("You are given one task")
    assert asked.messages[1].content == "Add 1 and 2.\n\nWhat you should know:\nThey are numbers."
    assert [tool.name for tool in asked.tools] == ["add"]


async def test_events_of_a_task_pass_through_with_a_path_that_grows_with_every_level() -> None:
    team = ScriptedProvider([assign("part")], ADDING, "Part done.", "All done.")
    agent = Robota(
        ScriptedProvider([assign("all", "task_coordinator")], "Done."),
        tools=team_tools(team, tools=[add]),
        config=AgentConfig(name="main"),
    )
    heard: list[TurnEvent] = []
    agent.events.subscribe(heard.append)
    await agent.run("go")
    named = [name for event in heard if isinstance(event, SubagentEvent) for name in plugin_events(event)]
    assert named.count("agent.created") == named.count("task.started") == named.count("task.completed") == 2
    deepest = max((owner_path(event, "main") for event in heard), key=len)
    assert [segment.owner_type for segment in deepest] == [
        "agent", "execution", "agent", "execution", "agent", "execution", "tool",
    ]  # fmt: skip
    assert deepest[0].owner_id == "main"
    assert deepest[2].owner_id.startswith("task_coordinator-")
    assert deepest[4].owner_id.startswith("general-")
    numbered = [event.seq for event in heard]
    assert numbered == sorted(numbered)


async def test_only_a_coordinator_gives_tasks_and_only_as_deep_as_it_may() -> None:
    team = ScriptedProvider([assign("part", "task_coordinator")], "I do it myself.", "All done.")
    agent = Robota(ScriptedProvider([assign("all", "task_coordinator")], "Done."), tools=team_tools(team))
    await agent.run("go")
    offered = [[tool.name for tool in request.tools] for request in team.requests]
    assert ["assignTask" in names for names in offered] == [True, False, True]


async def test_in_a_session_a_task_is_a_child_within_rights_and_budget(tmp_path: Path) -> None:
    usage = UsagePlugin()
    team = ScriptedProvider([call("Write", file_path="made.txt", content="x")], "I may not.")
    lead = ScriptedProvider([assign()], "Never said.")
    from robota.tools.builtins.files import write_tool

    session = open_session(
        tmp_path, provider=lead, plugins=[usage], budget=Budget(max_requests=3),
        settings={"permissions": {"deny": ["Write"]}}, tools=team_tools(team, tools=[write_tool()]),
    )  # fmt: skip
    async with session:
        heard: list[SubagentEvent] = []
        session.events.on(SubagentEvent, heard.append)
        result = await session.submit("go")
        spent = session.session.usage.book.report()
    assert result.error is not None
    assert "budget" in str(result.error).lower()
    ended = [event.inner for event in heard if isinstance(event.inner, ToolEnded)]
    assert [(each.tool_name, each.outcome) for each in ended] == [("Write", "denied")]
    assert spent.agents[0].agent_id.startswith("general-")
    assert usage.total.requests == 4
    assert not (tmp_path / "project" / "made.txt").exists()


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (
            assign(template="magician"),
            "There is no template 'magician'; there are general, task_coordinator, broken.",
        ),
        (assign(provider="nobody"), "There is no provider 'nobody'; there are other."),
        (call("assignTask", templateId="general"), "jobDescription"),
        (assign(template="broken"), "No agent can be made of the template 'broken'"),
        (call("getTemplateDetail", templateId="x"), "There is no template 'x'"),
    ],
)
async def test_a_task_that_cannot_be_given_is_an_error_in_one_sentence(task: Any, words: str) -> None:
    templates = make_templates()
    templates.register(AgentTemplate(id="broken", name="Broken", config={"max_rounds": "many"}))
    tools = team_tools(
        ScriptedProvider("never"), templates=templates, providers={"other": ScriptedProvider("x")}
    )
    agent = Robota(ScriptedProvider([task], "Sorry."), tools=tools)
    assert (await agent.run("go")).text == "Sorry."
    [result] = results(agent)
    assert words in result


async def test_a_task_may_name_another_provider_and_model() -> None:
    other = ScriptedProvider("By the other.")
    tools = team_tools(ScriptedProvider("never"), providers={"other": other})
    agent = Robota(ScriptedProvider([assign(provider="other", model="big")], "Done."), tools=tools)
    await agent.run("go")
    assert (results(agent), other.requests[0].model) == (["By the other."], "big")


async def test_a_task_that_fails_is_told_and_the_leader_goes_on() -> None:
    team = ScriptedProvider([Fail(ProviderError("the service is down"))])
    agent = Robota(ScriptedProvider([assign()], "Sorry."), tools=team_tools(team))
    heard: list[str] = []
    agent.events.on(SubagentEvent, lambda event: heard.extend(plugin_events(event)))
    assert (await agent.run("go")).text == "Sorry."
    assert results(agent) == ["Error: The task of general failed: the service is down"]
    assert heard[-1] == "task.failed"


async def test_tasks_run_at_the_same_time_and_an_abort_ends_them_all() -> None:
    begun: list[str] = []
    both = asyncio.Event()

    def hang(request: Any) -> Any:
        begun.append(request.messages[-1].content)
        if len(begun) == 2:
            both.set()
        return [Stall()]

    agent = Robota(
        ScriptedProvider(
            [assign("a"), call("assignTask", "b", templateId="general", jobDescription="b")], "never"
        ),
        tools=team_tools(ScriptedProvider(hang, hang)),
    )
    heard: list[str] = []
    agent.events.on(SubagentEvent, lambda event: heard.extend(plugin_events(event)))
    run = asyncio.create_task(agent.run("go"))
    await both.wait()
    agent.abort()
    assert (await run).interrupted
    assert heard.count("task.failed") == 2


async def test_plugins_watch_the_agents_of_tasks_without_a_session_too() -> None:
    usage = UsagePlugin()
    agent = Robota(
        ScriptedProvider([assign()], "Done."),
        plugins=[usage],
        tools=team_tools(ScriptedProvider("I saw it.")),
    )
    heard: list[TurnEvent] = []
    agent.events.subscribe(heard.append)
    async with agent:
        await agent.run("go")
    assert usage.total.requests == 3
    inner = [event.inner for event in heard if isinstance(event, SubagentEvent)]
    assert any(isinstance(event, RunStarted) for event in inner)
    assert not any(isinstance(event, ToolStarted) for event in inner)


def test_a_depth_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="depth"):
        team_tools(ScriptedProvider("x"), depth=-1)
