"""The sums behind a usage ledger: exact, growing, of bounded size.

Money is whole picodollars, so sums are the same in any order and what is added can be taken back without a
rest. Only the `*_KEPT` latest or first entries have a record of their own; the others share one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from robota.core.errors import ConfigurationError
from robota.core.messages import TokenUsage
from robota.core.models import ModelPrice
from robota.sessions.usage.report import (
    AgentUsage,
    ModelUsage,
    PurposeUsage,
    ToolUsage,
    TurnUsage,
    UsageReport,
    UsageTotals,
)

PICO = 10**12
"""Picodollars in a dollar. A price per million tokens is then a whole number of them per token."""
TURNS_KEPT = 100
"""Turns with a record of their own; older ones are kept as one sum."""
NAMES_KEPT = 200
"""Tools, models, purposes and subagents with a record of their own, each; further ones share `OTHERS`."""
OTHERS = "(others)"

Kept = TypeVar("Kept")
Totals = TypeVar("Totals", bound=UsageTotals)


class Rates:
    """A model's prices as picodollars per token. A cache price that is not known is the full input price."""

    __slots__ = ("cache_read", "cache_write", "input", "output")

    def __init__(self, price: ModelPrice) -> None:
        self.input = _picodollars(price.input)
        self.output = _picodollars(price.output)
        read, write = price.cache_read, price.cache_write
        self.cache_read = self.input if read is None else _picodollars(read)
        self.cache_write = self.input if write is None else _picodollars(write)

    def cost(self, usage: TokenUsage) -> int:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        uncached = max(0, usage.input_tokens - read - written)
        sent = uncached * self.input + read * self.cache_read + written * self.cache_write
        return sent + usage.output_tokens * self.output


class Tally:
    """A sum over model requests."""

    __slots__ = (
        "cache_read", "cache_write", "cost", "estimated", "input", "output", "reasoning", "requests",
        "tool_calls", "unpriced",
    )  # fmt: skip

    def __init__(self) -> None:
        self.requests = self.input = self.output = self.cache_read = self.cache_write = 0
        self.reasoning = self.estimated = self.unpriced = self.cost = self.tool_calls = 0

    @classmethod
    def of(cls, totals: UsageTotals, tool_calls: int = 0) -> Tally:
        tally = cls()
        tally.requests = totals.requests
        tally.input = totals.input_tokens
        tally.output = totals.output_tokens
        tally.cache_read = totals.cache_read_tokens
        tally.cache_write = totals.cache_write_tokens
        tally.reasoning = totals.reasoning_tokens
        tally.estimated = totals.estimated_tokens
        tally.unpriced = totals.unpriced_tokens
        tally.cost = round((totals.cost_usd or 0.0) * PICO)
        tally.tool_calls = tool_calls
        return tally

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def enter(self, usage: TokenUsage, cost: int | None, estimated: int) -> None:
        """One more request; a cost of `None` is not known."""
        self.requests += 1
        self.input += usage.input_tokens
        self.output += usage.output_tokens
        self.cache_read += usage.cache_read_tokens
        self.cache_write += usage.cache_write_tokens
        self.reasoning += usage.reasoning_tokens
        self.estimated += estimated
        if cost is None:
            self.unpriced += usage.input_tokens + usage.output_tokens
        else:
            self.cost += cost

    def absorb(self, other: Tally) -> None:
        for name in Tally.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def totals(self, kind: type[Totals], **fields: str | int) -> Totals:
        return kind(
            requests=self.requests,
            input_tokens=self.input,
            output_tokens=self.output,
            cache_read_tokens=self.cache_read,
            cache_write_tokens=self.cache_write,
            reasoning_tokens=self.reasoning,
            estimated_tokens=self.estimated,
            unpriced_tokens=self.unpriced,
            cost_usd=_dollars(self.cost, unknown=self.unpriced > 0),
            **fields,
        )


class ToolTally:
    """A sum over the calls of one tool."""

    __slots__ = ("calls", "cost", "duration", "failures", "result_tokens", "unpriced")

    def __init__(self) -> None:
        self.calls = self.failures = self.result_tokens = self.unpriced = self.cost = 0
        self.duration = 0.0

    def add(self, usage: ToolUsage) -> None:
        self.calls += usage.calls
        self.failures += usage.failures
        self.result_tokens += usage.result_tokens_estimate
        self.duration += usage.duration
        if usage.input_cost_usd_estimate is None:
            self.unpriced += usage.result_tokens_estimate
        else:
            self.cost += round(usage.input_cost_usd_estimate * PICO)

    def charge(self, tokens: int, rates: Rates | None) -> None:
        """Results of so many tokens were sent to a model for the first time."""
        if rates is None:
            self.unpriced += tokens
        else:
            self.cost += tokens * rates.input

    def usage(self, name: str) -> ToolUsage:
        return ToolUsage(
            name=name,
            calls=self.calls,
            failures=self.failures,
            result_tokens_estimate=self.result_tokens,
            input_cost_usd_estimate=_dollars(self.cost, unknown=self.unpriced > 0),
            duration=self.duration,
        )


class Book:
    """All sums of one session."""

    __slots__ = (
        "_between", "_earlier", "agents", "earlier_count", "latest", "models", "purposes", "tools", "total",
        "turn", "turns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.total = Tally()
        self.turn: Tally | None = None
        """The turn under way."""
        self.latest: Tally | None = None
        """The turn under way, else the last one."""
        self.turns: dict[str, Tally] = {}
        self._earlier: Tally | None = None
        self.earlier_count = 0
        self._between: Tally | None = None
        self.models: dict[str, Tally] = {}
        self.purposes: dict[str, Tally] = {}
        self.tools: dict[str, ToolTally] = {}
        self.agents: dict[str, Tally] = {}

    @property
    def earlier(self) -> Tally:
        """Turns that no longer have a record of their own."""
        if self._earlier is None:
            self._earlier = Tally()
        return self._earlier

    @property
    def between(self) -> Tally:
        """What was used outside of turns."""
        if self._between is None:
            self._between = Tally()
        return self._between

    def add_turn(self, execution_id: str) -> Tally:
        """The record of a turn; the oldest makes room for it."""
        turn = self.turns.setdefault(execution_id, Tally())
        if len(self.turns) > TURNS_KEPT:
            self.earlier.absorb(self.turns.pop(next(iter(self.turns))))
            self.earlier_count += 1
        return turn

    def report(self) -> UsageReport:
        return UsageReport(
            total=self.total.totals(UsageTotals),
            turns=tuple(
                turn.totals(TurnUsage, execution_id=id, tool_calls=turn.tool_calls)
                for id, turn in self.turns.items()
            ),
            earlier_turns=self.earlier.totals(UsageTotals),
            earlier_turn_count=self.earlier_count,
            between_turns=self.between.totals(UsageTotals),
            models=tuple(tally.totals(ModelUsage, model=name) for name, tally in self.models.items()),
            purposes=tuple(tally.totals(PurposeUsage, purpose=name) for name, tally in self.purposes.items()),
            tools=tuple(tally.usage(name) for name, tally in self.tools.items()),
            agents=tuple(
                agent.totals(AgentUsage, agent_id=id, tool_calls=agent.tool_calls)
                for id, agent in self.agents.items()
            ),
        )

    def add(self, report: UsageReport) -> None:
        self.total.absorb(Tally.of(report.total))
        self.between.absorb(Tally.of(report.between_turns))
        self.earlier.absorb(Tally.of(report.earlier_turns))
        self.earlier_count += report.earlier_turn_count
        for turn in report.turns:
            self.add_turn(turn.execution_id).absorb(Tally.of(turn, turn.tool_calls))
        for model in report.models:
            keep(self.models, model.model, Tally).absorb(Tally.of(model))
        for purpose in report.purposes:
            keep(self.purposes, purpose.purpose, Tally).absorb(Tally.of(purpose))
        for agent in report.agents:
            keep(self.agents, agent.agent_id, Tally).absorb(Tally.of(agent, agent.tool_calls))
        for tool in report.tools:
            keep(self.tools, tool.name, ToolTally).add(tool)


def keep(table: dict[str, Kept], name: str, make: Callable[[], Kept]) -> Kept:
    """The entry of that name; once the table is full, new names share one."""
    found = table.get(name)
    if found is None:
        if len(table) >= NAMES_KEPT:
            name = OTHERS
        found = table.get(name)
        if found is None:
            found = table[name] = make()
    return found


def _picodollars(per_million: float) -> int:
    if not (math.isfinite(per_million) and per_million >= 0):
        raise ConfigurationError(
            f"A price must be a number of US dollars per million tokens, not {per_million!r}."
        )
    return round(per_million * (PICO // 1_000_000))


def _dollars(picodollars: int, *, unknown: bool) -> float | None:
    return None if unknown and not picodollars else picodollars / PICO
