from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, USED, add, open_session
from tests.plugins.test_error_handling import World

from robota.core.errors import ConfigurationError, PluginError
from robota.core.plugin import PluginContext
from robota.core.robota import Robota
from robota.plugins import LimitsPlugin
from robota.plugins.allowances import FixedWindow, LimitRules, SlidingWindow, Ticket, TokenBucket
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("strategy", ["token-bucket", "sliding-window", "fixed-window"])
async def test_a_run_is_stopped_before_the_request(tmp_path: Path, strategy: str) -> None:
    limits = LimitsPlugin(strategy=strategy, max_requests=2, bucket_size=100_000)
    provider = ScriptedProvider(ADDING, "Three.", "Never said.")
    async with open_session(tmp_path, provider=provider, plugins=[limits]) as session:
        assert (await session.submit("Add.")).text == "Three."
        refused = await session.session.submit("Again.")
    assert isinstance(refused.error, PluginError)
    assert "The model was not called: the limit of 2 requests in 3600 s is used up" in str(refused.error)
    assert refused.error.plugin_name == "limits"
    assert len(provider.requests) == 2
    assert limits.get_stats()["refused"] == 1


async def test_a_limit_binds_in_the_middle_of_a_run_too() -> None:
    limits = LimitsPlugin(strategy="fixed-window", max_requests=1)
    provider = ScriptedProvider(ADDING, "Never said.")
    async with Robota(provider, tools=[add], plugins=[limits]) as agent:
        result = await agent.run("go")
    assert isinstance(result.error, PluginError)
    assert (result.tools_executed, len(provider.requests)) == (("add",), 1)


async def test_what_subagents_use_counts_for_their_session(tmp_path: Path) -> None:
    limits = LimitsPlugin(strategy="sliding-window", max_requests=2)
    provider = ScriptedProvider(
        [call("Agent", prompt="look", description="look")], "I saw it.", "Never said."
    )
    async with open_session(tmp_path, provider=provider, plugins=[limits]) as session:
        result = await (await session.ready()).submit("go")
        assert list(limits.get_data()) == [session.session_id]
    assert isinstance(result.error, PluginError)
    assert len(provider.requests) == 2


async def test_the_real_usage_takes_the_place_of_the_estimate() -> None:
    limits = LimitsPlugin(strategy="fixed-window", max_tokens=400)
    async with Robota(ScriptedProvider(["Hi.", USED], "No."), plugins=[limits]) as agent:
        await agent.run("go")
        [used] = limits.get_data().values()
        assert used["tokens"] == 120
        assert (await agent.run("x" * 1000)).error is not None


async def test_money_is_limited_by_the_models_price_or_by_a_rate() -> None:
    rates = {"m": {"input": 1000.0, "output": 1000.0}}
    limits = LimitsPlugin(strategy="sliding-window", max_cost=0.15, rates=rates)
    async with Robota(ScriptedProvider(["Hi.", USED], "No."), model="m", plugins=[limits]) as agent:
        assert (await agent.run("go")).success
        refused = await agent.run("go")
    assert "$0.15" in str(refused.error)
    cheap = LimitsPlugin(strategy="sliding-window", max_cost=0.001, token_cost_per_1000=100)
    async with Robota(ScriptedProvider("No."), plugins=[cheap]) as agent:
        assert "$0.001" in str((await agent.run("go")).error)


async def test_a_run_has_a_price_of_its_own() -> None:
    rates = {"m": {"input": 1000.0, "output": 1000.0}}
    limits = LimitsPlugin(max_run_cost=0.15, rates=rates)
    provider = ScriptedProvider(ADDING, "Never said.", ["Fine.", USED])
    async with Robota(provider, model="m", tools=[add], plugins=[limits]) as agent:
        assert "this run may cost $0.15" in str((await agent.run("go")).error)
        assert len(provider.requests) == 1
        assert (await agent.run("x")).error is None


async def test_each_key_has_limits_of_its_own() -> None:
    whose = "ada"
    limits = LimitsPlugin(strategy="fixed-window", max_requests=1, key=lambda context: whose)
    async with Robota(ScriptedProvider("a", "b", "c"), plugins=[limits]) as agent:
        assert (await agent.run("go")).success
        whose = "grace"
        assert (await agent.run("go")).success
        assert not (await agent.run("go")).success
        assert sorted(limits.get_data()) == ["ada", "grace"]
        limits.reset("grace")
        assert (await agent.run("go")).success


async def test_a_key_that_cannot_be_found_lets_nothing_pass() -> None:
    def find(context: PluginContext) -> str:
        raise LookupError("who is this?")

    provider = ScriptedProvider("Never said.")
    async with Robota(provider, plugins=[LimitsPlugin(key=find)]) as agent:
        assert "who is this?" in str((await agent.run("go")).error)
    assert provider.requests == []


def test_the_key_is_the_session_then_the_conversation_then_a_common_one() -> None:
    limits = LimitsPlugin()
    assert limits.find_key() == "default"
    limits.context = PluginContext(conversation_id=lambda: "c")
    assert limits.find_key() == "c"
    limits.context = PluginContext(session_id="s", conversation_id=lambda: "c")
    assert limits.find_key() == "s"
    assert LimitsPlugin(key="ada").find_key() == "ada"


async def test_without_a_strategy_nothing_is_limited_and_a_disabled_plugin_limits_nothing() -> None:
    none, off = LimitsPlugin(strategy="none", max_requests=0), LimitsPlugin(max_requests=0)
    off.disable()
    async with Robota(ScriptedProvider("Hi."), plugins=[none, off]) as agent:
        assert (await agent.run("go")).text == "Hi."


async def test_a_window_that_is_over_lets_requests_pass_again() -> None:
    world, limits = World(), LimitsPlugin(strategy="sliding-window", max_requests=1, window=10)
    async with Robota(ScriptedProvider("a", "b"), plugins=[limits], config=world.config) as agent:
        assert (await agent.run("go")).success
        world.now = 9
        assert "the next is possible in 1 s" in str((await agent.run("go")).error)
        world.now = 10
        assert (await agent.run("go")).success


RULES = LimitRules(
    max_tokens=100, max_requests=10, window=10.0, max_cost=1.0, refill_rate=5.0, bucket_size=50
)


def test_a_bucket_fills_at_its_rate_and_no_further_than_its_size() -> None:
    bucket = TokenBucket(RULES)
    assert isinstance(bucket.take(0, 50, 0), Ticket)
    assert "about 10 tokens are needed and 5 of 50 are left" in str(bucket.take(1, 10, 0))
    assert isinstance(bucket.take(2, 10, 0), Ticket)
    assert bucket.describe(1000)["bucket"] == 50
    assert "more than the bucket of 50 ever holds" in str(bucket.take(1000, 51, 0))


def test_a_bucket_pays_back_what_a_request_used_beyond_its_estimate() -> None:
    bucket = TokenBucket(RULES)
    ticket = bucket.take(0, 10, 0)
    assert isinstance(ticket, Ticket)
    bucket.settle(ticket, 60, 0)
    assert bucket.describe(0)["bucket"] == -10
    assert isinstance(bucket.take(1, 1, 0), str)
    assert isinstance(bucket.take(4, 10, 0), Ticket)


def test_a_sliding_window_forgets_request_by_request_and_a_fixed_one_all_at_once() -> None:
    sliding, fixed = SlidingWindow(RULES), FixedWindow(RULES)
    for window in (sliding, fixed):
        assert isinstance(window.take(0, 60, 0), Ticket)
        assert isinstance(window.take(6, 40, 0), Ticket)
        assert isinstance(window.take(9, 1, 0), str)
    assert isinstance(sliding.take(11, 60, 0), Ticket)
    assert isinstance(sliding.take(11, 1, 0), str)
    assert isinstance(fixed.take(11, 100, 0), Ticket)


@pytest.mark.parametrize(
    "options",
    [{"strategy": "hope"}, {"max_tokens": -1}, {"window": 0}, {"bucket_size": 1.5}, {"max_run_cost": "1"},
     {"rates": {"m": 1}}, {"key": 5}],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="'limits'"):
        LimitsPlugin(**options)
