from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.office import add

from robota.core.errors import CircuitBreakerOpenError, ConfigurationError, PluginError, ProviderError
from robota.core.events import TextDelta
from robota.core.ports import Ports
from robota.core.robota import AgentConfig, Robota
from robota.plugins import ErrorHandlingPlugin
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
DOWN = [Fail(ProviderError("the service is down"))]


class World:
    """A clock that stands still, and sleeping that takes no time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    @property
    def config(self) -> AgentConfig:
        return AgentConfig(ports=Ports(monotonic=lambda: self.now, sleep=self.sleep))


async def test_an_open_breaker_stops_a_run_before_the_request_and_lets_one_probe() -> None:
    world = World()
    errors = ErrorHandlingPlugin(strategy="circuit-breaker", failure_threshold=2)
    provider = ScriptedProvider(DOWN, DOWN, DOWN, "Back.", "Fine.")
    async with Robota(provider, plugins=[errors], config=world.config) as agent:
        for _ in range(2):
            await agent.run("go")
        refused = await agent.run("go")
        assert isinstance(refused.error, PluginError)
        assert "failed 2 times in a row; the next call is allowed in 60 s" in str(refused.error)
        assert len(provider.requests) == 2
        world.now = 61
        assert isinstance((await agent.run("go")).error, ProviderError)
        assert isinstance((await agent.run("go")).error, PluginError)
        world.now = 200
        assert (await agent.run("go")).text == "Back."
        assert (await agent.run("go")).text == "Fine."
    assert errors.get_stats()["breaker"] == "closed"


async def test_backing_off_waits_twice_as_long_after_every_failure() -> None:
    world = World()
    errors = ErrorHandlingPlugin(strategy="exponential-backoff")
    provider = ScriptedProvider(DOWN, DOWN, DOWN, "Back.", "Fine.")
    async with Robota(provider, plugins=[errors], config=world.config) as agent:
        for _ in range(5):
            await agent.run("go")
    assert world.slept == [1, 2, 4]


@pytest.mark.parametrize("strategy", ["simple", "silent"])
async def test_failures_are_counted_by_their_codes(strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    errors = ErrorHandlingPlugin(strategy=strategy)
    provider = ScriptedProvider(DOWN, [call("add", a="x")], "Sorry.")
    async with Robota(provider, tools=[add], plugins=[errors]) as agent:
        await agent.run("a")
        await agent.run("b")
    stats = errors.get_stats()
    assert stats["failures"] == 2
    assert stats["byCode"]["PROVIDER_ERROR"] == 1
    assert errors.get_data()[0]["error"] == "ProviderError: the service is down"
    assert ("the service is down" in caplog.text) == (strategy == "simple")


async def test_an_abort_says_nothing_about_the_service() -> None:
    errors = ErrorHandlingPlugin(strategy="circuit-breaker", failure_threshold=1)
    async with Robota(ScriptedProvider(["Hel", Stall()], "Hi."), plugins=[errors]) as agent:
        off = agent.events.on(TextDelta, lambda _: agent.abort())
        await agent.run("a")
        off()
        assert (await agent.run("b")).text == "Hi."


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [("simple", [1, 1, 1]), ("exponential-backoff", [1, 2, 4]), ("silent", [1, 1, 1])],
)
async def test_work_of_ones_own_is_done_again(strategy: str, waits: list[float]) -> None:
    world, errors, tried = World(), ErrorHandlingPlugin(strategy=strategy), 0

    async def work() -> str:
        nonlocal tried
        tried += 1
        if tried < 4:
            raise OSError("not yet")
        return "done"

    async with Robota(ScriptedProvider("Hi."), plugins=[errors], config=world.config) as agent:
        await agent.run("go")
        assert await errors.execute_with_retry(work) == "done"
        tried = -10
        with pytest.raises(OSError, match="not yet"):
            await errors.execute_with_retry(work)
    assert world.slept == waits * 2


async def test_a_breaker_refuses_work_of_ones_own_too() -> None:
    errors = ErrorHandlingPlugin(strategy="circuit-breaker", failure_threshold=2, retry_delay=0)

    async def work() -> None:
        raise OSError("no")

    with pytest.raises(CircuitBreakerOpenError):
        await errors.execute_with_retry(work)


@pytest.mark.parametrize(
    "options", [{"strategy": "hope"}, {"max_retries": -1}, {"failure_threshold": 0}, {"retry_delay": "1"}]
)
def test_options_that_cannot_work_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="'error-handling'"):
        ErrorHandlingPlugin(**options)
