"""Performance and execution analytics: what runs, model calls and tools take."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, USED, add, open_session

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import TextDelta, ToolStarted
from robota.core.ports import Ports
from robota.core.robota import AgentConfig, Robota
from robota.plugins import ExecutionAnalyticsPlugin, PerformancePlugin
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


class Clock:
    """Goes one second further whenever somebody looks."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


async def test_runs_model_calls_and_tools_are_timed(tmp_path: Path) -> None:
    performance = PerformancePlugin(threshold=0)
    async with open_session(tmp_path, [*ADDING, call("explode")], "Three.", plugins=[performance]) as session:
        await session.submit("Add.")
    found = performance.get_data()
    assert [(each["operation"], each["success"]) for each in found if each["operation"] != "tool"] == [
        ("model", True), ("model", True), ("run", True),
    ]  # fmt: skip
    tools = {each["name"]: each["success"] for each in found if each["operation"] == "tool"}
    assert tools == {"add": True, "explode": False}
    assert "cpuSeconds" in found[-1]
    stats = performance.get_stats()
    assert stats["slow"] == len(found)
    assert (stats["operations"]["tool"]["count"], stats["operations"]["tool"]["failed"]) == (2, 1)
    assert {each["operation"] for each in performance.aggregate()} == {"run", "model", "tool"}


async def test_times_come_from_the_ports_of_the_agent() -> None:
    performance = PerformancePlugin(threshold=1.5)
    ports = Ports(monotonic=Clock())
    config = AgentConfig(ports=ports)
    async with Robota(ScriptedProvider("Hi."), plugins=[performance], config=config) as agent:
        await agent.run("go")
    model, run = performance.get_data()
    assert (model["seconds"], model["slow"]) == (1.0, False)
    assert run["slow"]


async def test_what_an_abort_cuts_is_timed_as_failed() -> None:
    @tool
    async def wait_for_ever() -> str:
        """Wait."""
        import asyncio

        await asyncio.Event().wait()
        return ""

    performance = PerformancePlugin()
    provider = ScriptedProvider([call("wait_for_ever")], ["Hel", Stall()])
    async with Robota(provider, tools=[wait_for_ever], plugins=[performance]) as agent:
        agent.events.on(ToolStarted, lambda _: agent.abort())
        agent.events.on(TextDelta, lambda _: agent.abort())
        await agent.run("a")
        await agent.run("b")
    cut = [each["operation"] for each in performance.get_data() if not each["success"]]
    assert cut in (["tool", "run", "model", "run"], ["run", "model", "run"])


async def test_records_of_performance_go_to_a_file(tmp_path: Path) -> None:
    performance = PerformancePlugin(strategy="file", path=tmp_path / "p.jsonl")
    async with Robota(ScriptedProvider("Hi."), plugins=[performance]) as agent:
        await agent.run("go")
    assert [each["operation"] for each in await performance.read()] == ["model", "run"]


async def test_a_run_is_one_record_of_the_analytics(tmp_path: Path) -> None:
    analytics = ExecutionAnalyticsPlugin()
    replies = [[*ADDING, call("add", a=3, b=4)], ["Three.", USED]]
    async with open_session(tmp_path, *replies, plugins=[analytics]) as session:
        result = await session.submit("Add.")
    [run] = analytics.get_data()
    assert run["executionId"] == analytics.get_data()[0]["executionId"] != ""
    assert (run["outcome"], run["modelCalls"], run["rounds"], run["tools"]) == ("success", 2, 2, {"add": 2})
    assert (run["inputTokens"], run["errors"]) == (200, [])
    assert result.text == "Three."


async def test_analytics_tell_how_runs_ended() -> None:
    analytics = ExecutionAnalyticsPlugin()
    provider = ScriptedProvider(
        "Fine.", [Fail(ProviderError("no"))], ["Hel", Stall()], [call("add", a="x")], "Ok"
    )
    async with Robota(provider, tools=[add], plugins=[analytics]) as agent:
        await agent.run("a")
        await agent.run("b")
        off = agent.events.on(TextDelta, lambda _: agent.abort())
        await agent.run("c")
        off()
        await agent.run("d")
    assert [run["outcome"] for run in analytics.get_data()] == ["success", "error", "interrupted", "success"]
    assert [len(run["errors"]) for run in analytics.get_data()] == [0, 1, 0, 1]
    stats = analytics.get_stats()
    assert (stats["runs"], stats["succeeded"], stats["failed"], stats["interrupted"]) == (4, 2, 1, 1)
    assert stats["successRate"] == 0.5


async def test_subagents_have_records_of_their_own(tmp_path: Path) -> None:
    analytics, performance = ExecutionAnalyticsPlugin(), PerformancePlugin()
    replies = [[call("Agent", prompt="look", description="look")], ADDING, "I saw it.", "Done."]
    async with open_session(tmp_path, *replies, plugins=[analytics, performance]) as session:
        await session.submit("go")
    child, parent = analytics.get_data()
    assert child["agentId"].startswith("general-purpose-")
    assert (child["tools"], parent["tools"]) == ({"add": 1}, {"Agent": 1})
    assert [each["operation"] for each in performance.get_data()] == [
        "model", "model", "tool", "model", "run", "tool", "model", "run",
    ]  # fmt: skip


async def test_a_run_that_takes_long_is_named(caplog: pytest.LogCaptureFixture) -> None:
    analytics = ExecutionAnalyticsPlugin(warn_after=2)
    config = AgentConfig(ports=Ports(monotonic=Clock()))
    with caplog.at_level(logging.WARNING, "robota.plugins"):
        async with Robota(ScriptedProvider("Hi."), plugins=[analytics], config=config) as agent:
            await agent.run("go")
    assert "took 4.0 s (1.0 s of them in models" in caplog.text
    assert analytics.get_stats()["slow"] == 1


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (PerformancePlugin, {"strategy": "prometheus"}),
        (PerformancePlugin, {"threshold": -1}),
        (PerformancePlugin, {"aggregation_interval": 0}),
        (ExecutionAnalyticsPlugin, {"max_entries": 0}),
        (ExecutionAnalyticsPlugin, {"warn_after": "5"}),
    ],
)
def test_options_that_cannot_work_are_refused(kind: Any, options: Any) -> None:
    with pytest.raises(ConfigurationError):
        kind(**options)
