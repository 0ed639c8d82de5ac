from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.event_names import event_from_wire, event_to_wire
from robota.core.events import (
    Event,
    OwnerPathSegment,
    ToolBatchStarted,
    ToolEnded,
    ToolExecutionRequest,
    ToolProgressed,
    ToolStarted,
)
from robota.core.messages import AssistantMessage, ImagePart, Json, JsonObject, ToolCall, ToolMessage
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, Question
from robota.core.robota import AgentConfig, Robota, RunLimits
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, invoke_tool
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Plain:
    """A tool that is no decorated function: the engine checks its arguments."""

    name = "plain"
    description = "Say what it was given."
    parameters: ClassVar[JsonObject] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
    }

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.given: list[JsonObject] = []

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.given.append(arguments)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return ToolResult(content="ok") if self.answer is None else self.answer


async def run_calls(*calls: ToolCall, tools: list[Any], **options: Any) -> tuple[list[ToolMessage], Robota]:
    """The tool messages of one answer that makes these calls."""
    agent = Robota(ScriptedProvider(list(calls), "Done."), tools=tools, **options)
    result = await agent.run("go")
    assert (result.text, result.error) == ("Done.", None)
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    return [m for m in agent.messages if isinstance(m, ToolMessage)], agent


# --- arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ('{"n": 1', "not valid JSON"),
        ("", "not valid JSON"),
        ("nonsense", "not valid JSON"),
        ('{"n": NaN}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"n": "\ud83d"}', "not valid JSON"),
        ("[1]", "must be a JSON object, not list"),
        ("5", "must be a JSON object, not int"),
        ("null", "must be a JSON object, not NoneType"),
        ("{}", "'n'"),
        ('{"n": "one"}', "'n'"),
    ],
)
async def test_arguments_that_do_not_fit_become_an_error_for_that_call_alone(
    arguments: str, complaint: str
) -> None:
    plain = Plain()
    messages, agent = await run_calls(
        ToolCall("c0", "plain", arguments), call("plain", "c1", n=1), tools=[plain]
    )
    assert messages[0].content.startswith("Error: The arguments of 'plain'")
    assert complaint in messages[0].content
    assert messages[0].metadata.items() >= {"success": False, "errorCode": "invalid_arguments"}.items()
    assert (messages[1].content, plain.given) == ("ok", [{"n": 1}])
    asked = agent.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert asked.tool_calls[0].arguments == arguments  # what the model wrote is kept as it is


async def test_a_decorated_function_names_the_wrong_field_too() -> None:
    messages, _ = await run_calls(call("add", a=1, b="two"), tools=[add])
    assert messages[0].content.startswith("Error: The arguments of 'add'")
    assert "'b'" in messages[0].content
    assert messages[0].metadata["errorCode"] == "invalid_arguments"


@pytest.mark.parametrize("tools", [[add, Plain()]])
async def test_a_call_with_wrong_arguments_is_not_counted_as_executed(tools: list[Any]) -> None:
    provider = ScriptedProvider([call("add", a="x"), call("plain"), call("add", "ok", a=1, b=2)], "Done.")
    assert (await Robota(provider, tools=tools).run("go")).tools_executed == ("add",)


# --- ids --------------------------------------------------------------------------------


async def test_a_provider_may_reuse_call_0_in_every_turn() -> None:  # §20.66
    provider = ScriptedProvider(*[[call("add", "call_0", a=n, b=n)] for n in range(4)], "Done.")
    agent = Robota(provider, tools=[add])
    await agent.run("go")
    kept = [call.id for m in agent.messages if isinstance(m, AssistantMessage) for call in m.tool_calls]
    assert kept == ["call_0"] * 4
    assert [m.tool_call_id for m in agent.messages if isinstance(m, ToolMessage)] == ["call_0"] * 4
    assert [m.content for m in agent.messages if isinstance(m, ToolMessage)] == ["0", "2", "4", "6"]
    assert_valid_for_a_request(provider.requests[-1].messages)


async def test_two_calls_with_one_id_in_one_answer_both_run() -> None:
    messages, _ = await run_calls(
        call("add", "call_0", a=1, b=1), call("add", "call_0", a=2, b=2), tools=[add]
    )
    assert [m.content for m in messages] == ["2", "4"]
    assert len({m.tool_call_id for m in messages}) == 2


async def test_the_same_call_sent_twice_runs_once() -> None:
    messages, _ = await run_calls(
        call("add", "call_0", a=1, b=1), call("add", "call_0", a=1, b=1), tools=[add]
    )
    assert [m.content for m in messages] == ["2"]


@pytest.mark.parametrize("missing", ["", None])
async def test_calls_without_an_id_get_one_each(missing: Any) -> None:
    messages, _ = await run_calls(
        ToolCall(missing, "add", '{"a":1,"b":1}'), ToolCall(missing, "add", '{"a":2,"b":2}'), tools=[add]
    )
    assert [m.content for m in messages] == ["2", "4"]
    assert all(m.tool_call_id for m in messages)


async def test_every_call_has_an_id_of_its_own_inside_the_run() -> None:
    provider = ScriptedProvider(*[[call("add", "call_0", a=n, b=n)] for n in range(3)], "Done.")
    agent = Robota(provider, tools=[add])
    started: list[ToolStarted] = []
    agent.events.on(ToolStarted, started.append)
    await agent.run("go")
    assert len({event.call_id for event in started}) == 3
    assert {event.tool_call_id for event in started} == {"call_0"}


# --- together --------------------------------------------------------------------------------


class Crowd:
    """Tools that note how many of them run at once, and finish last to first."""

    name = "crowd"
    description = "Run together."
    parameters: ClassVar[JsonObject] = {"type": "object"}

    def __init__(self) -> None:
        self.running = self.most = 0

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(3 * (10 - int(arguments["n"]))):
            await asyncio.sleep(0)
        self.running -= 1
        return ToolResult(content=str(arguments["n"]))


@pytest.mark.parametrize(
    ("limit", "at_once"),
    [(None, 6), (2, 2), (1, 1), (0, 1), (-3, 1), (100, 6), (2.9, 2), (float("inf"), 6), (float("nan"), 6)],
)
async def test_results_keep_their_order_whatever_the_limit_which_is_at_least_one(  # §20.58
    limit: Any, at_once: int
) -> None:
    crowd = Crowd()
    calls = [call("crowd", f"c{n}", n=n) for n in range(6)]
    messages, _ = await run_calls(*calls, tools=[crowd], limits=RunLimits(max_parallel_tools=limit))
    assert [m.content for m in messages] == ["0", "1", "2", "3", "4", "5"]
    assert [m.tool_call_id for m in messages] == ["c0", "c1", "c2", "c3", "c4", "c5"]
    assert crowd.most == at_once


async def test_a_batch_is_announced_with_what_it_holds() -> None:
    provider = ScriptedProvider([call("add", "c0", a=1, b=2), call("Nope", "c1")], "Done.")
    agent = Robota(
        provider, tools=[add], limits=RunLimits(max_parallel_tools=4), config=AgentConfig(name="main")
    )
    batches: list[ToolBatchStarted] = []
    requests: list[ToolExecutionRequest] = []
    agent.events.on(ToolBatchStarted, batches.append)
    agent.events.on(ToolExecutionRequest, requests.append)
    result = await agent.run("go")
    [batch] = batches
    assert (batch.mode, batch.max_concurrency, batch.request_count) == ("parallel", 4, 2)
    assert list(batch.tools) == ["add", "Nope"]
    assert [(r.batch_id, r.index, r.tool_name, r.tool_call_id) for r in requests] == [
        (batch.batch_id, 0, "add", "c0"),
        (batch.batch_id, 1, "Nope", "c1"),
    ]
    assert requests[0].parameters == {"a": 1, "b": 2}
    assert list(requests[0].owner_path) == [
        OwnerPathSegment("agent", "main"),
        OwnerPathSegment("execution", result.execution_id),
        OwnerPathSegment("tool", requests[0].call_id),
    ]


# --- tools that fail --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ValueError("no such thing"), "ValueError: no such thing"),
        (ValueError(), "ValueError"),
        (ToolResult.failure("The disk is full."), "The disk is full."),
        (ToolResult(ok=False), "without saying why"),
        (asyncio.CancelledError(), "cancelled from within"),
        (BaseExceptionGroup("", [SystemExit(2), ValueError("bad")]), "SystemExit: 2; ValueError: bad"),
        (ExceptionGroup("two", [ValueError("a"), OSError("b")]), "ValueError: a; OSError: b"),
        ("a bare string", "returned str instead of ToolResult"),
        (ToolResult(content={"not": "text"}), "plain"),  # type: ignore[arg-type]
        (ToolResult(content="ok", metadata={"path": Path("x")}), "plain"),
        (ToolResult(content="ok", parts=({"type": "text"},)), "plain"),  # type: ignore[arg-type]
        (ToolResult(ok=False, error=ValueError("bad disk")), "bad disk"),  # type: ignore[arg-type]
        (SystemExit(3), "plain"),
    ],
)
async def test_a_tool_that_fails_in_any_way_is_an_error_for_its_call_alone(answer: Any, words: str) -> None:
    slow_done = anyio.Event()

    @tool
    async def slow() -> str:
        """Take a while."""
        for _ in range(5):
            await asyncio.sleep(0)
        slow_done.set()
        return "done"

    agent = Robota(ScriptedProvider([call("plain", n=1), call("slow")], "Done."), tools=[Plain(answer), slow])
    events: list[Event] = []
    agent.events.on(Event, events.append)
    assert (await agent.run("go")).text == "Done."
    messages = [m for m in agent.messages if isinstance(m, ToolMessage)]
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    assert messages[0].content.startswith("Error: ")
    assert words in messages[0].content
    assert messages[0].metadata["success"] is False
    assert (messages[1].content, slow_done.is_set()) == ("done", True)
    assert [event_from_wire(event_to_wire(event)).name for event in events] == [e.name for e in events]


@pytest.mark.parametrize("text", ["half a character: \ud83d", "undecodable name: caf\udce9"])
async def test_a_result_that_is_no_unicode_reaches_the_model(text: str) -> None:
    messages, _ = await run_calls(
        call("plain", "c0", n=1), call("plain", "c1", n=2), tools=[Plain(ToolResult(content=text))]
    )
    assert len(messages) == 2
    assert all(m.metadata["success"] for m in messages)


async def test_whoever_runs_tools_may_fail_without_touching_the_other_calls() -> None:
    async def run_tool(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        if prepared.request.id == "c0":
            raise RuntimeError("the enforcer broke")
        for _ in range(3):
            await asyncio.sleep(0)
        return await invoke_tool(prepared, context)

    messages, _ = await run_calls(
        call("add", "c0", a=1, b=2),
        call("add", "c1", a=3, b=4),
        tools=[add],
        config=AgentConfig(run_tool=run_tool),
    )
    assert "the enforcer broke" in messages[0].content
    assert messages[1].content == "7"


async def test_a_denied_call_is_told_as_denied_and_not_counted() -> None:
    async def deny(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        return ToolResult(ok=False, denied=True, error="You may not.")

    agent = Robota(
        ScriptedProvider([call("add", a=1, b=2)], "Done."), tools=[add], config=AgentConfig(run_tool=deny)
    )
    ended: list[ToolEnded] = []
    agent.events.on(ToolEnded, ended.append)
    result = await agent.run("go")
    assert [(event.outcome, event.error) for event in ended] == [("denied", "You may not.")]
    assert result.tools_executed == ()
    assert agent.messages[2].content == "Error: You may not."
    assert agent.messages[2].metadata["success"] is False


async def test_what_a_tool_says_of_itself_does_not_replace_what_the_engine_knows() -> None:
    told: dict[str, Json] = {"success": True, "toolName": "other", "round": 99, "mine": 1}
    messages, _ = await run_calls(
        call("plain", n=1), tools=[Plain(ToolResult(ok=False, error="no", metadata=told))]
    )
    assert (
        messages[0].metadata.items() >= {"success": False, "toolName": "plain", "round": 1, "mine": 1}.items()
    )


# --- what a tool is given --------------------------------------------------------------------------------


async def test_a_tool_knows_its_surroundings_and_can_tell_of_its_progress() -> None:
    seen: list[ToolContext] = []

    async def ask(question: Question) -> ChoiceAnswer:
        assert isinstance(question, ChoiceQuestion)
        return ChoiceAnswer(chosen=(f"answer to {question.question} in {question.call_id}",))

    @tool
    async def look(ctx: ToolContext) -> str:
        """Look around."""
        seen.append(ctx)
        ctx.progress("half")
        assert ctx.ask is not None
        answer = await ctx.ask(ChoiceQuestion(question="why"))
        assert isinstance(answer, ChoiceAnswer)
        return answer.chosen[0]

    deps = object()
    agent = Robota(
        ScriptedProvider([call("look", "call_0")], "Done."),
        tools=[look],
        config=AgentConfig(session_id="s", cwd="/work", deps=deps, ask=ask),
    )
    progress: list[ToolProgressed] = []
    agent.events.on(ToolProgressed, progress.append)
    result = await agent.run("go")
    [ctx] = seen
    assert (ctx.session_id, ctx.cwd, ctx.tool_name, ctx.tool_call_id) == ("s", "/work", "look", "call_0")
    assert ctx.deps is deps
    assert ctx.execution_id == result.execution_id
    assert [(event.call_id, event.text) for event in progress] == [(ctx.call_id, "half")]
    assert agent.messages[2].content == f"answer to why in {ctx.call_id}"


async def test_images_of_a_result_are_kept_with_its_message() -> None:
    image = ImagePart("aGk=")
    messages, _ = await run_calls(
        call("plain", n=1), tools=[Plain(ToolResult(content="see", parts=(image,)))]
    )
    assert (messages[0].content, messages[0].parts) == ("see", (image,))


async def test_a_tool_that_asks_its_own_agent_to_run_is_told_that_it_is_busy() -> None:
    @tool
    async def recurse() -> str:
        """Ask the agent itself."""
        return (await agent.run("again")).text

    agent = Robota(ScriptedProvider([call("recurse")], "Done."), tools=[recurse])
    assert (await agent.run("go")).text == "Done."
    assert "running already" in agent.messages[2].content


async def test_progress_told_after_the_call_has_ended_is_dropped() -> None:
    kept: list[ToolContext] = []

    @tool
    async def keep(ctx: ToolContext) -> str:
        """Keep the context for later."""
        kept.append(ctx)
        return "ok"

    agent = Robota(ScriptedProvider([call("keep")], "Done.", "Again."), tools=[keep])
    events: list[Event] = []
    agent.events.on(Event, events.append)
    agent.events.on(ToolEnded, lambda _: kept[0].progress("too late"))
    await agent.run("go")
    kept[0].progress("much too late")
    await asyncio.to_thread(kept[0].progress, "from a thread that was left behind")
    await asyncio.sleep(0)
    assert "tool_progress" not in [event.name for event in events]
    assert events[-1].name == "complete"


async def test_a_tool_that_takes_too_long_is_given_up() -> None:
    @tool(timeout=0.01)
    async def forever() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    @tool
    async def slow() -> str:
        """Wait too."""
        await asyncio.Event().wait()
        return ""

    @tool
    async def broken() -> str:
        """Time out by itself."""
        raise TimeoutError("the device did not answer")

    provider = ScriptedProvider([call("forever"), call("slow"), call("broken")], "gave up")
    agent = Robota(provider, tools=[forever, slow, broken], limits=RunLimits(tool_timeout=0.02))

    assert (await agent.run("go")).text == "gave up"
    assert [message.content for message in agent.messages if isinstance(message, ToolMessage)] == [
        "Error: forever did not end within 0.01 s and was given up.",
        "Error: slow did not end within 0.02 s and was given up.",
        "Error: Tool 'broken' failed: TimeoutError: the device did not answer",
    ]
