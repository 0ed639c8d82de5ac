"""What the session used so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.bars import length_bar
from robota.sdk.commands.effects import CommandResult, CostShown

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sessions.usage.report import UsageReport

CHARTED = 20
"""Turns in the chart."""


def cost(host: InteractiveSession, args: str) -> CommandResult:
    from robota.sessions.usage.report import format_usd  # noqa: PLC0415 - for those who ask

    session, spent = host.session, host.session.usage.total
    lines = [f"Session: {session.session_id}", f"Messages: {session.message_count}"]
    if spent.cost_usd:
        lines.append(f"Cost: {format_usd(spent.cost_usd)}{' or more' if spent.unpriced_tokens else ''}")
    effect = CostShown(session.session_id, session.message_count, spent.cost_usd or None)
    return CommandResult("\n".join(lines), effect=effect)


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
