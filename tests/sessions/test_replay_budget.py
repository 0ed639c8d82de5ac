"""A replay has the budget of the recording: it warns and refuses where that did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.sessions.recorded_session import RecordedSession, assert_replays, rewrite, scripted
from tests.sessions.test_replay_anything import Chance, do_something, make_session
from tests.support.forms import some_of

from robota.core.events import Noticed
from robota.core.messages import JsonObject, TokenUsage, ToolMessage
from robota.sessions.options import SessionOptions
from robota.sessions.replay.session_replay import Changes, replay_session
from robota.sessions.usage.budget import Budget
from robota.testing import call

pytestmark = pytest.mark.anyio

SPENT = TokenUsage(input_tokens=600, output_tokens=300)


async def record(home: Path, *replies: Any, prompts: int = 1, **options: Any) -> RecordedSession:
    recorded = scripted(home, *replies, **options)
    await recorded.run(*(f"prompt {number}" for number in range(prompts)))
    return recorded


def notices(recorded: RecordedSession) -> list[str]:
    return [event.message for event in recorded.told(Noticed) if "budget" in event.message]


async def test_a_notice_comes_again(tmp_path: Path) -> None:
    recorded = await record(tmp_path, ["one", SPENT], budget=Budget(max_tokens=1_000))
    assert notices(recorded) == ["90% of the session's budget is used: 900 tokens of 1,000 tokens."]
    await assert_replays(recorded)


def without(text: str) -> Any:
    def change(entry: JsonObject) -> JsonObject | None:
        return None if text in str(entry.get("message")) else entry

    return change


def instead_of(text: str, other: str) -> Any:
    def change(entry: JsonObject) -> JsonObject:
        return {**entry, "message": other} if text in str(entry.get("message")) else entry

    return change


async def test_a_notice_that_only_one_of_them_has_is_a_difference(tmp_path: Path) -> None:
    recorded = await record(tmp_path, ["one", SPENT], budget=Budget(max_tokens=1_000))
    planted = tmp_path / "planted" / "s-1.jsonl"

    missing = await replay_session(rewrite(recorded.path, planted, without("90% of")))
    assert missing.divergence is not None
    assert missing.divergence.replayed == "notice"

    other = "95% of the session's budget is used: 950 tokens of 1,000 tokens."
    wrong = await replay_session(rewrite(recorded.path, planted, instead_of("90% of", other)))
    assert wrong.divergence is not None
    assert (wrong.divergence.field, wrong.divergence.recorded) == ("message", other)

    def more(options: SessionOptions) -> SessionOptions:
        return replace(options, budget=Budget(max_tokens=5_000))

    silent = await replay_session(recorded.path, changes=Changes(options=more))
    assert silent.divergence is not None
    assert (silent.divergence.event, silent.divergence.recorded) == ("notice", "notice")


async def test_a_request_is_refused_again_and_later_replies_are_the_right_ones(tmp_path: Path) -> None:
    recorded = await record(tmp_path, "one", "two", prompts=2, budget=Budget(max_requests=1))
    recorded.session.limit(Budget(max_requests=2))
    await recorded.run("once more")
    assert recorded.session.messages[-1].content == "two"
    assert len(notices(recorded)) == 2
    await assert_replays(recorded)


async def test_a_refused_summary_is_refused_again(tmp_path: Path) -> None:
    recorded = await record(tmp_path, "one", "never", budget=Budget(max_requests=1))
    with pytest.raises(Exception, match="max_requests"):
        await recorded.session.compact()
    await assert_replays(recorded)


async def test_more_money_leads_beyond_the_refusal(tmp_path: Path) -> None:
    recorded = await record(tmp_path, "one", prompts=2, budget=Budget(max_requests=1))

    def more(options: SessionOptions) -> SessionOptions:
        return replace(options, budget=Budget(max_requests=10))

    report = await replay_session(recorded.path, changes=Changes(options=more))
    assert report.divergence is not None


async def test_refused_calls_are_refused_again(tmp_path: Path) -> None:
    calls = [call("add", f"c{at}", a=at, b=1) for at in range(4)]
    recorded = await record(tmp_path, calls, "done", budget=Budget(max_tool_calls=2))
    results = [message for message in recorded.session.messages if isinstance(message, ToolMessage)]
    assert sum("max_tool_calls" in message.content for message in results) == 2
    await assert_replays(recorded)


@pytest.mark.parametrize("seconds", [0, 0.000_001, 1_000])
async def test_time_is_another_one_each_time(tmp_path: Path, seconds: float) -> None:
    budget = Budget(max_seconds=seconds, max_tokens=100_000)
    recorded = await record(tmp_path, "one", "two", prompts=2, budget=budget)
    report = await replay_session(recorded.path)
    assert report.divergence is None, str(report.divergence)
    assert report.messages == tuple(recorded.session.messages)


async def test_a_journal_has_the_budget_and_each_change_of_it(tmp_path: Path) -> None:
    recorded = await record(tmp_path, "one", budget=Budget(max_tokens=5_000, max_seconds=60))
    recorded.session.limit(Budget(max_requests=3))
    first, *rest = recorded.log()
    assert first["budget"]["maxTokens"] == 5_000
    assert first["budget"]["maxSeconds"] == 60
    changes = [entry for entry in rest if entry["event"] == "session_change"]
    assert [(entry["change"], entry["value"]["maxRequests"]) for entry in changes] == [("budget", 3)]


@pytest.mark.parametrize("seed", [*some_of(range(20)), 1_050, 1_067, 1_162, 1_221])
async def test_a_random_session_with_a_budget_replays_identically(tmp_path: Path, seed: int) -> None:
    chance = Chance(1_000 + seed)
    recorded = make_session(tmp_path, chance)
    amounts = {"max_tokens": (2_000, 20_000), "max_requests": (3, 15), "max_tool_calls": (2, 9)}
    for _ in range(8):
        if chance(0.3):
            name = chance.random.choice([*amounts])
            recorded.session.limit(Budget(**{name: chance.random.randint(*amounts[name])}))
        await do_something(recorded, chance)

    report = await replay_session(recorded.path)
    assert report.divergence is None, str(report.divergence)
    assert report.messages == tuple(recorded.session.messages)
