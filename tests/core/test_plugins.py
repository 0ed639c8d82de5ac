from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any

import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import ConfigurationError, PluginError, ProviderError, StructuredOutputError
from robota.core.events import OwnerPathSegment, RunFailed, TextDelta, ToolEnded, TurnEvent
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    Prompt,
    TextPart,
    ToolCall,
    ToolMessage,
)
from robota.core.plugin import HOOKS, Plugin, PluginPriority, Refusal
from robota.core.provider import ChatRequest
from robota.core.robota import AgentConfig, Robota
from robota.core.run import RunResult
from robota.core.tool import ToolResult
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Diary(Plugin):
    """Overrides every hook and writes down what it is told."""

    def __init__(self, name: str = "diary") -> None:
        self.name = name
        self.told: list[tuple[str, Any]] = []

    def hooks(self) -> list[str]:
        return [hook for hook, _ in self.told]

    def of(self, hook: str) -> list[Any]:
        return [what for told, what in self.told if told == hook]

    async def initialize(self, agent_name: str) -> None:
        self.told.append(("initialize", agent_name))

    async def dispose(self) -> None:
        self.told.append(("dispose", None))

    async def before_run(self, prompt: Prompt) -> Prompt | Refusal | None:
        self.told.append(("before_run", prompt))
        return None

    async def after_run(self, result: RunResult) -> None:
        self.told.append(("after_run", result))

    async def on_error(self, error: Exception) -> None:
        self.told.append(("on_error", error))

    async def on_stream_chunk(self, text: str) -> None:
        self.told.append(("on_stream_chunk", text))

    async def before_provider_call(self, request: ChatRequest) -> Refusal | None:
        self.told.append(("before_provider_call", request))
        return None

    async def after_provider_call(self, message: AssistantMessage) -> None:
        self.told.append(("after_provider_call", message))

    async def before_tool_execution(
        self, call: ToolCall, arguments: JsonObject
    ) -> JsonObject | Refusal | None:
        self.told.append(("before_tool_execution", (call, arguments)))
        return None

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> ToolResult | None:
        self.told.append(("after_tool_execution", (call, result)))
        return None

    async def on_message_added(self, message: Message) -> None:
        self.told.append(("on_message_added", message))

    async def on_event(self, name: str, event: TurnEvent, owner_path: Sequence[OwnerPathSegment]) -> None:
        self.told.append(("on_event", (name, event, owner_path)))


async def run_with(
    *plugins: Plugin, replies: Sequence[Any] = ([call("add", a=1, b=2)], ["Thr", "ee."]), **options: Any
) -> tuple[RunResult, Robota]:
    agent = Robota(ScriptedProvider(*replies), tools=[add], plugins=plugins, config=AgentConfig(name="main"))
    result = await agent.run("go", **options)
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    return result, agent


# --- every hook is called --------------------------------------------------------------------------------


def test_the_diary_overrides_every_hook_there_is() -> None:
    declared = {name for name, value in vars(Plugin).items() if iscoroutinefunction(value)}
    assert declared == {*HOOKS, "initialize", "dispose"}
    assert declared <= set(vars(Diary))


@pytest.mark.parametrize("hook", [*(hook for hook in HOOKS if hook != "on_error"), "initialize"])
async def test_a_declared_hook_is_really_called(hook: str) -> None:
    diary = Diary()
    await run_with(diary)
    assert diary.of(hook)


async def test_the_hooks_of_a_run_come_in_order_with_what_they_are_about() -> None:
    diary = Diary()
    result, agent = await run_with(diary)
    hooks = [hook for hook in diary.hooks() if hook not in ("on_message_added", "on_event")]
    assert hooks == [
        "initialize",
        "before_run",
        "before_provider_call",
        "after_provider_call",
        "before_tool_execution",
        "after_tool_execution",
        "before_provider_call",
        "on_stream_chunk",
        "on_stream_chunk",
        "after_provider_call",
        "after_run",
    ]
    assert diary.of("initialize") == ["main"]
    assert diary.of("before_run") == ["go"]
    assert diary.of("on_stream_chunk") == ["Thr", "ee."]
    assert diary.of("on_message_added") == agent.messages
    assert diary.of("after_provider_call") == [m for m in agent.messages if isinstance(m, AssistantMessage)]
    assert diary.of("after_run") == [result]
    [(asked, arguments)] = diary.of("before_tool_execution")
    assert (asked.name, arguments) == ("add", {"a": 1, "b": 2})
    [(answered, outcome)] = diary.of("after_tool_execution")
    assert (answered, outcome.content) == (asked, "3")


async def test_plugins_hear_named_events_with_the_path_of_their_owner() -> None:
    diary = Diary()
    result, _ = await run_with(diary)
    events = diary.of("on_event")
    assert [name for name, _, _ in events] == [
        "user.input",
        "execution.start",
        "tool.execute_start",
        "tool.execute_success",
        "execution.complete",
        "agent.completion",
    ]
    run = [OwnerPathSegment("agent", "main"), OwnerPathSegment("execution", result.execution_id)]
    assert list(events[1][2]) == run
    started = events[2][1]
    assert list(events[2][2]) == [*run, OwnerPathSegment("tool", started.call_id)]


@pytest.mark.parametrize(
    ("replies", "options", "kind"),
    [
        ([[Fail(ProviderError("no"))]], {}, ProviderError),
        ([[call("add", a="x")], "Sorry."], {}, Exception),
        (["no"] * 3, {"output": list[int]}, StructuredOutputError),
    ],
    ids=["model call", "tool", "whole run"],
)
async def test_plugins_hear_of_a_failure(replies: list[Any], options: Any, kind: type[Exception]) -> None:
    diary = Diary()
    await run_with(diary, replies=replies, **options)
    [error] = diary.of("on_error")
    assert isinstance(error, kind)
    assert diary.of("after_run")


async def test_plugins_are_made_ready_once_for_all_runs() -> None:
    diary = Diary()
    agent = Robota(ScriptedProvider("One.", "Two."), plugins=[diary])
    await agent.run("a")
    await agent.run("b")
    assert len(diary.of("initialize")) == 1
    assert len(diary.of("after_run")) == 2


async def test_closing_lets_plugins_go_once_and_after_the_run() -> None:
    diary = Diary()
    agent = Robota(ScriptedProvider(["Hel", Stall()]), plugins=[diary])
    async with asyncio.TaskGroup() as tasks, agent.events.open(TextDelta) as deltas:
        async with agent:
            tasks.create_task(agent.run("go"))
            await anext(deltas)
        await agent.aclose()
    assert diary.hooks()[-1] == "dispose"
    assert diary.hooks().count("dispose") == diary.hooks().count("after_run") == 1


@pytest.mark.parametrize("last", ["ee.", Stall()], ids=["completed", "aborted"])
async def test_the_end_of_a_run_is_the_last_that_plugins_hear_of_it(last: Any) -> None:
    diary = Diary()
    agent = Robota(ScriptedProvider(["Thr", last]), plugins=[diary])
    agent.events.on(TextDelta, lambda _: agent.abort() if last != "ee." else None)
    await agent.run("go")
    assert diary.hooks()[-1] == "after_run"


async def test_an_aborted_run_is_over_for_plugins_too() -> None:
    diary = Diary()
    agent = Robota(ScriptedProvider(["Hel", Stall()]), plugins=[diary])
    agent.events.on(TextDelta, lambda _: agent.abort())
    await agent.run("go")
    [result] = diary.of("after_run")
    assert (result.text, result.interrupted) == ("Hel", True)
    assert diary.of("on_message_added") == agent.messages


async def test_leaving_a_stream_early_is_the_end_of_the_run_for_plugins() -> None:
    diary = Diary()
    agent = Robota(ScriptedProvider(["Hel", Stall()]), plugins=[diary])
    stream = agent.stream("go")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    assert [result.text for result in diary.of("after_run")] == ["Hel"]
    assert diary.of("on_message_added") == agent.messages


# --- order, switches, failures -----------------------------------------------------------------------


async def test_higher_priority_comes_first_and_equal_ones_in_the_order_given() -> None:
    order: list[str] = []

    class Named(Plugin):
        def __init__(self, name: str, priority: int) -> None:
            self.name = name
            self.priority = priority

        async def before_run(self, prompt: Prompt) -> None:
            order.append(self.name)

    plugins = [
        Named("low", PluginPriority.LOW),
        Named("first normal", PluginPriority.NORMAL),
        Named("critical", PluginPriority.CRITICAL),
        Named("second normal", PluginPriority.NORMAL),
        Named("minimal", PluginPriority.MINIMAL),
        Named("high", PluginPriority.HIGH),
    ]
    await run_with(*plugins)
    assert order == ["critical", "high", "first normal", "second normal", "low", "minimal"]


async def test_a_disabled_plugin_is_silent_until_it_is_enabled() -> None:
    diary = Diary()
    diary.enabled = False
    agent = Robota(ScriptedProvider("One.", "Two."), plugins=[diary])
    await agent.run("a")
    assert set(diary.hooks()) <= {"initialize"}
    diary.enabled = True
    await agent.run("b")
    assert {"before_run", "on_event", "on_message_added", "after_run"} <= set(diary.hooks())


@pytest.mark.parametrize("hook", [*HOOKS, "initialize", "dispose"])
async def test_a_plugin_that_raises_is_logged_by_name_and_the_run_goes_on(
    hook: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(self: Plugin, *args: Any) -> None:
        raise ValueError("I am broken")

    kind = type("Broken", (Plugin,), {hook: broken, "name": "shaky"})
    diary = Diary()
    provider = ScriptedProvider([call("add", a="x")], [call("add", a=1, b=2)], "Three.")
    agent = Robota(provider, tools=[add], plugins=[kind(), diary])
    with caplog.at_level(logging.ERROR, "robota.plugins"):
        async with agent:
            result = await agent.run("go")
    assert (result.text, result.error) == ("Three.", None)
    assert f"'shaky' failed in {hook}" in caplog.text
    assert "I am broken" in caplog.text
    assert diary.of(hook)


@pytest.mark.parametrize("wrong", [object(), Diary, "logging"])
async def test_something_that_is_no_plugin_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a plugin"):
        Robota(ScriptedProvider("Hi"), plugins=[wrong])


# --- refusals and replacements -----------------------------------------------------------------------


def answering(hook: str, answer: Any) -> Plugin:
    async def give(self: Plugin, *args: Any) -> Any:
        return answer

    return type("Answering", (Plugin,), {hook: give, "priority": PluginPriority.HIGH})()  # type: ignore[no-any-return]


async def test_a_refused_run_records_nothing_and_says_why() -> None:
    diary = Diary()
    result, agent = await run_with(answering("before_run", Refusal("Not on Sundays.")), diary)
    assert isinstance(result.error, PluginError)
    assert "Not on Sundays." in str(result.error)
    assert agent.messages == []
    assert diary.of("before_run") == []
    assert diary.of("after_run") == [result]


async def test_a_refused_model_call_fails_the_run_and_says_why() -> None:
    failed: list[RunFailed] = []
    agent = Robota(ScriptedProvider("Hi"), plugins=[answering("before_provider_call", Refusal("Too dear."))])
    agent.events.on(RunFailed, failed.append)
    result = await agent.run("go")
    assert isinstance(result.error, PluginError)
    assert "Too dear." in result.text
    assert "Too dear." in agent.messages[-1].content
    assert [event.code for event in failed] == ["PLUGIN_ERROR"]


async def test_a_refused_tool_call_is_denied_and_the_loop_goes_on() -> None:
    ended: list[ToolEnded] = []
    agent = Robota(
        ScriptedProvider([call("add", a=1, b=2)], "Then not."),
        tools=[add],
        plugins=[answering("before_tool_execution", Refusal("Adding is not allowed."))],
    )
    agent.events.on(ToolEnded, ended.append)
    result = await agent.run("go")
    assert (result.text, result.tools_executed) == ("Then not.", ())
    assert agent.messages[2].content == "Error: Adding is not allowed."
    assert [event.outcome for event in ended] == ["denied"]


async def test_a_prompt_can_be_replaced_and_the_next_plugin_gets_the_new_one() -> None:
    diary = Diary()
    _, agent = await run_with(answering("before_run", [TextPart("come")]), diary)
    assert agent.messages[0].content == "come"
    assert diary.of("before_run") == [[TextPart("come")]]


async def test_arguments_can_be_replaced() -> None:
    diary = Diary()
    _, agent = await run_with(answering("before_tool_execution", {"a": 10, "b": 20}), diary)
    assert agent.messages[2].content == "30"
    assert diary.of("before_tool_execution")[0][1] == {"a": 10, "b": 20}
    asked = agent.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert asked.tool_calls[0].arguments == '{"a":1,"b":2}'


async def test_a_result_can_be_replaced() -> None:
    _, agent = await run_with(answering("after_tool_execution", ToolResult(content="about three")))
    assert agent.messages[2].content == "about three"


@pytest.mark.parametrize(
    ("hook", "nonsense"),
    [
        ("before_run", 5),
        ("before_provider_call", "no"),
        ("after_tool_execution", "no"),
        ("after_tool_execution", Refusal("too late")),
    ],
)
async def test_a_hook_that_returns_nonsense_is_logged_by_name_and_ignored(
    hook: str, nonsense: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "robota.plugins"):
        result, agent = await run_with(answering(hook, nonsense))
    assert (result.text, result.error) == ("Three.", None)
    assert [m.content for m in agent.messages if isinstance(m, ToolMessage)] == ["3"]
    assert f"'Answering' returned {type(nonsense).__name__} from {hook}" in caplog.text


@pytest.mark.parametrize("nonsense", ["no", False, 0])
async def test_a_tool_does_not_run_when_a_plugin_answers_nonsense_about_it(nonsense: Any) -> None:
    result, agent = await run_with(answering("before_tool_execution", nonsense))
    assert (result.text, result.tools_executed) == ("Three.", ())
    [message] = [m for m in agent.messages if isinstance(m, ToolMessage)]
    assert message.metadata["success"] is False
    assert f"'Answering' returned {type(nonsense).__name__} from before_tool_execution" in message.content


async def test_a_refusal_counts_even_when_the_hook_forgot_to_be_async() -> None:
    class Guard(Plugin):
        def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> Refusal:  # type: ignore[override]
            return Refusal("Adding is not allowed.")

    result, agent = await run_with(Guard())
    assert result.tools_executed == ()
    assert agent.messages[2].content == "Error: Adding is not allowed."


async def test_a_tool_does_not_run_when_its_guard_breaks() -> None:
    class Guard(Plugin):
        name = "guard"

        async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> None:
            raise RuntimeError("out of order")

    result, agent = await run_with(Guard())

    assert (result.text, result.tools_executed) == ("Three.", ())
    [message] = [m for m in agent.messages if isinstance(m, ToolMessage)]
    assert "'guard' failed in before_tool_execution" in message.content
