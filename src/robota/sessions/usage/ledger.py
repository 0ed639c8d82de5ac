"""The ledger of a session: what every model request and every tool used, added up as it happens.

Requests are entered by the provider that made them (`robota.sessions.usage.budget`), so compactions,
subagents, stopped replies and whatever else goes through it are counted, and a reply from a cache above it
is not.
Tools and the borders of turns come from events. Where no such provider is in use, events tell about requests
as well: what their replies report, and nothing is estimated. Only sums are kept: an entry costs the same
however long the session is. A ledger belongs to one event loop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from robota.core.bus import EventBus, HandlerTable, Unsubscribe
from robota.core.context import BYTES_PER_TOKEN, normalize_usage, read_token_usage
from robota.core.events import (
    ProviderRequest,
    ProviderResponseRaw,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    SummaryCalled,
    ToolEnded,
)
from robota.core.messages import AssistantMessage, Json, Message, TokenUsage, UserMessage
from robota.core.models import ModelPrice, find_model_price
from robota.sessions.usage.book import NAMES_KEPT, Book, Rates, Tally, ToolTally, keep
from robota.sessions.usage.report import UsageReport, UsageTotals


class UsageLedger:
    """One agent's page of a session's ledger. The pages of its subagents are `child`ren; sums are shared.

    `prices` (US dollars per million tokens, by model id) go before the shipped ones.
    """

    __slots__ = ("_asked", "_book", "_fresh", "_prices", "agent_id", "metered", "purpose", "root")

    def __init__(self, *, prices: Mapping[str, ModelPrice] | None = None) -> None:
        for price in () if prices is None else prices.values():
            Rates(price)  # refuses what is no price now, not in the middle of a run
        self._prices = prices
        self._book: Book | None = None
        self._fresh: dict[str, int] | None = None
        """Estimated tokens of results, per tool, that no request has sent yet."""
        self._asked = ""
        """The model that the latest request named."""
        self.metered = False
        """On the root: a provider enters the requests, so events must not."""
        self.root: UsageLedger = self
        self.agent_id = ""
        """Empty for the session's own agent."""
        self.purpose = "answer"

    def child(self, agent_id: str, *, purpose: str = "subagent") -> UsageLedger:
        """The page of a subagent; attach it to that agent's events."""
        page = UsageLedger()
        page.root, page.agent_id, page.purpose = self.root, agent_id, purpose
        return page

    def for_purpose(self, purpose: str) -> UsageLedger:
        """The same agent's page for requests beside its answers, such as `compaction`."""
        return self.child(self.agent_id, purpose=purpose)

    def attach(self, events: EventBus) -> Unsubscribe:
        """Learn from an agent's events; none of them comes per delta."""
        return events.on_each(USAGE_HANDLERS, self)

    # --- entering --------------------------------------------------------------------------------------

    def record(self, model: str, usage: TokenUsage, *, estimated: int = 0) -> None:
        """Enter one model request. `estimated`: how many of its tokens nobody reported."""
        book = self.book
        self._enter(book.turn or book.between, model, usage, estimated)

    def record_request(self, event: ProviderRequest) -> None:
        self._asked = event.model

    def record_response(self, event: ProviderResponseRaw) -> None:
        if not self.root.metered:
            usage = read_token_usage(event.response) or TokenUsage()
            self.record(self.choose_name(self._asked, event.response.metadata.get("model")), usage)

    def record_summary(self, event: SummaryCalled) -> None:
        if event.error is None and not self.root.metered:
            usage = normalize_usage(event.metadata) or TokenUsage()
            self.for_purpose("compaction").record(event.model, usage)

    def record_tool(self, event: ToolEnded) -> None:
        book, name = self.book, event.tool_name
        tool = keep(book.tools, name, ToolTally)
        tool.calls += 1
        tool.failures += event.outcome != "success"
        tool.duration += event.duration
        tokens = math.ceil((text_size(event.content) + text_size(event.error or "")) / BYTES_PER_TOKEN)
        tool.result_tokens += tokens
        if self._fresh is None:
            self._fresh = {}
        self._fresh[name] = self._fresh.get(name, 0) + tokens
        if book.turn is not None:
            book.turn.tool_calls += 1
        if self.agent_id:
            keep(book.agents, self.agent_id, Tally).tool_calls += 1

    def open_turn(self, execution_id: str) -> None:
        """A prompt begins. A subagent's runs belong to the turn of the agent that started it."""
        if self.root is self:
            book = self.book
            book.turn = book.latest = book.add_turn(execution_id)

    def close_turn(self) -> None:
        if self.root is self:
            self.book.turn = None

    def _enter(self, turn: Tally, model: str, usage: TokenUsage, estimated: int = 0) -> None:
        book = self.book
        usage = _plausible(usage)
        rates = self.rates(model)
        cost = None if rates is None else rates.cost(usage)
        model_sum, purpose_sum = keep(book.models, model, Tally), keep(book.purposes, self.purpose, Tally)
        for tally in (book.total, turn, model_sum, purpose_sum):
            tally.enter(usage, cost, estimated)
        if self.agent_id:
            keep(book.agents, self.agent_id, Tally).enter(usage, cost, estimated)
        if self._fresh and usage.input_tokens:
            for name, tokens in self._fresh.items():
                keep(book.tools, name, ToolTally).charge(tokens, rates)
            self._fresh = None

    # --- reading ---------------------------------------------------------------------------------------

    @property
    def book(self) -> Book:
        """The sums of the whole session, made when first needed."""
        root = self.root
        if root._book is None:
            root._book = Book()
        return root._book

    @property
    def total(self) -> UsageTotals:
        """The session so far."""
        return self.book.total.totals(UsageTotals)

    @property
    def turn(self) -> UsageTotals:
        """The turn under way, else the last one."""
        return (self.book.latest or Tally()).totals(UsageTotals)

    def rates(self, model: str) -> Rates | None:
        """What the model costs; `None` when nobody knows."""
        own = None if self.root._prices is None else self.root._prices.get(model)
        return shipped_rates(model) if own is None else Rates(own)

    def choose_name(self, asked: str, answered: Json) -> str:
        """The model to enter a request under: the one that was asked, unless only the other has a price."""
        if not isinstance(answered, str) or not answered or (asked and self.rates(asked) is not None):
            return asked
        return answered

    def snapshot(self) -> UsageReport:
        return self.book.report()

    # --- going on where a session stopped ----------------------------------------------------------------

    def restore(self, report: UsageReport) -> None:
        """Add what an earlier process of this session reported."""
        self.book.add(report)

    def restore_messages(self, messages: Iterable[Message], model: str = "") -> None:
        """Add what the messages of a resumed session say about themselves, as earlier turns.

        `model` stands in where a message does not name the one that wrote it. Requests that left no message
        (compactions, empty replies) and subagents are not in there: `restore` knows more.
        """
        book = self.book
        for message in messages:
            if isinstance(message, UserMessage):
                book.earlier_count += 1
            usage = read_token_usage(message) if isinstance(message, AssistantMessage) else None
            if usage is not None:
                self._enter(book.earlier, self.choose_name("", message.metadata.get("model")) or model, usage)


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
    counts = (
        usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
        usage.reasoning_tokens,
    )  # fmt: skip
    return usage if min(counts) >= 0 else TokenUsage(*(max(0, count) for count in counts))


USAGE_HANDLERS: HandlerTable = {
    RunStarted: lambda ledger, event: ledger.open_turn(event.execution_id),
    RunCompleted: lambda ledger, _: ledger.close_turn(),
    RunInterrupted: lambda ledger, _: ledger.close_turn(),
    RunFailed: lambda ledger, _: ledger.close_turn(),
    ProviderRequest: lambda ledger, event: ledger.record_request(event),
    ProviderResponseRaw: lambda ledger, event: ledger.record_response(event),
    SummaryCalled: lambda ledger, event: ledger.record_summary(event),
    ToolEnded: lambda ledger, event: ledger.record_tool(event),
}
"""For `EventBus.on_each`, with a ledger as the owner."""
