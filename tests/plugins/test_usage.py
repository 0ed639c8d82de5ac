from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.office import ADDING, USED, Receiver, add, open_session

from robota.core.errors import ConfigurationError, ProviderError
from robota.core.events import TextDelta
from robota.core.robota import Robota
from robota.plugins import Entry, UsagePlugin
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
RATES = {"scripted": {"input": 10.0, "output": 100.0}}


async def test_each_model_call_is_counted_and_priced(tmp_path: Path) -> None:
    usage = UsagePlugin(rates=RATES)
    async with open_session(tmp_path, ADDING, ["Three.", USED], plugins=[usage]) as session:
        await session.submit("Add.")
        first, second = usage.get_data()
        assert first["sessionId"] == session.session_id
    assert (first["model"], first["inputTokens"], first["outputTokens"]) == ("scripted", 100, 20)
    assert second["costUsd"] == pytest.approx(0.003)
    assert (first["success"], second["success"]) == (True, True)
    total = usage.total
    assert (total.requests, total.input_tokens, total.output_tokens) == (2, 200, 40)
    assert total.cost_usd == pytest.approx(0.006)
    [bucket] = UsagePlugin.aggregate(usage)
    assert (bucket["requests"], bucket["start"] % 300) == (2, 0)


async def test_subagents_are_counted_with_their_names(tmp_path: Path) -> None:
    usage = UsagePlugin()
    replies = [[call("Agent", prompt="look", description="look"), USED], ["I saw it.", USED], ["Done.", USED]]
    async with open_session(tmp_path, *replies, plugins=[usage]) as session:
        await session.submit("go")
    agents = [record.get("agentId", "") for record in usage.get_data()]
    assert [agent.startswith("general-purpose-") for agent in agents] == [False, True, False]
    assert usage.total.requests == 3


async def test_a_failed_call_and_a_cut_one_are_counted_as_such() -> None:
    usage = UsagePlugin()
    provider = ScriptedProvider([Fail(ProviderError("no"))], ["Hel", Stall()])
    async with Robota(provider, model="m", plugins=[usage]) as agent:
        await agent.run("a")
        agent.events.on(TextDelta, lambda _: agent.abort())
        await agent.run("b")
    assert [record["success"] for record in usage.get_data()] == [False, False]
    assert (usage.total.requests, usage.total.failed) == (2, 2)


@pytest.mark.parametrize("strategy", ["file", "sqlite"])
async def test_records_are_on_the_disk_when_the_session_is_closed(tmp_path: Path, strategy: str) -> None:
    place = tmp_path / "kept" / "usage"
    usage = UsagePlugin(strategy=strategy, path=place)
    async with open_session(tmp_path, ["Hi.", USED], plugins=[usage]) as session:
        await session.submit("Hello.")
    again = UsagePlugin(strategy=strategy, path=place)
    [record] = await again.read()
    assert record["inputTokens"] == 100
    assert usage.get_stats()["written"] == 1


async def test_a_full_batch_is_written_beside_the_run() -> None:
    async with Receiver() as server:
        usage = UsagePlugin(strategy="remote", url=server.url, allowed_hosts=("127.0.0.1",), batch_size=2)
        agent = Robota(ScriptedProvider(ADDING, "Three."), tools=[add], plugins=[usage])
        await agent.run("go")
        await server.wait_for(1)
        await agent.aclose()
    [body] = server.bodies
    assert (body["collection"], len(body["entries"])) == ("usage", 2)


async def test_after_the_interval_an_incomplete_batch_is_written_too() -> None:
    async with Receiver() as server:
        usage = UsagePlugin(
            strategy="remote", url=server.url, allowed_hosts=("127.0.0.1",), flush_interval=0.001
        )
        agent = Robota(ScriptedProvider("Hi."), plugins=[usage])
        await agent.run("go")
        await server.wait_for(1)
        await agent.aclose()
    assert len(server.bodies) == 1


class Moody:
    """A storage of somebody else that refuses at first."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.entries: list[Entry] = []
        self.asked = asyncio.Event()

    async def write(self, entries: Any) -> None:
        self.asked.set()
        if self.refusals:
            self.refusals -= 1
            raise OSError("the disk is full")
        self.entries += entries

    async def read(self) -> list[Entry]:
        return list(self.entries)

    async def remove(self, key: str) -> bool:
        return False


async def test_a_storage_that_fails_is_told_once_and_stands_in_no_runs_way(tmp_path: Path) -> None:
    storage = Moody(2)
    usage = UsagePlugin(strategy="database", storage=storage, batch_size=1)
    notices: list[str] = []
    async with open_session(tmp_path, "One.", "Two.", "Three.", plugins=[usage]) as session:
        session.on("notice", lambda text: notices.append(str(text)))
        assert (await session.submit("a")).text == "One."
        await storage.asked.wait()
        await usage.flush()
        assert usage.get_stats()["writeFailures"] == 2
        assert "the disk is full" in usage.get_stats()["trouble"]
        assert (await session.submit("b")).text == "Two."
    assert len([notice for notice in notices if "'usage' could not write" in notice]) == 1
    assert len(storage.entries) == 2
    assert usage.get_stats()["trouble"] == ""


class Stuck(Moody):
    """A storage that takes its time."""

    def __init__(self) -> None:
        super().__init__(0)
        self.free = asyncio.Event()

    async def write(self, entries: Any) -> None:
        self.asked.set()
        await self.free.wait()
        await super().write(entries)


async def test_nobody_who_waits_for_a_subagent_waits_for_a_storage(tmp_path: Path) -> None:
    storage = Stuck()
    usage = UsagePlugin(strategy="database", storage=storage)
    replies = [[call("Agent", prompt="look", description="look")], "I saw it.", "Done."]
    async with open_session(tmp_path, *replies, plugins=[usage]) as session:
        assert (await session.submit("go")).text == "Done."
        await storage.asked.wait()
        assert storage.entries == []
        storage.free.set()
    assert len(storage.entries) == 3


async def test_what_waits_for_a_dead_storage_is_bounded() -> None:
    usage = UsagePlugin(strategy="database", storage=Moody(10**9), batch_size=1, max_entries=3)
    async with Robota(ScriptedProvider(*["Hi."] * 8), plugins=[usage]) as agent:
        for _ in range(8):
            await agent.run("go")
    stats = usage.get_stats()
    assert (stats["entries"], stats["waiting"], stats["dropped"]) == (3, 3, 5)
    assert usage.total.requests == 8


async def test_a_silent_plugin_keeps_sums_alone() -> None:
    usage = UsagePlugin(strategy="silent")
    async with Robota(ScriptedProvider(["Hi.", USED]), plugins=[usage]) as agent:
        await agent.run("go")
    assert (usage.get_data(), usage.total.input_tokens) == ([], 100)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "disk"}, "has no strategy 'disk'"),
        ({"strategy": "file"}, "needs the option path"),
        ({"strategy": "remote"}, "needs the option url"),
        ({"path": "x"}, "does not belong to the strategy 'memory'"),
        ({"strategy": "file", "pth": "x"}, "did you mean 'path'"),
        ({"max_entries": 0}, "a whole number of at least 1, not 0"),
        ({"batch_size": 1.5}, "a whole number"),
        ({"flush_interval": 0}, "above 0"),
        ({"flush_interval": True}, "a number above 0"),
        ({"rates": {"m": {"input": "dear"}}}, "rates"),
        ({"strategy": "database", "storage": object()}, "needs the methods write, read and remove"),
        ({"strategy": "sqlite", "path": "x", "table": "a b"}, "table 'a b'"),
    ],
)
def test_options_that_cannot_work_are_refused_in_one_sentence(options: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        UsagePlugin(**options)
