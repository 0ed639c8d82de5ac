from __future__ import annotations

from typing import Any, ClassVar

import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import (
    Noticed,
    RunCompleted,
    TextDelta,
    ToolEnded,
    ToolExecutionResult,
    TurnEvent,
)
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import StopChunk
from robota.core.robota import Robota, RunLimits
from robota.core.tool import ToolContext, ToolResult
from robota.testing import Fail, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

FALLBACK = "Maximum rounds reached. Partial results available in conversation history."


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def fail(why: str = "no reason") -> str:
    """Fail."""
    raise RuntimeError(why)


@tool
async def dump(size: int) -> str:
    """Return that many characters."""
    return "x" * size


ADD = [call("add", a=1, b=2)]


def agent_for(*replies: Any, repeat: bool = False, **options: Any) -> tuple[Robota, ScriptedProvider]:
    provider = ScriptedProvider(*replies, repeat=repeat)
    return Robota(provider, tools=[add, fail, dump], **options), provider


def tool_messages(agent: Robota) -> list[ToolMessage]:
    return [message for message in agent.messages if isinstance(message, ToolMessage)]


# --- rounds ----------------------------------------------------------------------------------------


async def test_a_run_has_ten_rounds_unless_told_otherwise() -> None:  # §20.55
    agent, provider = agent_for(ADD, repeat=True)
    result = await agent.run("go")
    assert result.rounds == 10
    assert len(provider.requests) == 11  # the last one asks for a summary


async def test_zero_rounds_mean_no_limit() -> None:  # §20.55
    agent, provider = agent_for(*[ADD] * 25, "Done.", max_rounds=0)
    result = await agent.run("go")
    assert (result.text, result.rounds, len(provider.requests)) == ("Done.", 26, 26)


@pytest.mark.parametrize(("configured", "given", "rounds"), [(5, 2, 2), (2, 5, 5), (3, None, 3), (2, 0, 7)])
async def test_the_runs_own_limit_beats_the_agents(  # §20.56
    configured: int, given: int | None, rounds: int
) -> None:
    agent, _ = agent_for(*[ADD] * 6, "Done.", "Summary.", max_rounds=configured)
    assert (await agent.run("go", max_rounds=given)).rounds == rounds


@pytest.mark.parametrize("limit", [-1, 2.0, 2.5, True, "3", float("nan")])
async def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_rounds must be a non-negative integer"):
        Robota(ScriptedProvider(), max_rounds=limit)
    agent, provider = agent_for("Hi")
    with pytest.raises(ConfigurationError, match=f"max_rounds must be a non-negative integer.*not {limit!r}"):
        await agent.run("go", max_rounds=limit)
    assert (agent.messages, provider.requests, agent.is_running) == ([], [], False)


# --- the forced summary ----------------------------------------------------------------------------------


async def test_the_forced_summary_has_the_system_message_no_tools_and_leaves_no_trace_of_its_question() -> (
    None
):
    agent, provider = agent_for(
        ADD, "Here is what I have.", max_rounds=1, system_message="Be brief."
    )  # §20.70
    result = await agent.run("go")
    request = provider.requests[-1]
    assert request.tools == ()
    assert isinstance(request.messages[0], SystemMessage)
    assert request.messages[0].content == "Be brief."
    assert isinstance(request.messages[-1], UserMessage)
    assert "Answer now" in request.messages[-1].content
    assert (result.text, result.rounds, result.error) == ("Here is what I have.", 1, None)
    assert [m.role for m in agent.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert request.messages[-1] not in agent.messages


async def test_the_forced_summary_is_streamed_like_any_answer() -> None:
    agent, _ = agent_for(ADD, ["Here ", "it is."], max_rounds=1)
    deltas: list[str] = []
    agent.events.on(TextDelta, lambda event: deltas.append(event.text))
    await agent.run("go")
    assert deltas == ["\n\n", "Here ", "it is."]


@pytest.mark.parametrize(
    "summary",
    [
        [],
        [""],
        ["  \n"],
        [Fail(ProviderError("no"))],
        [call("add", a=1, b=2)],
        ["Half a", Fail(OSError("cut"))],
    ],
    ids=["nothing", "empty", "blank", "failure", "only calls", "cut"],
)
async def test_a_summary_that_is_empty_or_fails_gives_the_fallback_sentence(
    summary: list[Any],
) -> None:  # §20.71
    agent, _ = agent_for(ADD, summary, "Hello again.", max_rounds=1)
    result = await agent.run("go")
    assert (result.text, result.error, result.interrupted) == (FALLBACK, None, False)
    assert agent.messages[-1].content == FALLBACK
    assert result.tools_executed == ("add",)
    assert_valid_for_a_request(agent.conversation.messages_for_api())
    assert (await agent.run("and now?")).text == "Hello again."


async def test_calls_of_a_forced_summary_are_not_run() -> None:
    agent, _ = agent_for(ADD, ["Almost.", call("add", a=3, b=4)], max_rounds=1)
    result = await agent.run("go")
    assert (result.text, result.tools_executed) == ("Almost.", ("add",))
    assert_valid_for_a_request(agent.conversation.messages_for_api())


FAILING = [call("fail")]
UNKNOWN = [call("nonsense")]


@pytest.mark.parametrize(
    ("replies", "stop", "words"),
    [
        ([ADD, "As far as I got."], "max_rounds", "its limit is 1 rounds"),
        ([ADD, []], "max_rounds", "its limit is 1 rounds"),
        ([ADD, [Fail(ProviderError("no"))]], "max_rounds", "its limit is 1 rounds"),
        ([ADD, ["Almost.", *ADD]], "max_rounds", "its limit is 1 rounds"),
    ],
    ids=["summary", "nothing", "failure", "calls"],
)
async def test_a_run_out_of_rounds_says_so_whatever_its_last_words_are(
    replies: list[Any], stop: str, words: str
) -> None:
    await assert_ends(agent_for(*replies, max_rounds=1)[0], stop, words)


@pytest.mark.parametrize(
    ("replies", "stop", "words"),
    [
        ([FAILING, FAILING, FAILING, "I give up."], "repeated_failure", "call of fail failed 3 times"),
        ([FAILING, FAILING, FAILING, []], "repeated_failure", "call of fail failed 3 times"),
        ([UNKNOWN, UNKNOWN, "I give up."], "unknown_tool", "do not exist: nonsense"),
        ([[], [], []], "no_answer", "answered with nothing"),
        ([["Half", StopChunk("max_tokens")]], "max_tokens", "The answer is cut"),
        ([["Half", StopChunk("content_filter")]], "content_filter", "content filter"),
        ([["No.", StopChunk("refusal")]], "refusal", "declined"),
    ],
    ids=["failing", "failing, no words", "unknown", "empty", "cut", "filtered", "declined"],
)
async def test_an_end_that_leaves_something_undone_has_a_reason_and_a_sentence(
    replies: list[Any], stop: str, words: str
) -> None:
    await assert_ends(agent_for(*replies)[0], stop, words)


async def test_words_after_two_empty_replies_are_an_ordinary_answer() -> None:
    agent, _ = agent_for([], [], "Here I am.")
    notices: list[Noticed] = []
    agent.events.on(Noticed, notices.append)
    result = await agent.run("go")
    assert (result.text, result.stop_reason, notices) == ("Here I am.", "end_turn", [])


async def assert_ends(agent: Robota, stop: str, words: str) -> None:
    told: list[TurnEvent] = []
    agent.events.on(TurnEvent, told.append)
    result = await agent.run("go")
    assert (result.stop_reason, result.error) == (stop, None)
    notice, end = told[-2:]
    assert isinstance(notice, Noticed)
    assert words in notice.message
    assert isinstance(end, RunCompleted)
    assert end.stop_reason == stop


# --- tools that do not exist -------------------------------------------------------------------------------


async def test_an_unknown_tool_is_answered_with_what_there_is_and_not_counted_as_executed() -> None:  # §20.67
    agent, _ = agent_for([call("Bash", command="ls"), *ADD], "I see.")
    ended: list[ToolEnded] = []
    recorded: list[ToolExecutionResult] = []
    agent.events.on(ToolEnded, lambda event: ended.append(event) if event.tool_name == "Bash" else None)
    agent.events.on(
        ToolExecutionResult, lambda event: recorded.append(event) if event.tool_name == "Bash" else None
    )
    result = await agent.run("go")
    facts = {
        "errorCode": "unknown_tool",
        "requestedTool": "Bash",
        "availableTools": ["add", "dump", "fail"],
    }
    message = tool_messages(agent)[0]
    assert "was not executed because the tool 'Bash' is not registered" in message.content
    assert "add, dump, fail" in message.content
    assert message.metadata.items() >= {**facts, "success": False}.items()
    assert (result.tools_executed, result.text) == (("add",), "I see.")
    assert [(event.outcome, event.error_code) for event in ended] == [("error", "unknown_tool")]
    assert [event.metadata for event in recorded] == [facts]


async def test_a_tool_name_is_never_guessed() -> None:  # §20.69
    agent, _ = agent_for([call("Add", "c1", a=1, b=2), call("functions.add", "c2", a=1, b=2)], "Sorry.")
    result = await agent.run("go")
    assert result.tools_executed == ()
    assert [m.metadata["requestedTool"] for m in tool_messages(agent)] == ["Add", "functions.add"]


async def test_two_rounds_of_unknown_tools_end_with_a_request_that_names_them_and_has_no_tools() -> None:
    agent, provider = agent_for([call("Bash")], [call("Grep"), *ADD], "I cannot.", max_rounds=9)  # §20.68
    result = await agent.run("go")
    assert (result.text, result.rounds, len(provider.requests)) == ("I cannot.", 2, 3)
    last = provider.requests[-1]
    assert last.tools == ()
    assert "Bash, Grep" in last.messages[-1].content
    assert "not executed" in last.messages[-1].content


async def test_a_round_without_unknown_tools_starts_the_count_again() -> None:
    agent, provider = agent_for([call("Bash")], ADD, [call("Bash")], "Done.")
    result = await agent.run("go")
    assert (result.text, result.rounds) == ("Done.", 4)
    assert all(request.tools for request in provider.requests)


# --- the same failure again and again ----------------------------------------------------------------


async def test_the_third_identical_failure_in_a_row_ends_the_tool_rounds() -> None:
    agent, provider = agent_for(*[[call("fail", why="x")]] * 3, "It will not work.")
    result = await agent.run("go")
    assert (result.text, result.rounds) == ("It will not work.", 3)
    assert provider.requests[-1].tools == ()
    assert "fail" in provider.requests[-1].messages[-1].content


async def test_other_arguments_or_a_success_between_are_no_repetition() -> None:
    agent, _ = agent_for(
        [call("fail", why="x")], [call("fail", why="x")], [call("fail", why="y")], [call("fail", why="x")],
        ADD, [call("fail", why="x")], "Done.",
    )  # fmt: skip
    assert (await agent.run("go")).text == "Done."


async def test_identical_calls_that_succeed_are_no_failure() -> None:
    agent, _ = agent_for(*[ADD] * 6, "Done.")
    assert (await agent.run("go")).text == "Done."


async def test_the_watch_for_identical_failures_can_be_turned_off() -> None:
    agent, _ = agent_for(*[[call("fail", why="x")]] * 7, "Done.", limits=RunLimits(max_identical_failures=0))
    assert (await agent.run("go")).text == "Done."


# --- the context window --------------------------------------------------------------------------------


async def test_nothing_is_sent_above_95_percent_and_the_figures_say_why() -> None:  # §20.72
    agent, provider = agent_for(["Hi", TokenUsage(9_500, 1)], context_window=10_000)
    await agent.run("go")
    result = await agent.run("more")
    assert len(provider.requests) == 1
    assert (result.stop_reason, result.error) == ("context_overflow", None)
    answer = agent.messages[-1]
    assert isinstance(answer, AssistantMessage)
    serialized = answer.metadata["serializedTokens"]
    assert answer.metadata == {
        "contextOverflow": True,
        "estimatedTokens": 9_501,
        "contextLimit": 10_000,
        "thresholdTokens": 9_500,
        "thresholdPercentage": 95.0,
        "serializedTokens": serialized,
        "providerTokens": 9_501,
        "usageFloorTokens": 0,
        "usedPercentage": 95.0,
        "round": 1,
    }
    assert 0 < serialized < 1_000
    for figure in ("9,501", "10,000", "95%"):
        assert figure in answer.content
    assert RunLimits().capacity_hint in answer.content


async def test_exactly_95_percent_is_still_sent() -> None:  # §20.72
    for window in (200_000, 10_000, 1_000_000, 128_000):
        agent, provider = agent_for(
            ["Hi", TokenUsage(window * 95 // 100 - 1, 1)], "Fine.", context_window=window
        )
        await agent.run("go")
        assert (await agent.run("more")).text == "Fine."
        assert len(provider.requests) == 2


async def test_a_prompt_too_long_for_the_window_is_not_sent_but_kept() -> None:
    agent, provider = agent_for("Hi", context_window=1_000, limits=RunLimits(capacity_hint="Use less."))
    result = await agent.run("x" * 5_000)
    assert provider.requests == []
    assert result.text.endswith("Use less.")
    assert [m.role for m in agent.messages] == ["user", "assistant"]


async def test_the_guard_also_watches_between_rounds() -> None:
    agent, provider = agent_for([call("dump", size=4_000)], "never asked", context_window=1_000)
    result = await agent.run("go")
    assert (len(provider.requests), result.stop_reason, result.rounds) == (1, "context_overflow", 1)
    assert_valid_for_a_request(agent.conversation.messages_for_api())


SKIPPED = "Error: Context window near capacity. Tool execution result skipped."


async def test_results_after_the_80_percent_line_are_replaced_and_the_loop_goes_on() -> None:  # §20.75
    calls = [call("dump", f"c{n}", size=size) for n, size in enumerate((100, 33_000, 10, 10))]
    agent, provider = agent_for(calls, "I have enough.", context_window=10_000)
    result = await agent.run("go")
    messages = tool_messages(agent)
    assert [len(m.content) for m in messages[:2]] == [100, 33_000]  # the one that crosses the line is kept
    assert [m.content for m in messages[2:]] == [SKIPPED] * 2
    assert [m.metadata["success"] for m in messages] == [True, True, False, False]
    assert {m.metadata["error"] for m in messages[2:]} == {"context_overflow"}
    assert (result.text, len(provider.requests)) == ("I have enough.", 2)
    assert_valid_for_a_request(provider.requests[1].messages)


async def test_the_rounds_own_usage_is_the_floor_of_the_result_budget() -> None:
    calls = [call("add", "c0", a=1, b=2), call("add", "c1", a=3, b=4), TokenUsage(8_100, 10)]
    agent, _ = agent_for(calls, "Ok.", context_window=10_000)
    await agent.run("go")
    assert [m.content for m in tool_messages(agent)] == ["3", SKIPPED]


async def test_figures_a_tool_reports_about_itself_are_not_the_conversations() -> None:
    class Helper:
        name = "helper"
        description = "Another agent, with a usage of its own."
        parameters: ClassVar[JsonObject] = {"type": "object"}

        async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
            return ToolResult(content="done", metadata={"inputTokens": 999_999, "outputTokens": 1})

    provider = ScriptedProvider([ToolCall("c", "helper", "{}"), TokenUsage(100, 10)], "Fine.")
    agent = Robota(provider, tools=[Helper()], context_window=10_000)
    assert (await agent.run("go")).text == "Fine."
