"""`LimitsPlugin`: stops a run before a request that would use too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Self

from robota.core.context import read_token_usage
from robota.core.errors import ConfigurationError, describe_exception
from robota.core.messages import AssistantMessage, Json, Message, Prompt, TokenUsage
from robota.core.plugin import Plugin, PluginCategory, PluginContext, PluginPriority, Refusal
from robota.core.provider import ChatRequest
from robota.plugins.allowances import (
    Allowance,
    FixedWindow,
    LimitRules,
    SlidingWindow,
    Ticket,
    TokenBucket,
)
from robota.plugins.options import check_number, check_strategy
from robota.plugins.pricing import find_cost, read_rates

KEYS_KEPT = 10_000
CHARACTERS_PER_TOKEN = 4
TOKENS_PER_REQUEST = 100
"""For what is in a request besides its messages."""
_KINDS: dict[str, Callable[[LimitRules], Allowance]] = {
    "token-bucket": TokenBucket,
    "sliding-window": SlidingWindow,
    "fixed-window": FixedWindow,
}
LimitKey = str | Callable[[PluginContext], str]


class LimitsPlugin(Plugin):
    """Tokens, requests and money, for each key by itself. A run that is stopped fails with `PluginError`."""

    name = "limits"
    category: PluginCategory = "limits"
    priority = PluginPriority.CRITICAL

    def __init__(
        self,
        *,
        strategy: str = "token-bucket",
        max_tokens: int = 100_000,
        max_requests: int = 1000,
        window: float = 3600.0,
        max_cost: float = 10.0,
        token_cost_per_1000: float = 0.002,
        refill_rate: float = 100.0,
        bucket_size: int = 10_000,
        max_run_cost: float | None = None,
        rates: Mapping[str, Json] | None = None,
        key: LimitKey | None = None,
    ) -> None:
        """`key` says whose limit it is: a text such as a user's id, or a function of the plugin's context; by
        default the session's, or the conversation's. `token_cost_per_1000` is for models without a price."""
        self.strategy = check_strategy(self.name, strategy, (*_KINDS, "none"))
        self._rules = LimitRules(
            max_tokens=self._number("max_tokens", max_tokens, whole=True),
            max_requests=self._number("max_requests", max_requests, whole=True),
            window=self._number("window", window, above=True),
            max_cost=self._number("max_cost", max_cost),
            refill_rate=self._number("refill_rate", refill_rate),
            bucket_size=self._number("bucket_size", bucket_size, least=1, whole=True),
        )
        self._fallback: float = self._number("token_cost_per_1000", token_cost_per_1000)
        self._max_run_cost = None if max_run_cost is None else self._number("max_run_cost", max_run_cost)
        self._rates = read_rates(self.name, rates)
        if not (key is None or callable(key) or isinstance(key, str)):
            raise ConfigurationError("The key of the plugin 'limits' is a text or a function.")
        self._key = key
        self._accounts: dict[str, Allowance] = {}
        """Shared with those that watch subagents, and so are the others."""
        self._run_cost = [0.0]
        self._refused = [0]
        self._is_child = False
        self._counted: tuple[int, Message | None, int] = (0, None, 0)
        self._open: tuple[Allowance | None, Ticket, str] | None = None

    def _number(self, name: str, value: float, **bounds: Any) -> Any:
        return check_number(self.name, name, value, **bounds)

    def for_child(self, agent_id: str) -> Self:
        child = copy(self)
        child._is_child, child._open, child._counted = True, None, (0, None, 0)
        return child

    async def before_run(self, prompt: Prompt) -> None:
        if not self._is_child:
            self._run_cost[0] = 0.0

    async def before_provider_call(self, request: ChatRequest) -> Refusal | None:
        if self.strategy == "none":
            return None
        tokens = self._estimate(request)
        cost = self._cost(TokenUsage(tokens, 0), request.model)
        if self._max_run_cost is not None and self._run_cost[0] + cost > self._max_run_cost:
            return self._refuse(
                f"this run may cost ${self._max_run_cost:g}, and ${self._run_cost[0]:.4f} are spent."
            )
        try:
            allowance = self._account()
        except Exception as error:  # noqa: BLE001 - whose limit it is nobody knows: it may be used up
            return self._refuse(f"the key of the limit cannot be found: {describe_exception(error)}.")
        ticket = allowance.take(self.context.ports.monotonic(), tokens, cost)
        if isinstance(ticket, str):
            return self._refuse(ticket)
        self._run_cost[0] += cost
        self._open = (allowance, ticket, request.model)
        return None

    def _estimate(self, request: ChatRequest) -> int:
        """About what a request uses: its characters, and a little more. Of a history that has only grown, the
        new messages are counted."""
        messages = request.messages
        known, last, characters = self._counted
        if not 0 < known <= len(messages) or messages[known - 1] is not last:
            known = characters = 0
        characters += sum(len(message.content) for message in messages[known:])
        self._counted = (len(messages), messages[-1] if messages else None, characters)
        return characters // CHARACTERS_PER_TOKEN + TOKENS_PER_REQUEST

    async def after_provider_call(self, message: AssistantMessage) -> None:
        opened, self._open = self._open, None
        usage = read_token_usage(message)
        if opened is None or usage is None:
            return  # the estimate stands
        allowance, ticket, model = opened
        cost = self._cost(usage, model)
        self._run_cost[0] += cost - ticket.cost
        if allowance is not None:
            allowance.settle(ticket, usage.input_tokens + usage.output_tokens, cost)

    def _refuse(self, why: str) -> Refusal:
        self._refused[0] += 1
        return Refusal(why)

    def _cost(self, usage: TokenUsage, model: str) -> float:
        known = find_cost(usage, model, self._rates)
        if known is not None:
            return known
        return (usage.input_tokens + usage.output_tokens) / 1000 * self._fallback

    def find_key(self) -> str:
        """Whose limits count now."""
        if self._key is None:
            return self.context.session_id or self.context.conversation_id() or "default"
        return self._key if isinstance(self._key, str) else str(self._key(self.context))

    def _account(self) -> Allowance:
        name = self.find_key()
        account = self._accounts.pop(name, None) or _KINDS[self.strategy](self._rules)
        self._accounts[name] = account  # behind the others: whoever was away longest makes room
        if len(self._accounts) > KEYS_KEPT:
            del self._accounts[next(iter(self._accounts))]
        return account

    def reset(self, key: str | None = None) -> None:
        """Forget what was used, by one key or by all."""
        if key is None:
            self._accounts.clear()
        else:
            self._accounts.pop(key, None)

    def get_data(self) -> dict[str, Json]:
        """What each key has used."""
        now = self.context.ports.monotonic()
        return {name: account.describe(now) for name, account in self._accounts.items()}

    def get_stats(self) -> dict[str, Json]:
        own: dict[str, Json] = {"keys": len(self._accounts), "refused": self._refused[0]}
        return super().get_stats() | {"strategy": self.strategy, **own}
