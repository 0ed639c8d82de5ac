"""Spans and metrics of real runs, as the exporters of the OpenTelemetry SDK get them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from tests.plugins.office import ADDING, USED, add, open_session

from robota.core.errors import ProviderError
from robota.core.events import TextDelta, ToolStarted
from robota.core.robota import Robota
from robota.plugins import TelemetryPlugin
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio
SECRET = "sk-ant-api03-" + "aB3dE6gH9jK2" * 7


class Collector:
    """An OpenTelemetry SDK that keeps everything in memory."""

    def __init__(self, **options: Any) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider([self._metrics])
        self.plugin = TelemetryPlugin(tracer_provider=self.tracers, meter_provider=meters, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)

    def named(self, name: str) -> ReadableSpan:
        [found] = [span for span in self.spans if span.name == name]
        return found

    def tree(self) -> list[tuple[str, str]]:
        """Name and name of the parent, sorted."""
        by_id = {span.context.span_id: span.name for span in self.spans}
        parents = (by_id.get(span.parent.span_id, "?") if span.parent else "" for span in self.spans)
        return sorted(zip([span.name for span in self.spans], parents, strict=True))

    def points(self, metric: str) -> list[Any]:
        data = self._metrics.get_metrics_data()
        assert data is not None
        metrics = [
            each for one in data.resource_metrics for scope in one.scope_metrics for each in scope.metrics
        ]
        return [point for each in metrics if each.name == metric for point in each.data.data_points]


async def test_a_run_is_a_span_with_its_model_calls_and_parallel_tools_inside(tmp_path: Path) -> None:
    seen = Collector()
    replies = [[*ADDING, call("explode")], ["Three.", USED]]
    async with open_session(tmp_path, *replies, plugins=[seen.plugin]) as session:
        await session.submit("Add.")
    assert seen.tree() == [
        ("chat scripted", "invoke_agent"),
        ("chat scripted", "invoke_agent"),
        ("execute_tool add", "invoke_agent"),
        ("execute_tool explode", "invoke_agent"),
        ("invoke_agent", ""),
    ]
    run, chat = seen.named("invoke_agent"), seen.spans[1]
    assert dict(run.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "scripted",
        "gen_ai.conversation.id": session.session_id,
        "gen_ai.usage.input_tokens": 200,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.response.finish_reasons": ("end_turn",),
        "robota.rounds": 2,
    }
    assert chat.kind is SpanKind.CLIENT
    assert chat.attributes is not None
    assert chat.attributes["gen_ai.request.model"] == "scripted"
    assert (chat.attributes["gen_ai.usage.input_tokens"], "gen_ai.input.messages" in chat.attributes) == (
        100,
        False,
    )
    failed = seen.named("execute_tool explode")
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "tool_error"
    assert seen.named("execute_tool add").status.status_code is StatusCode.UNSET


async def test_a_subagent_lies_inside_the_tool_that_started_it(tmp_path: Path) -> None:
    seen = Collector()
    replies = [[call("Agent", prompt="look", description="look")], ADDING, "I saw it.", "Done."]
    async with open_session(tmp_path, *replies, plugins=[seen.plugin]) as session:
        await session.submit("go")
    child = next(span.name for span in seen.spans if span.name.startswith("invoke_agent general-purpose-"))
    assert seen.tree() == [
        ("chat scripted", "invoke_agent"),
        ("chat scripted", "invoke_agent"),
        ("chat scripted", child),
        ("chat scripted", child),
        ("execute_tool Agent", "invoke_agent"),
        ("execute_tool add", child),
        ("invoke_agent", ""),
        (child, "execute_tool Agent"),
    ]
    assert len({span.context.trace_id for span in seen.spans}) == 1


async def test_tokens_and_times_are_metrics() -> None:
    seen = Collector()
    provider = ScriptedProvider(ADDING, ["Three.", USED])
    async with Robota(provider, model="m", tools=[add], plugins=[seen.plugin]) as agent:
        await agent.run("go")
    tokens = {
        point.attributes["gen_ai.token.type"]: point for point in seen.points("gen_ai.client.token.usage")
    }
    assert (tokens["input"].sum, tokens["input"].count) == (200, 2)
    assert (tokens["output"].sum, tokens["output"].attributes["gen_ai.request.model"]) == (40, "m")
    counts = {
        point.attributes["gen_ai.operation.name"]: point.count
        for point in seen.points("gen_ai.client.operation.duration")
    }
    assert counts == {"chat": 2, "execute_tool": 1, "invoke_agent": 1}


async def test_a_failing_model_is_an_error_of_its_call_and_of_the_run() -> None:
    seen = Collector()
    async with Robota(
        ScriptedProvider([Fail(ProviderError("no"))]), model="m", plugins=[seen.plugin]
    ) as agent:
        await agent.run("go")
    for name in ("invoke_agent", "chat m"):
        span = seen.named(name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no")
        assert span.attributes is not None
        assert span.attributes["error.type"] == "PROVIDER_ERROR"


@pytest.mark.parametrize("moment", ["model", "tool"])
async def test_an_abort_ends_every_span_and_is_no_error(moment: str) -> None:
    @tool
    async def wait_for_ever() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return ""

    started = asyncio.Event()
    seen = Collector()
    provider = ScriptedProvider(["Hel", Stall()] if moment == "model" else [call("wait_for_ever")])
    async with Robota(provider, model="m", tools=[wait_for_ever], plugins=[seen.plugin]) as agent:
        if moment == "model":
            agent.events.on(TextDelta, lambda _: agent.abort())
            await agent.run("go")
        else:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(agent.run("go"))
                await started.wait()
                agent.abort()
                await running
    cut = {"invoke_agent", "chat m" if moment == "model" else "execute_tool wait_for_ever"}
    interrupted = {span.name for span in seen.spans if (span.attributes or {}).get("robota.interrupted")}
    assert interrupted == cut
    assert all(span.status.status_code is StatusCode.UNSET for span in seen.spans)


async def test_what_a_tool_or_the_caller_records_itself_is_in_the_right_place() -> None:
    seen = Collector()
    tracer = seen.tracers.get_tracer("mine")

    @tool
    async def fetch() -> str:
        """Fetch."""
        with tracer.start_as_current_span("GET"):
            return "x"

    provider = ScriptedProvider([call("fetch"), call("fetch")], [call("fetch")], "Done.")
    with tracer.start_as_current_span("request"):
        async with Robota(provider, model="m", tools=[fetch], plugins=[seen.plugin]) as agent:
            await agent.run("go")
        assert get_current_span().is_recording()
    assert seen.tree().count(("GET", "execute_tool fetch")) == 3
    assert ("invoke_agent", "request") in seen.tree()


async def test_content_is_captured_only_when_it_is_asked_for_and_without_secrets(tmp_path: Path) -> None:
    seen = Collector(capture_content=True)
    async with open_session(tmp_path, ADDING, "Three.", plugins=[seen.plugin]) as session:
        await session.submit(f"Add, with {SECRET}.")
    chat, tools = seen.spans[1], seen.named("execute_tool add")
    assert chat.attributes is not None
    assert "Add, with" in str(chat.attributes["gen_ai.input.messages"])
    assert SECRET not in str([dict(span.attributes or {}) for span in seen.spans])
    assert tools.attributes is not None
    assert tools.attributes["gen_ai.tool.call.arguments"] == '{"a":1,"b":2}'
    assert tools.attributes["gen_ai.tool.call.result"] == '"3"'


async def test_settings_or_a_variable_switch_it_on_and_a_missing_sdk_is_told_once(tmp_path: Path) -> None:
    for options in ({"settings": {"plugins": {"telemetry": {}}}}, {"variables": {"ROBOTA_TELEMETRY": "on"}}):
        notices: list[str] = []
        replies = [[call("Agent", prompt="look", description="look")], "I saw it.", "One.", "Two."]
        async with open_session(tmp_path, *replies, **options) as session:  # type: ignore[arg-type]
            session.on("notice", lambda text, kept=notices: kept.append(str(text)))
            await session.submit("a")
            await session.submit("b")
            assert [plugin.name for plugin in session.session.agent.plugins] == ["telemetry"]
        assert len([each for each in notices if "no OpenTelemetry SDK" in each]) == 1


async def test_two_agents_at_the_same_time_keep_their_spans_apart() -> None:
    seen = Collector()
    plugins = [seen.plugin, seen.plugin.for_child("b")]
    ready = asyncio.Barrier(2)

    @tool
    async def meet() -> str:
        """Meet."""
        await ready.wait()
        return "met"

    agents = [
        Robota(ScriptedProvider([call("meet")], "Done."), model="m", tools=[meet], plugins=[plugin])
        for plugin in plugins
    ]
    await asyncio.gather(*(agent.run("go") for agent in agents))
    for agent in agents:
        await agent.aclose()
    assert len({span.context.trace_id for span in seen.spans}) == 2
    assert len(seen.spans) == 8


def test_without_the_plugin_opentelemetry_is_not_loaded() -> None:
    code = "import sys, robota, robota.plugins, robota.sdk.interactive; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


async def test_a_tool_that_a_user_refuses_is_denied_and_the_spans_go_on() -> None:
    from robota.core.messages import JsonObject, ToolCall
    from robota.core.plugin import Plugin, Refusal

    class Guard(Plugin):
        priority = 1  # after the telemetry

        async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> Refusal:
            return Refusal("no")

    seen, heard = Collector(), []
    provider = ScriptedProvider(ADDING, "Then not.")
    async with Robota(provider, model="m", tools=[add], plugins=[seen.plugin, Guard()]) as agent:
        agent.events.on(ToolStarted, heard.append)
        await agent.run("go")
    assert ("chat m", "invoke_agent") in seen.tree()
    assert len(seen.spans) == 4
