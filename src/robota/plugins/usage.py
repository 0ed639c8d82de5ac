"""`UsagePlugin`: what every model call used and cost, one record each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

from msgspec import Struct, to_builtins

from robota.core.context import read_token_usage
from robota.core.errors import PluginError
from robota.core.messages import AssistantMessage, Json, TokenUsage
from robota.core.plugin import PluginCategory, PluginPriority
from robota.core.provider import ChatRequest
from robota.core.run import RunResult
from robota.plugins.options import (
    STORAGE_STRATEGIES,
    StorageOptions,
    check_number,
    check_strategy,
    make_storage,
)
from robota.plugins.pricing import find_cost, read_rates
from robota.plugins.recording import RecordingPlugin
from robota.plugins.records import Records


class UsageSum(Struct, rename="camel"):
    """What several calls used."""

    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0
    """Tokens of models whose prices nobody knows."""


class UsagePlugin(RecordingPlugin):
    """Counts tokens and money, by model and over time."""

    name = "usage"
    category: PluginCategory = "monitoring"
    priority = PluginPriority.NORMAL

    def __init__(
        self,
        *,
        strategy: str = "memory",
        max_entries: int = 10_000,
        batch_size: int = 50,
        flush_interval: float = 60.0,
        aggregation_interval: float = 300.0,
        rates: Mapping[str, Json] | None = None,
        **where: Unpack[StorageOptions],
    ) -> None:
        """`rates` are dollars per million tokens by model, where the shipped prices are not yours; times are
        seconds."""
        strategy = check_strategy(self.name, strategy, ("memory", *STORAGE_STRATEGIES, "silent"))
        limit = check_number(self.name, "max_entries", max_entries, least=1, whole=True)
        self.records = Records(
            self.name,
            make_storage(self.name, strategy, limit, where),
            limit=0 if strategy == "silent" else limit,
            batch=check_number(self.name, "batch_size", batch_size, least=1, whole=True),
            interval=check_number(self.name, "flush_interval", flush_interval, above=True),
        )
        self._span = check_number(self.name, "aggregation_interval", aggregation_interval, above=True)
        self._rates = read_rates(self.name, rates)
        self._models: dict[str, UsageSum] = {}
        """Shared with those that watch subagents; of silent ones too."""
        self.begin()

    def begin(self) -> None:
        self._model = ""
        self._asked_at: float | None = None

    async def before_provider_call(self, request: ChatRequest) -> None:
        self._note(TokenUsage(), success=False)  # the one before, if it had no answer
        self._model, self._asked_at = request.model, self.context.ports.monotonic()

    async def after_provider_call(self, message: AssistantMessage) -> None:
        self._note(read_token_usage(message) or TokenUsage(), "providerError" not in message.metadata)

    async def on_error(self, error: Exception) -> None:
        if isinstance(error, PluginError):  # somebody has refused the call: it was not made
            self._asked_at = None

    async def after_run(self, result: RunResult) -> None:
        self._note(TokenUsage(), success=False)  # a call that was cut

    def _note(self, usage: TokenUsage, success: bool) -> None:
        asked, self._asked_at = self._asked_at, None
        if asked is None:
            return
        model = self._model
        cost = find_cost(usage, model, self._rates)
        total = self._models.setdefault(model, UsageSum())
        total.requests += 1
        total.failed += not success
        total.input_tokens += usage.input_tokens
        total.output_tokens += usage.output_tokens
        total.cost_usd += cost or 0.0
        total.unpriced_tokens += usage.input_tokens + usage.output_tokens if cost is None else 0
        self.records.add(
            self.origin()
            | {
                "provider": self.context.provider(),
                "model": model,
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "costUsd": cost,
                "seconds": round(self.context.ports.monotonic() - asked, 6),
                "success": success,
            }
        )

    @property
    def models(self) -> dict[str, UsageSum]:
        """What each model used since the plugin was made, also of what is no longer kept."""
        return dict(self._models)

    @property
    def total(self) -> UsageSum:
        return add_up(self._models.values())

    def aggregate(self) -> list[dict[str, Json]]:
        """The latest records as sums over `aggregation_interval` seconds each, the oldest first."""
        sums: dict[float, UsageSum] = {}
        for record in self.records.latest:
            start = record["timestamp"] // self._span * self._span
            one = UsageSum(
                requests=1,
                failed=not record["success"],
                input_tokens=record["inputTokens"],
                output_tokens=record["outputTokens"],
                cost_usd=record["costUsd"] or 0.0,
            )
            sums[start] = add_up((sums.get(start, UsageSum()), one))
        return [{"start": start, **describe(total)} for start, total in sorted(sums.items())]

    def get_stats(self) -> dict[str, Json]:
        return super().get_stats() | describe(self.total)


def add_up(sums: Iterable[UsageSum]) -> UsageSum:
    total = UsageSum()
    for each in sums:
        for field in UsageSum.__struct_fields__:
            setattr(total, field, getattr(total, field) + getattr(each, field))
    return total


def describe(total: UsageSum) -> dict[str, Json]:
    found: dict[str, Json] = to_builtins(total)
    return found
