"""What the session used so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult, CostShown

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


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

    return CommandResult(format_usage(host.session.usage.snapshot()))
