"""A budget binds: nothing is sent that it does not allow, whoever asks and however many ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robota.core.context import estimate_context_tokens_from_messages
from robota.core.errors import ConfigurationError, NetworkError, ProviderError
from robota.core.events import TextDelta
from robota.core.messages import AssistantMessage, Message, TokenUsage, UserMessage
from robota.core.models import ModelPrice
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    ModelSettings,
    ReasoningChunk,
    TextChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.core.retry import RetryingProvider, RetryPolicy
from robota.core.robota import Robota
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.scripted import Reply
from robota.sessions.budget import Budget, BudgetedProvider, BudgetExceededError, describe_budget
from robota.sessions.usage import UsageLedger
from robota.sessions.usage_meter import InputSize
from robota.sessions.usage_report import UsageTotals
from robota.testing import Delay, Fail, Gate, ModelServer, ScriptedProvider, Stall, call, fixed_ports
from robota.tools.function_tool import tool

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
    return BudgetedProvider(inner, UsageLedger(prices=PRICES), budget or Budget()), inner


async def drain(provider: BudgetedProvider, request: ChatRequest = REQUEST) -> list[object]:
    return [chunk async for chunk in provider.stream(request)]


async def refusal(provider: BudgetedProvider, request: ChatRequest = REQUEST) -> BudgetExceededError:
    with pytest.raises(BudgetExceededError) as caught:
        await drain(provider, request)
    return caught.value


# --- what is refused ----------------------------------------------------------------------------------


async def test_the_number_of_requests_is_limited() -> None:
    provider, inner = budgeted(["x", TokenUsage(5, 5)], repeat=True, budget=Budget(max_requests=2))
    await drain(provider)
    await drain(provider)
    error = await refusal(provider)
    assert str(error) == (
        "The session's budget of 2 model requests does not allow another request: 2 model requests used. "
        "Nothing was sent; raise max_requests to go on."
    )
    assert (error.limit, error.used, error.maximum) == ("requests", 2, 2)
    assert (error.code, error.category, error.recoverable) == ("BUDGET_EXCEEDED", "user", False)
    assert len(inner.requests) == 2


async def test_a_request_whose_input_does_not_fit_is_not_sent() -> None:
    provider, inner = budgeted(
        ["x", TokenUsage(100, 900)], repeat=True, budget=Budget(max_tokens=1_000 + SIZE - 1)
    )
    await drain(provider)
    error = await refusal(provider)
    assert (error.limit, error.used, error.maximum) == ("tokens", 1_000, 1_000 + SIZE - 1)
    assert f"1,000 tokens used, and the next request needs up to {SIZE} tokens for its input" in str(error)
    assert len(inner.requests) == 1
    provider.budget = Budget(max_tokens=1_000 + SIZE)
    await drain(provider)


async def test_money_is_limited_with_the_input_at_its_full_price() -> None:
    cost = SIZE / 1_000_000
    provider, inner = budgeted(
        ["x", TokenUsage(0, 100)], repeat=True, budget=Budget(max_cost_usd=0.001 + cost)
    )
    await drain(provider)
    await drain(provider)
    error = await refusal(provider)
    assert (error.limit, error.used, error.maximum) == ("cost", 0.002, 0.001 + cost)
    assert "$0.0020 used" in str(error)
    assert len(inner.requests) == 2


async def test_an_agent_that_runs_out_of_budget_reports_it_and_keeps_its_conversation() -> None:
    provider, _ = budgeted([call("look"), TokenUsage(100, 10)], "never", budget=Budget(max_requests=1))

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    agent = Robota(provider, model="m", tools=[look])
    result = await agent.run("a")
    assert isinstance(result.error, BudgetExceededError)
    assert [message.role for message in agent.messages] == ["user", "assistant", "tool", "assistant"]
    provider.budget = Budget(max_requests=2)
    assert (await agent.run("go on")).text == "never"


async def test_money_cannot_be_limited_for_a_model_without_a_price() -> None:
    provider, inner = budgeted("x", budget=Budget(max_cost_usd=5))
    with pytest.raises(ConfigurationError, match=r"budget of \$5\.00 cannot be kept: no price is known.*'n'"):
        await drain(provider, ChatRequest(model="n", messages=[]))
    assert inner.requests == []
    provider.budget = Budget(max_tokens=1_000)
    await drain(provider, ChatRequest(model="n", messages=[]))


async def test_a_request_without_a_model_is_priced_by_the_providers_own() -> None:
    provider = OpenAICompatibleProvider(base_url="http://127.0.0.1:1/v1", api_key="k", model="m")
    wrapped = BudgetedProvider(
        RetryingProvider(provider), UsageLedger(prices=PRICES), Budget(max_cost_usd=0.0)
    )
    assert (await refusal(wrapped, ChatRequest(model="", messages=[]))).limit == "cost"


async def test_the_model_that_answered_gives_the_price_when_the_asked_one_has_none() -> None:
    provider, _ = budgeted([MetadataChunk({"model": "m"}), "x", TokenUsage(1_000_000, 0)])
    await drain(provider, ChatRequest(model="router/auto", messages=[]))
    assert provider.ledger.snapshot().models[0].model == "m"
    assert provider.ledger.total.cost_usd == 1.0


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "5"])
def test_a_limit_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(ConfigurationError, match="max_cost_usd must be a number"):
        Budget(max_cost_usd=value)


def test_tokens_and_requests_are_whole_numbers() -> None:
    for limits in ({"max_tokens": 1.5}, {"max_requests": 1.5}):
        with pytest.raises(ConfigurationError):
            Budget(**limits)  # type: ignore[arg-type]  # what a settings file may say


async def test_earlier_processes_of_the_session_have_used_from_the_same_budget() -> None:
    provider, inner = budgeted("x", budget=Budget(max_requests=1))
    earlier = UsageLedger()
    earlier.record("m", TokenUsage(1, 1))
    provider.ledger.restore(earlier.snapshot())
    await refusal(provider)
    assert inner.requests == []


# --- what a request counts as -------------------------------------------------------------------------


async def test_a_service_that_reports_nothing_is_counted_by_estimate() -> None:
    provider, _ = budgeted(
        [ReasoningChunk("y" * 40), "x" * 80, ToolInputChunk(0, "z" * 20), call("f", a="z")]
    )
    await drain(provider)
    assert used(provider.ledger) == (1, SIZE, 35)
    assert provider.ledger.total.estimated_tokens == SIZE + 35


async def test_usage_in_metadata_counts_when_there_is_no_other() -> None:
    provider, _ = budgeted([MetadataChunk({"usage": {"promptTokens": 7, "completionTokens": 3}}), "x"])
    await drain(provider)
    assert used(provider.ledger) == (1, 7, 3)


async def test_the_last_report_of_a_reply_stands() -> None:
    provider, _ = budgeted([TokenUsage(7, 1), "x" * 80, TokenUsage(7, 9)])
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
    provider, inner = budgeted([*words, Stall()])
    with anyio.CancelScope() as scope:

        async def stop() -> None:
            while not inner.open_streams:
                await anyio.lowlevel.checkpoint()
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


# --- notices ------------------------------------------------------------------------------------------


async def test_most_of_a_budget_used_is_said_once_and_again_for_a_new_budget() -> None:
    told: list[str] = []
    provider, _ = budgeted(["x", TokenUsage(0, 100)], repeat=True, budget=Budget(max_tokens=1_000))
    provider.gate.on_notice = told.append
    for _ in range(7):
        await drain(provider)
    assert told == []
    await drain(provider)
    assert told == ["80% of the session's budget is used: 800 tokens of 1,000 tokens."]
    provider.budget = Budget(max_cost_usd=0.01)
    await drain(provider)
    assert told[1:] == ["90% of the session's budget is used: $0.0090 of $0.0100."]
    assert len(told) == 2


def test_a_budget_is_described_with_what_is_used() -> None:
    totals = UsageTotals(requests=3, input_tokens=900, output_tokens=100, cost_usd=0.5)
    assert describe_budget(Budget(), totals) == "No budget is set."
    budget = Budget(max_cost_usd=5, max_tokens=2_000, max_requests=10)
    assert describe_budget(budget, totals) == (
        "Budget: $0.5000 of $5.00, 1,000 of 2,000 tokens, 3 of 10 requests."
    )


# --- several at once ----------------------------------------------------------------------------------


async def test_a_request_that_fits_only_alone_waits_for_the_others() -> None:
    gate, waiting = Gate(), anyio.Event()
    async with ModelServer([gate, "a", TokenUsage(20, 30)], ["b", TokenUsage(20, 30)]) as server:
        inner = OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="k")
        ledger = UsageLedger(prices=PRICES)
        parent = BudgetedProvider(inner, ledger, Budget(max_cost_usd=0.01), on_notice=lambda _: waiting.set())
        agents = [
            Robota(parent.share(ledger.child(id)), model="m", settings=ModelSettings(max_tokens=1_000))
            for id in ("one", "two")
        ]
        async with inner, anyio.create_task_group() as tasks:
            for agent in agents:
                tasks.start_soon(agent.run, "hello")
            await server.wait_for_requests(1)
            await waiting.wait()
            assert len(server.requests) == 1
            gate.open()
        assert sorted(agent.messages[-1].content for agent in agents) == ["a", "b"]
        assert {row.agent_id: row.output_tokens for row in ledger.snapshot().agents} == {"one": 30, "two": 30}


async def test_parallel_agents_together_exceed_a_budget_by_one_output_at_most() -> None:
    async with ModelServer(["x", TokenUsage(20, 200)], repeat=True) as server:
        inner = OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="k")
        ledger = UsageLedger(prices=PRICES)
        parent = BudgetedProvider(inner, ledger, Budget(max_tokens=2_000))
        errors = []

        async def work(number: int) -> None:
            page = ledger.child(str(number))
            agent = Robota(parent.share(page), model="m", settings=ModelSettings(max_tokens=200))
            for _ in range(3):
                result = await agent.run("go")
                errors.append(result.error)

        async with inner, anyio.create_task_group() as tasks:
            for number in range(8):
                tasks.start_soon(work, number)
        assert 1_700 <= ledger.total.total_tokens <= 2_200
        assert ledger.total.requests == len(server.requests) == errors.count(None)
        assert {type(error) for error in errors} == {type(None), BudgetExceededError}


async def test_who_waits_goes_on_when_the_budget_is_raised() -> None:
    provider, inner = budgeted([Stall()], "b", budget=Budget(max_requests=1))
    waiting = anyio.Event()
    provider.gate.on_notice = lambda _: waiting.set()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain, provider)
        while not inner.open_streams:
            await anyio.lowlevel.checkpoint()
        second = provider.stream(REQUEST)

        async def raise_budget() -> None:
            await waiting.wait()
            provider.budget = Budget(max_requests=2)

        tasks.start_soon(raise_budget)
        assert await anext(second) == TextChunk("b")
        await second.aclose()
        tasks.cancel_scope.cancel()


async def test_a_waiting_request_shows_signs_of_life_and_can_be_given_up() -> None:
    inner = ScriptedProvider([Stall()], "b")
    provider = BudgetedProvider(inner, UsageLedger(prices=PRICES), Budget(max_requests=1), sign_of_life=0.001)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(drain, provider)
        while not inner.open_streams:
            await anyio.lowlevel.checkpoint()
        second = provider.share(provider.ledger.child("two")).stream(REQUEST)
        assert [await anext(second), await anext(second)] == [MetadataChunk({})] * 2
        await second.aclose()
        tasks.cancel_scope.cancel()
    assert len(inner.requests) == provider.ledger.total.requests == 1


# --- in any order -------------------------------------------------------------------------------------

ROUNDS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.booleans()), min_size=1, max_size=5)
LIMITS = st.sampled_from(["max_tokens", "max_cost_usd", "max_requests"])


def play(rounds: Sequence[tuple[int, int, bool]]) -> Callable[[ChatRequest], Reply]:
    """Replies whose reported input is what the estimator expects, and whose output is as given."""
    numbers = iter(range(10**6))

    def reply(request: ChatRequest) -> Reply:
        output, pauses, fails = rounds[next(numbers) % len(rounds)]
        usage = TokenUsage(InputSize().estimate(request), output)
        ending = [Fail(NetworkError("broke"))] if fails else []
        return ["x", *[Delay(0)] * pauses, usage, *ending]

    return reply


@settings(deadline=None, max_examples=150)
@given(st.lists(ROUNDS, min_size=1, max_size=5), LIMITS, st.integers(0, 60))
def test_no_number_of_agents_exceeds_a_budget_by_more_than_one_output(
    agents: list[list[tuple[int, int, bool]]], limit: str, size: int
) -> None:
    maximum = size * (100 if limit == "max_tokens" else 0.0005 if limit == "max_cost_usd" else 1)
    budget = Budget(**{limit: maximum})
    ledger = UsageLedger(prices=PRICES)

    async def live() -> None:
        parent = BudgetedProvider(ScriptedProvider(), ledger, budget)

        async def work(number: int, rounds: list[tuple[int, int, bool]]) -> None:
            page = ledger.child(str(number))
            provider = parent.share(page, ScriptedProvider(play(rounds), repeat=True))
            agent = Robota(provider, model="m", settings=ModelSettings(max_tokens=50))
            for _ in range(4):
                await agent.run("go")

        async with anyio.create_task_group() as tasks:
            for number, rounds in enumerate(agents):
                tasks.start_soon(work, number, rounds)

    asyncio.run(live())
    total = ledger.total
    assert total.cost_usd is not None
    assert {
        "max_tokens": total.total_tokens <= maximum + 50,
        "max_cost_usd": total.cost_usd <= maximum + 50 * 10 / 1_000_000 + 1e-9,
        "max_requests": total.requests <= maximum,
    }[limit]


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
