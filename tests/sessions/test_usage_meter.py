"""What one request counts as, however it ends, and what it is expected to use before it is sent."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest

from robota.core.context import estimate_context_tokens_from_messages
from robota.core.errors import NetworkError, ProviderError
from robota.core.events import TextDelta
from robota.core.messages import AssistantMessage, Message, TokenUsage, UserMessage
from robota.core.models import ModelPrice
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    ReasoningChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.core.retry import RetryingProvider, RetryPolicy
from robota.core.robota import Robota
from robota.providers.scripted import Reply
from robota.sessions.usage.budget import Budget, BudgetedProvider, BudgetExceededError
from robota.sessions.usage.ledger import UsageLedger
from robota.sessions.usage.meter import InputSize
from robota.testing import Fail, ScriptedProvider, Stall, call, fixed_ports

pytestmark = pytest.mark.anyio

PRICES = {"m": ModelPrice(input=1.0, output=10.0)}
REQUEST = ChatRequest(model="m", messages=[UserMessage("x" * 400, id="1")])
SIZE = InputSize().estimate(REQUEST)


def used(ledger: UsageLedger) -> tuple[int, int, int]:
    total = ledger.total
    return total.requests, total.input_tokens, total.output_tokens


def budgeted(
    *replies: Reply, budget: Budget | None = None, repeat: bool = False
) -> tuple[BudgetedProvider, ScriptedProvider]:
    inner = ScriptedProvider(*replies, repeat=repeat)
    return BudgetedProvider(inner, UsageLedger(prices=PRICES), budget), inner


async def drain(provider: BudgetedProvider, request: ChatRequest = REQUEST) -> list[object]:
    return [chunk async for chunk in provider.stream(request)]


# --- what a request counts as -------------------------------------------------------------------------


async def test_a_service_that_reports_nothing_is_counted_by_estimate() -> None:
    provider, _ = budgeted(
        [ReasoningChunk("y" * 40), "x" * 80, ToolInputChunk(0, "z" * 20), call("f", a="z")]
    )
    await drain(provider)
    assert used(provider.ledger) == (1, SIZE, 35)
    assert provider.ledger.total.estimated_tokens == SIZE + 35


async def test_usage_in_metadata_counts_when_there_is_no_other() -> None:
    provider, _ = budgeted(
        [
            MetadataChunk({"usage": {"promptTokens": 7, "completionTokens": 3}}),
            "x",
            MetadataChunk({"id": "1"}),
        ]
    )
    await drain(provider)
    assert used(provider.ledger) == (1, 7, 3)


async def test_the_last_report_of_a_reply_stands_and_goes_before_its_metadata() -> None:
    late = MetadataChunk({"inputTokens": 1, "outputTokens": 1})
    provider, _ = budgeted([TokenUsage(7, 1), "x" * 80, TokenUsage(7, 9), late])
    await drain(provider)
    assert used(provider.ledger) == (1, 7, 9)


@pytest.mark.parametrize("budget", [Budget(), Budget(max_tokens=10**9)])
async def test_a_request_that_failed_before_the_first_word_counts_no_tokens(budget: Budget) -> None:
    provider, _ = budgeted([Fail(NetworkError("refused"))], budget=budget)
    with pytest.raises(NetworkError):
        await drain(provider)
    assert used(provider.ledger) == (1, 0, 0)


async def test_a_reply_that_breaks_counts_what_was_sent_and_written_by_then() -> None:
    provider, _ = budgeted(["x" * 80, Fail(NetworkError("broke"))])
    with pytest.raises(NetworkError):
        await drain(provider)
    assert used(provider.ledger) == (1, SIZE, 20)


async def test_a_reply_that_breaks_after_a_report_counts_what_was_written_since() -> None:
    provider, _ = budgeted([TokenUsage(7, 1, 5), "x" * 80, Fail(NetworkError("broke"))])
    with pytest.raises(NetworkError):
        await drain(provider)
    assert used(provider.ledger) == (1, 7, 20)
    assert provider.ledger.total.estimated_tokens == 19
    assert provider.ledger.total.cache_read_tokens == 5


@pytest.mark.parametrize("words", [[], ["x" * 80]])
async def test_a_reply_that_the_user_stopped_counts_its_input_and_what_was_written(words: list[str]) -> None:
    said = anyio.Event()

    def reply() -> Iterator[str | Stall]:
        yield from words
        said.set()
        yield Stall()

    provider, _ = budgeted(lambda request: reply())
    with anyio.CancelScope() as scope:

        async def stop() -> None:
            await said.wait()
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            await drain(provider)
    assert used(provider.ledger) == (1, SIZE, 20 * len(words))


async def test_an_aborted_run_counts_for_its_turn() -> None:
    provider, _ = budgeted(["Hello", Stall()])
    agent = Robota(provider, model="m")
    provider.ledger.attach(agent.events)
    agent.events.on(TextDelta, lambda _: agent.abort())
    assert (await agent.run("a")).interrupted
    (turn,) = provider.ledger.snapshot().turns
    assert (turn.requests, turn.output_tokens) == (1, 2)


async def test_retries_inside_are_one_request_and_retries_outside_are_several() -> None:
    failing: list[Reply] = [[Fail(ProviderError("no", status=529))], ["x", TokenUsage(7, 3)]]
    policy, ports = RetryPolicy(), fixed_ports()
    provider = BudgetedProvider(
        RetryingProvider(ScriptedProvider(*failing), policy=policy, ports=ports), UsageLedger()
    )
    await drain(provider)
    assert used(provider.ledger) == (1, 7, 3)
    inside, _ = budgeted(*failing)
    _ = [chunk async for chunk in RetryingProvider(inside, policy=policy, ports=ports).stream(REQUEST)]
    assert used(inside.ledger) == (2, 7, 3)


async def test_a_refusal_is_not_tried_again() -> None:
    provider, _ = budgeted("x", budget=Budget(max_requests=0))
    with pytest.raises(BudgetExceededError):
        _ = [chunk async for chunk in RetryingProvider(provider, ports=fixed_ports()).stream(REQUEST)]
    assert provider.ledger.total.requests == 0


async def test_malformed_chunks_reach_the_engine_and_count_for_nothing() -> None:
    odd: list[object] = [TextChunk(5), TokenUsage(1.5, 2), MetadataChunk("no")]  # type: ignore[arg-type]
    provider, _ = budgeted([*odd, "x" * 4])  # type: ignore[list-item]
    assert (await drain(provider))[:3] == odd
    assert used(provider.ledger) == (1, SIZE, 1)


# --- the size of a request ------------------------------------------------------------------------------


class Watched(list[Message]):
    """A list that counts how many of its messages were looked at."""

    looks = 0

    def __getitem__(self, at: int) -> Message:  # type: ignore[override]  # the estimator takes no slices
        self.looks += 1
        return super().__getitem__(at)


def test_the_first_request_is_estimated_like_any_context_with_its_tools_added() -> None:
    messages: list[Message] = [UserMessage("hello"), AssistantMessage("hi"), UserMessage("漢字" * 50)]
    plain = ChatRequest(model="m", messages=messages)
    estimate = InputSize().estimate(plain)
    assert abs(estimate - estimate_context_tokens_from_messages(messages).tokens) <= 1
    tools = (ToolSchema("read", "Read a file. " * 10, {"type": "object"}),)
    assert InputSize().estimate(ChatRequest(model="m", messages=messages, tools=tools)) > estimate + 30


def test_a_reply_that_was_counted_stands_for_everything_before_it() -> None:
    counted = AssistantMessage("hi", metadata={"inputTokens": 5_000, "outputTokens": 100})
    tail = UserMessage("x" * 400)
    messages = Watched([*[UserMessage("old")] * 1_000, counted, tail])
    alone = InputSize().estimate(ChatRequest(model="m", messages=[tail]))
    assert InputSize().estimate(ChatRequest(model="m", messages=messages)) == 5_100 + alone
    assert messages.looks <= 3


def test_without_any_count_only_what_is_new_is_looked_at() -> None:
    size, messages = InputSize(), Watched(UserMessage("old") for _ in range(1_000))
    first = size.estimate(ChatRequest(model="m", messages=messages))
    messages.looks = 0
    messages.append(UserMessage("new"))
    assert first < size.estimate(ChatRequest(model="m", messages=messages)) < first + 100
    assert messages.looks <= 3
