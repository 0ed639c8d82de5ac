from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import ProviderError, RateLimitError
from robota.core.event_names import event_from_wire, event_to_wire
from robota.core.events import Event, ProviderNativeRawPayload, RunFailed
from robota.core.messages import AssistantMessage, ReasoningBlock, TokenUsage, ToolCall, UserMessage
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.reply import chat
from robota.core.robota import Robota, RunLimits
from robota.core.run import RunResult
from robota.testing import Delay, Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_for(*replies: Any, **options: Any) -> tuple[Robota, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    return Robota(provider, tools=[add], **options), provider


def heard(agent: Robota, kind: type[Event]) -> list[Any]:
    events: list[Any] = []
    agent.events.on(kind, events.append)
    return events


async def test_a_failing_provider_becomes_a_visible_answer_and_an_error_in_the_result() -> None:  # §20.73
    error = RateLimitError("Too many requests; wait a minute.", provider="scripted", retry_after=60)
    agent, _ = agent_for([Fail(error)], "Back again.")
    failed = heard(agent, RunFailed)
    result = await agent.run("go")
    assert (result.error, result.success, result.interrupted, result.stop_reason) == (
        error, False, False, "error",
    )  # fmt: skip
    assert "Too many requests; wait a minute." in result.text
    answer = agent.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.content, answer.state) == (result.text, "complete")
    assert answer.metadata["providerError"] == "RATE_LIMIT_ERROR"
    assert (failed[0].message, failed[0].code) == ("Too many requests; wait a minute.", "RATE_LIMIT_ERROR")
    assert (await agent.run("and now?")).text == "Back again."


async def test_words_that_arrived_before_a_failure_stay_and_its_calls_never_run() -> None:
    agent, provider = agent_for(
        [call("add", "c1", a=1, b=2)], ["Hel", "lo", call("add", "c2", a=1, b=2), Fail(OSError("cut"))], "Ok."
    )
    result = await agent.run("go")
    answer = agent.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert answer.content.startswith("Hello\n\n[The model call failed: ")
    assert answer.tool_calls == ()
    assert answer.metadata["incomplete"] is True
    assert isinstance(result.error, ProviderError)
    assert str(result.error) == "Provider 'scripted' failed: OSError: cut"
    assert isinstance(result.error.__cause__, OSError)
    assert result.tools_executed == ("add",)
    await agent.run("and now?")
    assert_valid_for_a_request(provider.requests[-1].messages)


class JumpingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer when nothing is ready: time passes, nobody waits."""

    def __init__(self) -> None:
        super().__init__()
        self._clock = 0.0

    def time(self) -> float:
        return self._clock

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]  # the loop's own queues
            self._clock = max(self._clock, min(timers))
        super()._run_once()  # type: ignore[misc]  # as above


def run_in_jumping_time(agent: Robota, prompt: str) -> RunResult:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(agent.run(prompt))


def test_a_silent_provider_is_given_up_and_its_words_are_kept() -> None:
    agent, provider = agent_for(["Hel", "lo", Stall()], "Back.", limits=RunLimits(idle_timeout=30))
    result = run_in_jumping_time(agent, "go")
    assert isinstance(result.error, ProviderError)
    assert "idle timeout after 30s" in str(result.error)
    assert result.text.startswith("Hello\n\n[The model call failed: Provider call idle timeout")
    assert (result.interrupted, provider.open_streams) == (False, 0)
    assert run_in_jumping_time(agent, "and now?").text == "Back."


def test_the_idle_timeout_restarts_at_every_delta() -> None:  # §20.57
    words = [step for word in "abcdefgh" for step in (Delay(20), word)]
    agent, _ = agent_for(words, limits=RunLimits(idle_timeout=30))
    result = run_in_jumping_time(agent, "go")
    assert (result.text, result.error) == ("abcdefgh", None)


@pytest.mark.parametrize("recorded", [False, True], ids=["without a journal", "with a journal"])
def test_pings_do_not_restart_the_idle_timeout(recorded: bool) -> None:
    ping = NativePayload(kind="stream_event", payload={"type": "ping"})
    pings = [step for _ in range(8) for step in (Delay(20), ping)]
    agent, _ = agent_for(["Hel", *pings, "lo"], limits=RunLimits(idle_timeout=30))
    if recorded:
        agent.events.on(ProviderNativeRawPayload, lambda _: None)
    result = run_in_jumping_time(agent, "go")
    assert "idle timeout after 30s" in str(result.error)
    assert result.text.startswith("Hel\n\n[The model call failed")


def test_a_provider_that_talks_for_ever_is_given_up_and_its_words_are_kept() -> None:
    words = [step for word in "abcdefgh" for step in (Delay(20), word)]
    agent, provider = agent_for(words, "Back.", limits=RunLimits(idle_timeout=30, total_timeout=50))
    result = run_in_jumping_time(agent, "go")
    assert isinstance(result.error, ProviderError)
    assert "total timeout after 50s: scripted was still answering" in str(result.error)
    assert result.text.startswith("ab\n\n[The model call failed: ")
    assert provider.open_streams == 0
    assert run_in_jumping_time(agent, "and now?").text == "Back."


def test_two_timeouts_at_once_are_one_failure() -> None:
    agent, _ = agent_for([Stall()], "Back.", limits=RunLimits(idle_timeout=30, total_timeout=30))
    assert "idle timeout" in str(run_in_jumping_time(agent, "go").error)
    assert run_in_jumping_time(agent, "and now?").text == "Back."


def test_a_tool_may_take_longer_than_a_silent_provider_may() -> None:
    @tool
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(300)
        return "rested"

    provider = ScriptedProvider([call("sleep")], "Good morning.")
    agent = Robota(provider, tools=[sleep], limits=RunLimits(idle_timeout=30))
    assert run_in_jumping_time(agent, "go").text == "Good morning."


@pytest.mark.parametrize("seconds", [None, 0, -1, float("inf"), float("nan")])
async def test_a_timeout_that_is_no_positive_number_waits_for_ever(seconds: float | None) -> None:
    agent, _ = agent_for("Hi", limits=RunLimits(idle_timeout=seconds, total_timeout=seconds))
    assert (await agent.run("go")).text == "Hi"


class Odd:
    """A provider whose `stream` does something its author should hear about."""

    name = "odd"

    def __init__(self, stream: Callable[[ChatRequest], Any]) -> None:
        self.stream = stream


def yielding(*chunks: Any) -> Callable[[ChatRequest], Any]:
    async def stream(request: ChatRequest) -> AsyncGenerator[Any, None]:
        yield TextChunk("Hel")
        for chunk in chunks:
            yield chunk

    return stream


async def coroutine(request: ChatRequest) -> str:
    return "Hi"


def sync_generator(request: ChatRequest) -> Any:
    yield TextChunk("Hi")


def raising(request: ChatRequest) -> Any:
    raise RuntimeError("no key")


async def cancelling(request: ChatRequest) -> AsyncGenerator[Any, None]:
    yield TextChunk("Hel")
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        (yielding("a string"), r"Provider 'odd' yielded str 'a string', which is not a chunk"),
        (yielding(None), r"Provider 'odd' yielded NoneType None"),
        (yielding(TextChunk(None)), r"Provider 'odd' yielded TextChunk"),  # type: ignore[arg-type]
        (yielding(ToolCall("c", "")), r"Provider 'odd' sent a tool call without a name"),
        (yielding(ToolCall("c", None)), r"Provider 'odd' sent a tool call without a name"),  # type: ignore[arg-type]
        (yielding(ToolCall("c", "add", {"a": 1})), r"Provider 'odd' sent .* JSON text as arguments"),  # type: ignore[arg-type]
        (yielding(TokenUsage(None, None)), r"[Pp]rovider 'odd'"),  # type: ignore[arg-type]
        (yielding(MetadataChunk(None)), r"[Pp]rovider 'odd'"),  # type: ignore[arg-type]
        (yielding(MetadataChunk({"when": object()})), r"[Pp]rovider 'odd'"),
        (yielding(ReasoningBlock("hm", data=object())), r"[Pp]rovider 'odd'"),
        (yielding(ToolCall(5, "add")), r"Provider 'odd' sent a tool call"),  # type: ignore[arg-type]
        (yielding(ReasoningChunk(None)), r"Provider 'odd' yielded ReasoningChunk"),  # type: ignore[arg-type]
        (yielding(ToolInputChunk(0, None)), r"Provider 'odd' yielded ToolInputChunk"),  # type: ignore[arg-type]
        (yielding(ServerToolChunk("web", object())), r"Provider 'odd' yielded ServerToolChunk"),
        (coroutine, r"'odd' must return an async generator .*not coroutine.*`yield`"),
        (sync_generator, r"'odd' must return an async generator .*not generator"),
        (lambda request: None, r"'odd' must return an async generator .*not NoneType"),
        (raising, r"Provider 'odd' failed: RuntimeError: no key"),
        (cancelling, r"[Pp]rovider 'odd'"),
    ],
)
async def test_a_provider_that_breaks_the_contract_is_named_and_nothing_is_lost(
    stream: Callable[[ChatRequest], Any], sentence: str
) -> None:
    agent = Robota(Odd(stream))
    ends = heard(agent, RunFailed)
    result = await agent.run("go")
    assert isinstance(result.error, ProviderError)
    assert re.search(sentence, str(result.error))
    assert len(ends) == 1
    assert isinstance(agent.messages[0], UserMessage)
    assert isinstance(agent.messages[1], AssistantMessage)
    assert agent.messages[1].state == "complete"
    assert str(result.error) in agent.messages[1].content
    agent.provider = ScriptedProvider("Hi")
    assert (await agent.run("and now?")).text == "Hi"


async def test_a_provider_that_says_nothing_at_all_is_asked_again_and_then_reported() -> None:
    async def nothing(request: ChatRequest) -> AsyncGenerator[Any, None]:
        asked.append(request)
        return
        yield

    asked: list[ChatRequest] = []
    agent = Robota(Odd(nothing))
    result = await agent.run("go")
    assert result.text.startswith("The model answered with nothing, three times in a row")
    assert len(asked) == 3


async def test_a_word_for_stopping_that_nobody_knows_still_travels_over_the_wire() -> None:
    agent, _ = agent_for(["Hi", StopChunk("finished")])  # type: ignore[arg-type]  # a provider's own word
    events = heard(agent, Event)
    result = await agent.run("go")
    assert result.text == "Hi" or isinstance(result.error, ProviderError)
    for event in events:
        assert event_from_wire(event_to_wire(event)).name == event.name


# --- one call without an agent ----------------------------------------------------------------------------


async def test_one_call_without_a_conversation_gives_a_message() -> None:
    request = ChatRequest(model="m", messages=[UserMessage("hi")])
    provider = ScriptedProvider(
        ["Hel", ReasoningBlock("hm"), "lo", call("add", "c", a=1), TokenUsage(3, 2), MetadataChunk({"id": 7})]
    )
    message = await chat(provider, request)
    assert (message.content, message.reasoning) == ("Hello", (ReasoningBlock("hm"),))
    assert message.tool_calls == (call("add", "c", a=1),)
    assert message.metadata == {"id": 7, "inputTokens": 3, "outputTokens": 2, "stopReason": "tool_use"}
    assert provider.requests == [request]


@pytest.mark.parametrize(
    ("reply", "sentence"), [([Fail(ProviderError("no"))], "no"), ([object()], "is not a chunk")]
)
async def test_one_call_that_fails_raises(reply: list[Any], sentence: str) -> None:
    provider = ScriptedProvider(["Hel", *reply])
    with pytest.raises(ProviderError, match=sentence):
        await chat(provider, ChatRequest(model="m", messages=[UserMessage("hi")]))
    assert provider.open_streams == 0
