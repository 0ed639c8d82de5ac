"""What the session used so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.errors import ConfigurationError
from robota.sdk.commands.arguments import split_first
from robota.sdk.commands.arguments import usage as usage_hint
from robota.sdk.commands.bars import length_bar
from robota.sdk.commands.effects import CommandResult, CostShown

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sessions.session import Session
    from robota.sessions.usage.report import UsageReport, UsageTotals

CHARTED = 20
"""Turns in the chart."""
COST_HINT = "[budget [AMOUNT | clear]]"


def cost(host: InteractiveSession, args: str) -> CommandResult:
    word, rest = split_first(args)
    if word == "budget":
        return limit_cost(host.session, rest)
    if word:
        return usage_hint("cost", COST_HINT, f"/cost knows no {word!r}.")
    session, spent = host.session, host.session.usage.total
    lines = [f"Session: {session.session_id}", f"Messages: {session.message_count}"]
    if spent.cost_usd:
        lines.append(f"Cost: {describe_cost(spent)}")
    elif spent.unpriced_tokens:
        lines.append(f"Cost: unknown, {spent.unpriced_tokens:,} tokens have no known price")
    effect = CostShown(session.session_id, session.message_count, spent.cost_usd or None)
    return CommandResult("\n".join(lines), effect=effect)


def limit_cost(session: Session, amount: str) -> CommandResult:
    """Show, set or lift what the session may cost; its other limits stay."""
    from robota.sessions.usage.budget import UNLIMITED  # noqa: PLC0415 - for those who ask
    from robota.sessions.usage.report import format_usd  # noqa: PLC0415 - as above

    budget = session.admission.budget or UNLIMITED
    if amount:
        try:
            most = None if amount == "clear" else float(amount.removeprefix("$"))
            budget = replace(budget, max_cost_usd=most)
        except (ValueError, ConfigurationError):
            return usage_hint("cost", COST_HINT, f"{amount!r} is not an amount of US dollars, such as 2.50.")
        session.limit(budget)
    if budget.max_cost_usd is None:
        return CommandResult("The cost of this session is not limited.")
    spent = describe_cost(session.usage.total)
    return CommandResult(f"This session may cost {format_usd(budget.max_cost_usd)}; {spent} is spent.")


def describe_cost(spent: UsageTotals) -> str:
    from robota.sessions.usage.report import format_usd  # noqa: PLC0415 - as above

    return f"{format_usd(spent.cost_usd or 0.0)}{' or more' if spent.unpriced_tokens else ''}"


def usage(host: InteractiveSession, args: str) -> CommandResult:
    from robota.sessions.usage.report import format_usage  # noqa: PLC0415 - as above

    report = host.session.usage.snapshot()
    return CommandResult("\n".join([format_usage(report), *draw_turns(report)]))


def draw_turns(report: UsageReport) -> list[str]:
    """A chart of the latest turns by their tokens; one turn alone needs none."""
    turns = report.turns[-CHARTED:]
    if len(turns) < 2:
        return []
    first = report.earlier_turn_count + len(report.turns) - len(turns) + 1
    largest = max(turn.total_tokens for turn in turns)
    rows = [
        f"  {number:>4}  {turn.total_tokens:>9,}  {length_bar(turn.total_tokens, largest)}".rstrip()
        for number, turn in enumerate(turns, first)
    ]
    return ["Tokens of each turn", *rows]
