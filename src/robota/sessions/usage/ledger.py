"""The ledger of a session: what every model request and every tool used, added up as it happens.

Requests are entered by the provider that made them (`robota.sessions.usage.budget`), so compactions,
subagents, stopped replies and whatever else goes through it are counted, and a reply from a cache above it
is not. Tools and the borders of turns come from events. Where no such provider is in use, events tell about
requests as well: what their replies report, and nothing is estimated.

Only sums are kept: an entry costs the same however long the session is. Money is whole picodollars, so sums
are the same in any order and what is added can be taken back without a rest. Only the `*_KEPT` latest or
first entries have a record of their own; the others share one. A ledger belongs to one event loop.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, astuple

from robota.core.bus import EventBus, HandlerTable, Unsubscribe
from robota.core.context import BYTES_PER_TOKEN, normalize_usage, read_token_usage
from robota.core.errors import ConfigurationError
from robota.core.events import (
    ProviderResponseRaw,
    QuestionAsked,
    QuestionClosed,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SummaryCalled,
    ToolEnded,
)
from robota.core.messages import Json, TokenUsage
from robota.core.models import ModelPrice, find_model_price
from robota.sessions.usage.report import (
    AgentUsage,
    ModelUsage,
    PurposeUsage,
    ToolUsage,
    TurnUsage,
    UsageReport,
    UsageTotals,
)

if TYPE_CHECKING:
    from anyio import Event as Signal

    from robota.sessions.usage.budget import BudgetGate, Need

PICO = 10**12
"""Picodollars in a dollar. A price per million tokens is then a whole number of them per token."""
TURNS_KEPT = 100
"""Turns with a record of their own; older ones are kept as one sum."""
NAMES_KEPT = 200
"""Tools, models, purposes and subagents with a record of their own, each; further ones share `OTHERS`."""
OTHERS = "(others)"

Kept = TypeVar("Kept")
Row = TypeVar("Row", bound=Struct)


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


class Sum(Struct, eq=False):
    """Adds up the fields of a row of the report, with the cost in picodollars."""

    unpriced_tokens: int = 0
    cost: int = 0

    def add(self, **counts: float) -> None:
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)

    def charge(self, tokens: int, cost: int | None) -> None:
        """So many tokens cost so much; `None` is not known."""
        if cost is None:
            self.unpriced_tokens += tokens
        else:
            self.cost += cost

    def report(self, kind: type[Row], **fields: Any) -> Row:
        known = {name: getattr(self, name) for name in kind.__struct_fields__ if hasattr(self, name)}
        dollars = None if self.unpriced_tokens and not self.cost else self.cost / PICO
        costs = {name: dollars for name in kind.__struct_fields__ if "cost_usd" in name}
        return kind(**known, **costs, **fields)


class Tally(Sum):
    """A sum over model requests: the fields of `UsageTotals`."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_tokens: int = 0
    tool_calls: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def enter(self, usage: TokenUsage, cost: int | None, estimated: int) -> None:
        """One more request; a cost of `None` is not known. Each request is entered four times: no loop."""
        self.requests += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cache_read_tokens += usage.cache_read_tokens
        self.cache_write_tokens += usage.cache_write_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.estimated_tokens += estimated
        self.charge(usage.input_tokens + usage.output_tokens, cost)


class ToolTally(Sum):
    """A sum over the calls of one tool: the fields of `ToolUsage`."""

    calls: int = 0
    failures: int = 0
    result_tokens_estimate: int = 0
    duration: float = 0.0


class Book(Struct, eq=False):
    """All sums of one session, and what else those who count into them share."""

    prices: Mapping[str, ModelPrice] | None = None
    clock: Callable[[], float] = time.monotonic
    began: float | None = None
    past_seconds: float = 0.0
    """When the turn under way began, and how long those before it took."""
    metered: bool = False
    """A provider enters the requests, so events must not."""
    gate: BudgetGate | None = None
    """What lets requests pass."""
    needs: dict[int, Need] = {}
    """Of the requests in flight."""
    freed: Signal | None = None
    """Set when one of them has ended, or a budget was replaced."""
    sessions: set[str] = set()
    """Those whose spending is in it from the beginning on."""
    total: Tally = field(default_factory=Tally)
    turn: Tally | None = None
    """The turn under way."""
    turns: dict[str, Tally] = {}
    earlier: Tally = field(default_factory=Tally)
    """Turns that no longer have a record of their own."""
    earlier_count: int = 0
    between: Tally = field(default_factory=Tally)
    """What was used outside of turns."""
    models: dict[str, Tally] = {}
    purposes: dict[str, Tally] = {}
    tools: dict[str, ToolTally] = {}
    agents: dict[str, Tally] = {}
    calls: int = 0
    """Tool calls that a budget has let pass."""

    def close_turn(self) -> None:
        """The oldest makes room for the next: now, when nobody waits for a request."""
        self.turn = None
        self.past_seconds, self.began = self.seconds, None
        while len(self.turns) > TURNS_KEPT:
            self.earlier.add(**asdict(self.turns.pop(next(iter(self.turns)))))
            self.earlier_count += 1

    @property
    def seconds(self) -> float:
        """How long the turns of the session took, that under way included."""
        return self.past_seconds + (0.0 if self.began is None else self.clock() - self.began)

    def report(self) -> UsageReport:
        return UsageReport(
            total=self.total.report(UsageTotals),
            turns=tuple(turn.report(TurnUsage, execution_id=id) for id, turn in self.turns.items()),
            earlier_turns=self.earlier.report(UsageTotals),
            earlier_turn_count=self.earlier_count,
            between_turns=self.between.report(UsageTotals),
            models=tuple(tally.report(ModelUsage, model=name) for name, tally in self.models.items()),
            purposes=tuple(tally.report(PurposeUsage, purpose=name) for name, tally in self.purposes.items()),
            tools=tuple(tally.report(ToolUsage, name=name) for name, tally in self.tools.items()),
            agents=tuple(agent.report(AgentUsage, agent_id=id) for id, agent in self.agents.items()),
        )


def keep(table: dict[str, Kept], name: str, make: Callable[[], Kept]) -> Kept:
    """The entry of that name; once the table is full, new names share one."""
    if name not in table and len(table) >= NAMES_KEPT:
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


class UsageLedger:
    """One agent's page of a session's ledger. The pages of its subagents are `child`ren; sums are shared.

    `prices` (US dollars per million tokens, by model id) go before the shipped ones.
    """

    __slots__ = ("_asked", "_fresh", "_is_child", "_waited", "agent_id", "book", "purpose")

    def __init__(self, *, prices: Mapping[str, ModelPrice] | None = None) -> None:
        for price in () if prices is None else prices.values():
            Rates(price)  # refuses what is no price now, not in the middle of a run
        self.book = Book(prices)
        """The sums of the whole session."""
        self._fresh: dict[str, int] = {}
        """Estimated tokens of results, per tool, that no request has sent yet."""
        self._asked: dict[str, tuple[str, float]] = {}
        """The open questions: for which call, and since when."""
        self._waited: dict[str, float] = {}
        """How long calls have waited for their user, which is none of their own time."""
        self._is_child = False
        self.agent_id = ""
        """Empty for the session's own agent."""
        self.purpose = "answer"

    def child(self, agent_id: str, *, purpose: str = "subagent") -> UsageLedger:
        """The page of a subagent; attach it to that agent's events."""
        page = UsageLedger()
        page.book, page._is_child, page.agent_id, page.purpose = self.book, True, agent_id, purpose
        return page

    def for_purpose(self, purpose: str) -> UsageLedger:
        """The same agent's page for requests beside its answers, such as `compaction`."""
        return self.child(self.agent_id, purpose=purpose)

    def attach(self, events: EventBus, metered: Callable[[], bool] | None = None) -> Unsubscribe:
        """Learn from an agent's events; none of them comes per delta. `metered` says whether the provider of
        this agent enters its requests; by default that is so if any does."""
        return events.on_each(USAGE_HANDLERS, Listener(self, metered or (lambda: self.book.metered)))

    # --- entering --------------------------------------------------------------------------------------

    def record(self, model: str, usage: TokenUsage, *, estimated: int = 0) -> None:
        """Enter one model request. `estimated`: how many of its tokens nobody reported."""
        book = self.book
        usage = _plausible(usage)
        rates = self.rates(model)
        cost = None if rates is None else rates.cost(usage)
        model_sum, purpose_sum = keep(book.models, model, Tally), keep(book.purposes, self.purpose, Tally)
        for tally in (book.total, book.turn or book.between, model_sum, purpose_sum):
            tally.enter(usage, cost, estimated)
        if self.agent_id:
            keep(book.agents, self.agent_id, Tally).enter(usage, cost, estimated)
        if self._fresh and usage.input_tokens:
            for name, tokens in self._fresh.items():
                sent = None if rates is None else tokens * rates.input
                keep(book.tools, name, ToolTally).charge(tokens, sent)
            self._fresh = {}

    def record_response(self, event: ProviderResponseRaw) -> None:
        usage = read_token_usage(event.response) or TokenUsage()
        self.record(self.choose_name(event.model, event.response.metadata.get("model")), usage)

    def start_waiting(self, event: QuestionAsked) -> None:
        if event.question.call_id:
            self._asked[event.question.id] = event.question.call_id, self.book.clock()

    def end_waiting(self, event: QuestionClosed) -> None:
        if event.id in self._asked:
            call, since = self._asked.pop(event.id)
            self._waited[call] = self._waited.get(call, 0.0) + self.book.clock() - since

    def record_summary(self, event: SummaryCalled) -> None:
        if event.error is None:
            usage = normalize_usage(event.metadata) or TokenUsage()
            self.for_purpose("compaction").record(event.model, usage)

    def record_tool(self, event: ToolEnded) -> None:
        book, name = self.book, event.tool_name
        tokens = math.ceil((text_size(event.content) + text_size(event.error or "")) / BYTES_PER_TOKEN)
        failed = event.outcome != "success"
        tally = keep(book.tools, name, ToolTally)
        tally.calls += 1
        tally.failures += failed
        tally.duration += max(0.0, event.duration - self._waited.pop(event.call_id, 0.0))
        tally.result_tokens_estimate += tokens
        self._fresh[name] = self._fresh.get(name, 0) + tokens
        if book.turn is not None:
            book.turn.tool_calls += 1
        if self.agent_id:
            keep(book.agents, self.agent_id, Tally).tool_calls += 1

    def open_turn(self, execution_id: str) -> None:
        """A prompt begins. A subagent's runs belong to the turn of the agent that started it."""
        self._waited.clear()
        if not self._is_child:
            book = self.book
            book.turn = book.turns.setdefault(execution_id, Tally())
            book.began = book.clock()

    def close_turn(self) -> None:
        if not self._is_child:
            self.book.close_turn()

    @property
    def seconds(self) -> float:
        return self.book.seconds

    # --- reading ---------------------------------------------------------------------------------------

    @property
    def total(self) -> UsageTotals:
        """The session so far."""
        return self.book.total.report(UsageTotals)

    def rates(self, model: str) -> Rates | None:
        """What the model costs; `None` when nobody knows."""
        prices = self.book.prices
        own = None if prices is None else prices.get(model)
        return shipped_rates(model) if own is None else Rates(own)

    def choose_name(self, asked: str, answered: Json) -> str:
        """The model to enter a request under: the one that was asked, unless only the other has a price."""
        if not isinstance(answered, str) or not answered or (asked and self.rates(asked) is not None):
            return asked
        return answered

    def snapshot(self) -> UsageReport:
        return self.book.report()


@lru_cache(maxsize=NAMES_KEPT)
def shipped_rates(model: str) -> Rates | None:
    """The rates of a model by the price data that comes with robota."""
    price = find_model_price(model)
    return None if price is None else Rates(price)


def text_size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _plausible(usage: TokenUsage) -> TokenUsage:
    """The counts, none below zero: a broken report must not give a budget back."""
    counts = astuple(usage)
    return usage if min(counts) >= 0 else TokenUsage(*(max(0, count) for count in counts))


class Listener(Struct, frozen=True, eq=False):
    """A ledger at the events of one agent."""

    ledger: UsageLedger
    metered: Callable[[], bool]


USAGE_HANDLERS: HandlerTable = {
    RunStarted: lambda it, event: it.ledger.open_turn(event.execution_id),
    RunCompleted: lambda it, _: it.ledger.close_turn(),
    RunInterrupted: lambda it, _: it.ledger.close_turn(),
    RunFailed: lambda it, _: it.ledger.close_turn(),
    ProviderResponseRaw: lambda it, event: it.metered() or it.ledger.record_response(event),
    SummaryCalled: lambda it, event: it.metered() or it.ledger.record_summary(event),
    ToolEnded: lambda it, event: it.ledger.record_tool(event),
    QuestionAsked: lambda it, event: it.ledger.start_waiting(event),
    QuestionClosed: lambda it, event: it.ledger.end_waiting(event),
}
"""For `EventBus.on_each`, with a `Listener` as the owner."""
