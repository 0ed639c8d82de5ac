"""A usage report as people and programs read it."""

from __future__ import annotations

import msgspec
import pytest

from robota.core.events import ToolEnded
from robota.core.messages import TokenUsage
from robota.core.models import ModelPrice
from robota.sessions.usage.ledger import UsageLedger
from robota.sessions.usage.report import ModelUsage, format_usage, format_usd

PRICES = {"m": ModelPrice(input=1.0, output=10.0)}


def ended(name: str = "read", content: str = "", *, outcome: str = "success") -> ToolEnded:
    return ToolEnded(call_id="1", tool_call_id="1", tool_name=name, outcome=outcome, content=content)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (-0.0, "$0.00"),
        (1e-7, "<$0.0001"),
        (0.00005, "$0.0001"),
        (0.0123456, "$0.0123"),
        (0.99994, "$0.9999"),
        (0.99996, "$1.00"),
        (1.005, "$1.00"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_has_four_digits_below_a_dollar_and_two_above(amount: float, shown: str) -> None:
    assert format_usd(amount) == shown


def test_a_report_reads_as_lines() -> None:
    ledger = UsageLedger(prices=PRICES)
    ledger.open_turn("1")
    ledger.record_tool(ended("Read", "x" * 8_000))
    ledger.record_tool(ended("Bash\x1b[31m\nforged", "", outcome="error"))
    ledger.record("m", TokenUsage(100_000, 2_000, 60_000, 10_000))
    ledger.child("scout").record("nobody-knows", TokenUsage(500, 1), estimated=500)
    assert format_usage(ledger.snapshot()) == (
        "Session: 2 requests, 100,500 tokens in (60% from cache), 2,001 out, $0.1200 or more.\n"
        "  Input: 60,000 read from the cache, 10,000 written to it, 30,500 uncached.\n"
        "  500 of these tokens are estimated: nobody reported them.\n"
        "  501 tokens have no known price and are not in the sum.\n"
        "Models\n"
        "  m             1 request, 100,000 tokens in (60% from cache), 2,000 out, $0.1200\n"
        "  nobody-knows  1 request, 500 tokens in, 1 out, price unknown\n"
        "Purposes\n"
        "  answer    1 request, 100,000 tokens in (60% from cache), 2,000 out, $0.1200\n"
        "  subagent  1 request, 500 tokens in, 1 out, price unknown\n"
        "Tools\n"
        "  Read         1 call, about 2,000 tokens of results, about $0.0020 to send them, 0.0 s\n"
        "  Bash forged  1 call, 1 failed, about 0 tokens of results, 0.0 s\n"
        "Subagents\n"
        "  scout  1 request, 500 tokens in, 1 out, price unknown"
    )


def test_a_name_takes_one_line_of_bounded_length() -> None:
    ledger = UsageLedger()
    for name in ("\n", "x" * 500):
        ledger.record_tool(ended(name))
    assert [len(line.split()[0]) for line in format_usage(ledger.snapshot()).splitlines()[2:]] == [9, 60]


def test_only_the_tools_with_the_largest_results_are_listed() -> None:
    ledger = UsageLedger()
    for number in range(9):
        ledger.record_tool(ended(f"t{number}", "x" * 4 * number))
    lines = format_usage(ledger.snapshot(), top=2).splitlines()
    assert lines[1:] == [
        "Tools (the 2 with the largest results)",
        "  t8  1 call, about 8 tokens of results, 0.0 s",
        "  t7  1 call, about 7 tokens of results, 0.0 s",
    ]


def test_a_new_session_says_that_nothing_was_used() -> None:
    assert format_usage(UsageLedger().snapshot()) == "Nothing was used yet."


def test_rows_are_flat_in_json() -> None:
    row = msgspec.json.decode(msgspec.json.encode(ModelUsage(model="m", requests=1)))
    assert (row["model"], row["requests"], row["costUsd"]) == ("m", 1, 0.0)
