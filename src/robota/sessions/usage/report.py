"""What a session used, as plain values (camelCase in JSON) and as lines for people.

Tokens are counted as the services report them; what had to be estimated is counted apart as well. A price
that is not known is never shown as nothing: such tokens stand in `unpriced_tokens`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

TOP_TOOLS = 5
_LABEL_WIDTH = 60


class UsageTotals(Struct, frozen=True, kw_only=True, rename="camel"):
    """The sum over some model requests."""

    requests: int = 0
    input_tokens: int = 0
    """Everything that was sent; what was read from or written to a cache is counted in it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_tokens: int = 0
    """How many of the tokens nobody reported: a reply that was stopped, a service that does not count."""
    unpriced_tokens: int = 0
    """How many of the tokens are missing in the cost."""
    cost_usd: float | None = 0.0
    """`None` when no price is known for any of it; a lower bound while `unpriced_tokens` is not 0."""

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def uncached_tokens(self) -> int:
        """Input that a cache neither gave nor took."""
        return max(0, self.input_tokens - self.cache_read_tokens - self.cache_write_tokens)


class TurnUsage(UsageTotals, frozen=True, kw_only=True):
    """One prompt, with everything done for it: compactions and subagents included."""

    execution_id: str
    tool_calls: int = 0


class ModelUsage(UsageTotals, frozen=True, kw_only=True):
    model: str


class PurposeUsage(UsageTotals, frozen=True, kw_only=True):
    purpose: str


class AgentUsage(UsageTotals, frozen=True, kw_only=True):
    """What one subagent used itself; its own subagents have entries of their own."""

    agent_id: str
    tool_calls: int = 0


Row = TypeVar("Row", bound=UsageTotals)


class ToolUsage(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    calls: int = 0
    failures: int = 0
    """Calls that failed or were denied."""
    result_tokens_estimate: int = 0
    input_cost_usd_estimate: float | None = 0.0
    """What the results cost in the request that sent them first; `None` when no price is known."""
    duration: float = 0.0
    """Seconds, summed over calls that may have run at the same time."""


class UsageReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """`total` is the sum of `models`, of `purposes`, and of `turns`, `earlier_turns` and `between_turns`."""

    total: UsageTotals = UsageTotals()
    turns: tuple[TurnUsage, ...] = ()
    """The latest turns, oldest first."""
    earlier_turns: UsageTotals = UsageTotals()
    earlier_turn_count: int = 0
    between_turns: UsageTotals = UsageTotals()
    """Requests made while no prompt was under way, such as a compaction by command."""
    models: tuple[ModelUsage, ...] = ()
    purposes: tuple[PurposeUsage, ...] = ()
    tools: tuple[ToolUsage, ...] = ()
    agents: tuple[AgentUsage, ...] = ()


def format_usd(amount: float) -> str:
    """Four digits below a dollar, two above; what is too small for them is not shown as nothing."""
    if amount <= 0:
        return "$0.00"
    if amount < 0.00005:
        return "<$0.0001"
    return f"${amount:.4f}" if round(amount, 4) < 1 else f"${amount:,.2f}"


def format_usage(report: UsageReport, *, top: int = TOP_TOOLS) -> str:
    """The report for `/usage` and `/cost`; `top` limits the tools that are listed."""
    total = report.total
    if not total.requests and not report.tools:
        return "Nothing was used yet."
    lines = [f"Session: {_describe(total)}.", *_notes(total)]
    lines += _section("Models", [(row.model, _describe(row)) for row in _dearest(report.models)])
    if any(row.purpose != "answer" for row in report.purposes):
        lines += _section("Purposes", [(row.purpose, _describe(row)) for row in _dearest(report.purposes)])
    largest = sorted(report.tools, key=lambda row: -row.result_tokens_estimate)
    heading = "Tools" if len(largest) <= top else f"Tools (the {top} with the largest results)"
    lines += _section(heading, [(row.name, _describe_tool(row)) for row in largest[:top]])
    lines += _section("Subagents", [(row.agent_id, _describe(row)) for row in _dearest(report.agents)])
    return "\n".join(lines)


def _describe(totals: UsageTotals) -> str:
    parts = [_count(totals.requests, "request"), f"{totals.input_tokens:,} tokens in"]
    if totals.cache_read_tokens:
        parts[-1] += f" ({totals.cache_read_tokens / max(1, totals.input_tokens):.0%} from cache)"
    parts.append(f"{totals.output_tokens:,} out")
    if totals.cost_usd is None:
        parts.append("price unknown")
    else:
        parts.append(format_usd(totals.cost_usd) + (" or more" if totals.unpriced_tokens else ""))
    return ", ".join(parts)


def _notes(totals: UsageTotals) -> list[str]:
    notes = []
    if totals.cache_read_tokens or totals.cache_write_tokens:
        notes.append(
            f"  Input: {totals.cache_read_tokens:,} read from the cache, {totals.cache_write_tokens:,} "
            f"written to it, {totals.uncached_tokens:,} uncached."
        )
    if totals.estimated_tokens:
        notes.append(f"  {totals.estimated_tokens:,} of these tokens are estimated: nobody reported them.")
    if totals.unpriced_tokens:
        notes.append(f"  {totals.unpriced_tokens:,} tokens have no known price and are not in the sum.")
    return notes


def _describe_tool(tool: ToolUsage) -> str:
    parts = [_count(tool.calls, "call")]
    if tool.failures:
        parts.append(f"{tool.failures:,} failed")
    parts.append(f"about {tool.result_tokens_estimate:,} tokens of results")
    if tool.input_cost_usd_estimate:
        parts.append(f"about {format_usd(tool.input_cost_usd_estimate)} to send them")
    parts.append(f"{tool.duration:.1f} s")
    return ", ".join(parts)


def _section(heading: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    labels = [_label(name) for name, _ in rows]
    width = max(map(len, labels))
    return [heading, *(f"  {label:<{width}}  {text}" for label, (_, text) in zip(labels, rows, strict=True))]


def _label(name: str) -> str:
    """A name on one line: those of tools come from models."""
    from robota.core.plain_text import strip_controls  # noqa: PLC0415 - its patterns are for those who print

    return " ".join(strip_controls(name).split())[:_LABEL_WIDTH] or "(unnamed)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _dearest(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-(row.cost_usd or 0.0), -row.total_tokens))
