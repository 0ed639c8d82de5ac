"""What a session used: entered by the provider and by events, added up, shown, and taken up again."""

from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from robota.core.bus import EventBus
from robota.core.cache import CachingProvider
from robota.core.errors import ConfigurationError
from robota.core.events import (
    ProviderNativeRawPayload,
    ProviderStreamRawDelta,
    QuestionAsked,
    QuestionClosed,
    RunStarted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
)
from robota.core.messages import TokenUsage, UserMessage
from robota.core.models import ModelPrice
from robota.core.provider import ChatRequest
from robota.core.questions import PermissionQuestion
from robota.core.reply import chat
from robota.core.robota import Robota
from robota.sessions.usage.budget import BudgetedProvider
from robota.sessions.usage.ledger import NAMES_KEPT, OTHERS, TURNS_KEPT, UsageLedger
from robota.sessions.usage.report import (
    AgentUsage,
    ToolUsage,
    UsageReport,
    UsageTotals,
)
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

PRICES = {"m": ModelPrice(input=1.0, output=10.0)}


class CachePrice(ModelPrice, frozen=True):
    cache_read: float | None = None
    cache_write: float | None = None


@tool
async def read(size: int) -> str:
    """Read so many characters."""
    return "x" * size


@tool
async def fail() -> str:
    """Fail."""
    raise RuntimeError("no")


def make_agent(ledger: UsageLedger, *replies: object, model: str = "m") -> Robota:
    provider = BudgetedProvider(ScriptedProvider(*replies), ledger)  # type: ignore[arg-type]  # any script
    agent = Robota(provider, model=model, tools=[read, fail])
    ledger.attach(agent.events)
    return agent


def ended(name: str = "read", content: str = "", *, outcome: str = "success") -> ToolEnded:
    return ToolEnded(call_id="1", tool_call_id="1", tool_name=name, outcome=outcome, content=content)  # type: ignore[arg-type]


def add_up(rows: object) -> UsageTotals:
    """The sum of rows that a report lists; money to the picodollar."""
    fields = dict.fromkeys(UsageTotals.__struct_fields__, 0)
    for row in rows:  # type: ignore[attr-defined]
        for name in fields:
            fields[name] += round((row.cost_usd or 0) * 10**12) if name == "cost_usd" else getattr(row, name)
    cost = fields.pop("cost_usd")
    unknown = fields["unpriced_tokens"] and not cost
    return UsageTotals(**fields, cost_usd=None if unknown else cost / 10**12)


# --- what is counted ----------------------------------------------------------------------------------


async def test_every_request_of_a_run_counts_for_its_turn_its_model_and_the_session() -> None:
    ledger = UsageLedger(prices=PRICES)
    agent = make_agent(
        ledger,
        [call("read", size=4), TokenUsage(100, 10)],
        ["one", TokenUsage(150, 20, 90, 5, 7)],
        ["two", TokenUsage(200, 30)],
    )
    first, second = await agent.run("a"), await agent.run("b")
    assert (first.usage, second.usage) == (TokenUsage(250, 30, 90, 5, 7), TokenUsage(200, 30))
    report = ledger.snapshot()
    assert [(turn.execution_id, turn.requests, turn.tool_calls) for turn in report.turns] == [
        (first.execution_id, 2, 1),
        (second.execution_id, 1, 0),
    ]
    assert report.total == UsageTotals(
        requests=3,
        input_tokens=450,
        output_tokens=60,
        cache_read_tokens=90,
        cache_write_tokens=5,
        reasoning_tokens=7,
        cost_usd=0.00105,
    )
    assert [row.model for row in report.models] == ["m"]
    assert add_up(report.turns) == add_up(report.models) == add_up(report.purposes) == report.total
    assert (ledger.total, report.turns[-1].output_tokens) == (report.total, 30)


async def test_an_empty_reply_counts_although_it_leaves_no_message() -> None:
    ledger = UsageLedger(prices=PRICES)
    await make_agent(ledger, [TokenUsage(50, 1)], ["x", TokenUsage(60, 2)]).run("a")
    assert (ledger.total.requests, ledger.total.input_tokens) == (2, 110)


async def test_without_a_counting_provider_events_tell_what_replies_report() -> None:
    ledger = UsageLedger(prices=PRICES)
    script = ScriptedProvider(
        [call("read", size=4), TokenUsage(100, 10)], [TokenUsage(50, 1)], ["x", TokenUsage(60, 2)], ["unsaid"]
    )
    agent = Robota(script, model="m", tools=[read])
    ledger.attach(agent.events)
    await agent.run("a")
    await agent.run("b")
    report = ledger.snapshot()
    assert (report.total.requests, report.total.input_tokens, report.total.output_tokens) == (4, 210, 13)
    assert [(turn.requests, turn.tool_calls) for turn in report.turns] == [(3, 1), (1, 0)]
    assert [row.model for row in report.models] == ["m"]


async def test_listening_for_usage_switches_no_delta_and_no_raw_event_on() -> None:
    agent = make_agent(UsageLedger())
    wanted = (TextDelta, ProviderStreamRawDelta, ProviderNativeRawPayload)
    assert not any(agent.events.wants(kind) for kind in wanted)


async def test_requests_for_other_purposes_are_told_apart_and_belong_to_no_turn_when_none_is_under_way() -> (
    None
):
    ledger = UsageLedger(prices=PRICES)
    agent = make_agent(ledger, ["one", TokenUsage(100, 10)], ["summary", TokenUsage(300, 40)])
    await agent.run("a")
    assert isinstance(agent.provider, BudgetedProvider)
    summarizer = agent.provider.share(ledger.for_purpose("compaction"))
    await chat(summarizer, ChatRequest(model="m", messages=[UserMessage("sum up")]))
    report = ledger.snapshot()
    assert [(row.purpose, row.input_tokens) for row in report.purposes] == [
        ("answer", 100),
        ("compaction", 300),
    ]
    assert report.between_turns.output_tokens == 40
    assert add_up([*report.turns, report.between_turns]) == report.total


async def test_a_subagent_has_its_own_row_and_counts_for_the_turn_that_started_it() -> None:
    ledger = UsageLedger(prices=PRICES)

    @tool
    async def delegate() -> str:
        """Start another agent."""
        page = ledger.child("scout")
        assert isinstance(agent.provider, BudgetedProvider)
        inner = Robota(agent.provider.share(page), model="m", tools=[read])
        page.attach(inner.events)
        inner.events.on(
            ToolEnded, lambda event: agent.events.emit(SubagentEvent(agent_id="scout", inner=event))
        )
        return (await inner.run("look")).text

    agent = make_agent(
        ledger,
        [call("delegate"), TokenUsage(100, 10)],
        [call("read", size=8), TokenUsage(20, 2)],
        ["found", TokenUsage(30, 3)],
        ["done", TokenUsage(120, 12)],
    )
    agent.tools = [delegate]
    await agent.run("a")
    report = ledger.snapshot()
    assert report.agents == (
        AgentUsage(
            agent_id="scout", requests=2, input_tokens=50, output_tokens=5, cost_usd=0.0001, tool_calls=1
        ),
    )
    assert [(turn.requests, turn.tool_calls) for turn in report.turns] == [(4, 2)]
    assert {row.name: row.calls for row in report.tools} == {"read": 1, "delegate": 1}
    assert add_up(report.turns) == report.total


async def test_a_reply_from_a_cache_above_the_ledger_costs_nothing() -> None:
    ledger = UsageLedger(prices=PRICES)
    provider = CachingProvider(BudgetedProvider(ScriptedProvider(["x", TokenUsage(9, 1)]), ledger))
    for _ in range(2):
        await Robota(provider, model="m").run("the same")
    assert ledger.total.requests == 1


# --- money --------------------------------------------------------------------------------------------


def test_cached_input_has_prices_of_its_own() -> None:
    ledger = UsageLedger(prices={"m": CachePrice(input=4.0, output=20.0, cache_read=0.4, cache_write=5.0)})
    ledger.record("m", TokenUsage(1_000_000, 100_000, 600_000, 100_000))
    assert ledger.total.cost_usd == 0.3 * 4 + 0.6 * 0.4 + 0.1 * 5 + 0.1 * 20


def test_a_cache_that_reports_more_than_was_sent_makes_nothing_cheaper() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.record("m", TokenUsage(100_000, 0, 200_000))
    assert ledger.total.cost_usd == 0.2


def test_cached_input_without_a_price_of_its_own_counts_in_full() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.record("m", TokenUsage(1_000_000, 0, 600_000, 100_000))
    assert ledger.total.cost_usd == 1.0


def test_a_shipped_price_is_found_and_a_given_one_goes_before_it() -> None:
    shipped, given_one = UsageLedger(), UsageLedger(prices={"gpt-4o": ModelPrice(0.0, 0.0)})
    for ledger in (shipped, given_one):
        ledger.record("gpt-4o", TokenUsage(1_000_000, 0))
    assert (shipped.total.cost_usd, given_one.total.cost_usd) == (2.5, 0.0)


def test_an_unknown_price_is_never_nothing() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.record("nobody-knows", TokenUsage(100, 10))
    assert (ledger.total.cost_usd, ledger.total.unpriced_tokens) == (None, 110)
    ledger.record("m", TokenUsage(0, 100_000))
    assert (ledger.total.cost_usd, ledger.total.unpriced_tokens) == (1.0, 110)


def test_a_report_below_zero_gives_nothing_back() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.record("m", TokenUsage(-5, 10, -1))
    assert (ledger.total.input_tokens, ledger.total.output_tokens) == (0, 10)


@pytest.mark.parametrize("price", [float("nan"), float("inf"), -1.0])
def test_a_price_that_is_no_amount_is_refused(price: float) -> None:
    with pytest.raises(ConfigurationError, match="US dollars per million tokens"):
        UsageLedger(prices={"m": ModelPrice(price, 1.0)})


# --- tools --------------------------------------------------------------------------------------------


async def test_tools_are_counted_with_the_size_of_their_results_and_what_sending_those_cost() -> None:
    ledger = UsageLedger(prices=PRICES)
    agent = make_agent(
        ledger,
        [call("read", "a", size=4000), call("fail", "b"), TokenUsage(100, 10)],
        [call("read", "c", size=400), TokenUsage(1200, 10)],
        ["done", TokenUsage(1300, 10)],
    )
    await agent.run("a")
    tools = {row.name: row for row in ledger.snapshot().tools}
    assert tools["read"] == ToolUsage(
        name="read",
        calls=2,
        result_tokens_estimate=1100,
        input_cost_usd_estimate=0.0011,
        duration=tools["read"].duration,
    )
    assert tools["read"].duration > 0
    assert (tools["fail"].calls, tools["fail"].failures) == (1, 1)
    assert tools["fail"].result_tokens_estimate > 0


def test_a_result_is_charged_once_by_the_first_request_that_was_counted() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.record_tool(ended(content="漢" * 4))
    ledger.record("m", TokenUsage())  # failed before it was sent
    ledger.record("nobody-knows", TokenUsage(5, 5))
    ledger.record("m", TokenUsage(5, 5))
    (row,) = ledger.snapshot().tools
    assert (row.result_tokens_estimate, row.input_cost_usd_estimate) == (3, None)


def test_the_time_of_a_tool_is_without_the_time_its_user_took_to_answer() -> None:
    ledger, events, now = UsageLedger(), EventBus(), 0.0
    ledger.book.clock = lambda: now
    ledger.attach(events)

    for question in ("q1", "q2"):
        asked = PermissionQuestion(id=question, call_id="c", tool_name="Edit", tool_input={}, cwd="/")
        events.emit(QuestionAsked(execution_id="1", seq=0, question=asked))
        now += 8.0
        events.emit(QuestionClosed(execution_id="1", seq=0, id=question))
    events.emit(replace(ended(), call_id="c", duration=16.5))
    events.emit(replace(ended(), call_id="d", duration=1.0))

    assert ledger.snapshot().tools[0].duration == 1.5


def test_a_denied_call_is_a_failure() -> None:
    ledger = UsageLedger()
    ledger.record_tool(ended(outcome="denied"))
    assert ledger.snapshot().tools[0].failures == 1


# --- bounds -------------------------------------------------------------------------------------------


def deep_size(value: object, seen: set[int]) -> int:
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        return size + sum(deep_size(item, seen) for pair in value.items() for item in pair)
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return size + sum(deep_size(getattr(value, name), seen) for name in slots)


def test_ten_thousand_turns_stay_small_and_keep_their_sum() -> None:
    ledger = UsageLedger(prices=PRICES)
    for number in range(10_000):
        ledger.open_turn(f"00000000-0000-4000-8000-{number:012d}")
        ledger.record_tool(ended(content="x" * 100))
        ledger.record("m", TokenUsage(100_000, 1_000, 90_000))
        ledger.close_turn()
    report = ledger.snapshot()
    assert (len(report.turns), report.earlier_turn_count) == (TURNS_KEPT, 10_000 - TURNS_KEPT)
    assert add_up([*report.turns, report.earlier_turns]) == report.total
    assert report.total.requests == 10_000
    assert deep_size(ledger.book, set()) < 64 * 1024


def test_names_that_a_model_makes_up_cannot_fill_the_memory() -> None:
    ledger = UsageLedger()
    for number in range(NAMES_KEPT + 50):
        ledger.record_tool(ended(f"tool-{number}"))
        ledger.child(f"agent-{number}").record(f"model-{number}", TokenUsage(1, 1))
    report = ledger.snapshot()
    assert len(report.tools) == len(report.models) == len(report.agents) == NAMES_KEPT + 1
    assert {row.name: row.calls for row in report.tools}[OTHERS] == 50
    assert add_up(report.models) == report.total


# --- sums ---------------------------------------------------------------------------------------------

COUNTS = st.builds(TokenUsage, *[st.integers(0, 10**6)] * 5)
ENTRIES = st.lists(
    st.tuples(
        st.sampled_from(["open", "close", "request", "tool"]),
        st.sampled_from(["m", "gpt-4o", "unknown-1", "unknown-2"]),
        st.sampled_from(["", "a", "b"]),
        COUNTS,
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=200)
@given(ENTRIES)
def test_all_ways_to_add_up_agree(entries: list[tuple[str, str, str, TokenUsage]]) -> None:
    ledger = UsageLedger(prices=PRICES)
    for number, (kind, model, agent, usage) in enumerate(entries):
        page = ledger.child(agent) if agent else ledger
        if kind == "open":
            ledger.open_turn(str(number))
        elif kind == "close":
            ledger.close_turn()
        elif kind == "tool":
            page.record_tool(ended(content="x" * 9))
        else:
            page.record(model, usage, estimated=usage.reasoning_tokens)
    report = ledger.snapshot()
    assert add_up([*report.turns, report.earlier_turns, report.between_turns]) == report.total
    assert add_up(report.models) == add_up(report.purposes) == report.total
    own = [row for row in report.purposes if row.purpose == "answer"]
    assert add_up([*own, *report.agents]) == report.total
    assert report.total.requests == sum(kind == "request" for kind, *_ in entries)


async def test_a_report_is_written_in_camel_case_and_read_again() -> None:
    ledger = UsageLedger(prices=PRICES)
    await make_agent(ledger, [call("read", size=4), TokenUsage(10, 1)], ["x", TokenUsage(20, 2)]).run("a")
    written = msgspec.json.encode(ledger.snapshot())
    assert b'"inputTokens":30' in written
    assert b'"executionId"' in written
    assert msgspec.json.decode(written, type=UsageReport) == ledger.snapshot()


def test_a_turn_that_is_opened_again_goes_on() -> None:
    ledger = UsageLedger()
    for _ in range(2):
        ledger.open_turn("1")
        ledger.record("m", TokenUsage(1, 1))
        ledger.close_turn()
    assert [turn.requests for turn in ledger.snapshot().turns] == [2]


def test_a_turn_begins_with_the_run_of_the_sessions_own_agent_only() -> None:
    ledger, own, others = UsageLedger(), EventBus(), EventBus()
    ledger.attach(own)
    ledger.child("scout").attach(others)
    others.emit(RunStarted(conversation_id="c", execution_id="theirs"))
    own.emit(RunStarted(conversation_id="c", execution_id="mine"))
    assert [turn.execution_id for turn in ledger.snapshot().turns] == ["mine"]
