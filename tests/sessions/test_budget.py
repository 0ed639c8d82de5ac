"""A budget binds: nothing is sent that it does not allow, whoever asks and however many ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robota.core.errors import ConfigurationError, NetworkError, ProviderError
from robota.core.messages import TokenUsage, UserMessage
from robota.core.models import ModelPrice
from robota.core.provider import (
    ChatRequest,
    MetadataChunk,
    ModelSettings,
    TextChunk,
)
from robota.core.retry import RetryingProvider
from robota.core.robota import Robota
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.scripted import Reply
from robota.sessions.usage.budget import Budget, BudgetedProvider, BudgetExceededError
from robota.sessions.usage.ledger import UsageLedger
from robota.sessions.usage.meter import InputSize
from robota.testing import Delay, Fail, Gate, ModelServer, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

PRICES = {"m": ModelPrice(input=1.0, output=10.0)}
REQUEST = ChatRequest(model="m", messages=[UserMessage("x" * 400, id="1")])
SIZE = InputSize().estimate(REQUEST)


class CachePrice(ModelPrice, frozen=True):
    cache_write: float | None = None


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
        "Nothing was sent; raise the budget (max_requests) to go on."
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
    await refusal(provider)
    provider.budget = None
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


async def test_a_request_without_any_model_is_listed_under_its_provider() -> None:
    provider, _ = budgeted([MetadataChunk({"model": ["no"]}), "x"])
    await drain(provider, ChatRequest(model="", messages=[]))
    assert provider.ledger.snapshot().models[0].model == "scripted"


async def test_input_that_may_have_to_be_written_to_a_cache_is_reserved_at_that_price() -> None:
    prices = {"m": CachePrice(input=1.0, output=10.0, cache_write=2.0)}
    provider = BudgetedProvider(
        ScriptedProvider(), UsageLedger(prices=prices), Budget(max_cost_usd=SIZE * 1.5e-6)
    )
    assert (await refusal(provider)).limit == "cost"


async def test_a_provider_that_does_not_stream_is_told_how_to() -> None:
    class Wrong:
        name = "wrong"

        async def stream(self, request: ChatRequest) -> list[str]:
            return []

    with pytest.raises(ProviderError, match="must return an async generator"):
        await drain(BudgetedProvider(Wrong(), UsageLedger()))  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), True, "5"])
def test_a_limit_that_is_no_amount_is_refused(value: float) -> None:
    with pytest.raises(ConfigurationError, match="max_cost_usd must be a number"):
        Budget(max_cost_usd=value)


def test_tokens_and_requests_are_whole_numbers() -> None:
    for limits in ({"max_tokens": 1.5}, {"max_requests": 1.5}):
        with pytest.raises(ConfigurationError):
            Budget(**limits)  # type: ignore[arg-type]  # what a settings file may say


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
    provider.budget = Budget(max_cost_usd=0.01, max_tokens=1_100)
    await drain(provider)
    await drain(provider)
    assert told[1:] == [
        "90% of the session's budget is used: $0.0090 of $0.0100.",
        "82% of the session's budget is used: 900 tokens of 1,100 tokens.",
    ]


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


async def test_requests_that_fit_together_run_together() -> None:
    both = [Gate(), Gate()]
    async with ModelServer([both[0], "a"], [both[1], "b"]) as server:
        inner = OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="k")
        parent = BudgetedProvider(inner, UsageLedger(), Budget(max_tokens=1_000))
        async with inner, anyio.create_task_group() as tasks:
            for id in ("one", "two"):
                provider = parent.share(parent.ledger.child(id))
                agent = Robota(provider, model="m", settings=ModelSettings(max_tokens=100))
                tasks.start_soon(agent.run, "hello")
            for gate in both:
                await gate.reached.wait()
            for gate in both:
                gate.open()


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
    budget = Budget(**{limit: maximum})  # type: ignore[arg-type]  # whole where it must be
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
