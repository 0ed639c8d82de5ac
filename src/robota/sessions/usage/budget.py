"""Limits on what a session may spend, kept by the provider itself: no request passes that they do not allow.

`BudgetedProvider` enters every request in the usage ledger and asks the budget before it sends anything. It
belongs outermost, around a retrying provider: a request is then one round, however many attempts it took.

A request may start if what was used, its own input (by the shared estimator, nothing cached) and the worst
case of every other request in flight stay within each limit. One that would fit alone waits for the others
instead of failing. So a budget is exceeded by the output of one request at most, with any number of agents
side by side.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError, RobotaError
from robota.core.given import Options, require_kind
from robota.core.models import get_model_max_output
from robota.core.provider import ChatRequest, Chunk, MetadataChunk, Provider, ProviderWrapper, TextChunk
from robota.core.reply import open_stream
from robota.sessions.usage.ledger import PICO, Book, UsageLedger, text_size
from robota.sessions.usage.meter import InputSize, Meter, find_default_model
from robota.sessions.usage.report import format_usd

WARN_AT = 0.8
SIGN_OF_LIFE = 1.0
"""Seconds between two empty chunks of a request that waits, so that no idle timer takes it for dead."""

LimitKind: TypeAlias = Literal["cost", "tokens", "requests", "time"]
_UNIT = {"tokens": "tokens", "requests": "model requests"}
_OPTION = {
    "cost": "max_cost_usd",
    "tokens": "max_tokens",
    "requests": "max_requests",
    "time": "max_seconds",
}
_MILLI = 1000
_USED = " of the session's budget is used: "
CALLS_USED_UP = (
    "The session's budget of {} tool calls is used up, so this one was not run. Answer from what you have, "
    "and say what is left to do; only the user can raise max_tool_calls."
)


class Budget(Options, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a session may use in all, its subagents included; `None` is no limit."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    """Input and output together; cached input counts like any other."""
    max_requests: int | None = None
    max_tool_calls: int | None = None
    """Calls beyond it are refused, and the model is told."""
    max_seconds: float | None = None
    """Time that runs take, tools and waiting for answers included; looked at before each request."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            known = type(value) is int or (type(value) is float and name in ("max_cost_usd", "max_seconds"))
            if value is not None and not (known and math.isfinite(value) and value >= 0):
                raise ConfigurationError(
                    f"{name} must be a number that is not negative, or None, not {value!r}."
                )


UNLIMITED = Budget()


class BudgetExceededError(RobotaError):
    """The next request does not fit into the budget; nothing was sent."""

    code = "BUDGET_EXCEEDED"
    category = "user"

    def __init__(self, message: str, *, limit: LimitKind, used: float, maximum: float) -> None:
        super().__init__(message)
        self.limit = limit
        """Which limit it was; `used` and `maximum` are in its unit (US dollars for `cost`, seconds)."""
        self.used = used
        self.maximum = maximum


class Need(NamedTuple):
    """What one request may use: of each pair, its input first and then its output at most."""

    tokens: tuple[int, int]
    cost: tuple[int, int]
    """Picodollars."""
    requests: tuple[int, int] = (1, 0)
    time: tuple[int, int] = (0, 0)


class Limit(NamedTuple):
    """One limit and where it stands; money in picodollars, time in milliseconds."""

    kind: LimitKind
    maximum: int
    used: int

    def show(self, amount: int) -> str:
        if self.kind == "time":
            return f"{amount / _MILLI:,.1f} s"
        return format_usd(amount / PICO) if self.kind == "cost" else f"{amount:,} {_UNIT[self.kind]}"

    def in_unit(self, amount: int) -> float:
        return amount / {"cost": PICO, "time": _MILLI}.get(self.kind, 1)


class BudgetGate(Struct, eq=False):
    """Lets requests pass that a budget can bear; one for a session and all its subagents. Sessions that share
    a ledger and have budgets of their own mind each other's requests."""

    book: Book
    _budget: Budget
    on_notice: Callable[[str], object] | None
    """Told once per budget and limit when most of it is used. It must not raise."""
    _told: set[str] = set()

    @property
    def budget(self) -> Budget:
        return self._budget

    @budget.setter
    def budget(self, budget: Budget) -> None:
        self._budget = budget
        self._told = set()
        self._wake()

    def admit(self, need: Need) -> bool:
        """Count the request as in flight. False: it must wait for another one; raises if it never fits."""
        must_wait = False
        for limit in self.limits():
            own = getattr(need, limit.kind)[0]
            if limit.used + own > limit.maximum:
                raise _refuse(limit, own)
            others = sum(sum(getattr(other, limit.kind)) for other in self.book.needs.values())
            must_wait = must_wait or limit.used + others + own > limit.maximum
        if must_wait:
            self._tell_once(
                "waiting",
                "A request waits until others have ended: together they might use up the budget. "
                "Raise the budget or set a smaller max_tokens for replies to let more run at once.",
            )
            return False
        self.book.needs[id(need)] = need
        return True

    def release(self, need: Need) -> None:
        """The request is over and entered in the ledger."""
        self.book.needs.pop(id(need), None)
        self._wake()

    async def wait(self, seconds: float) -> bool:
        """Wait for a change, at most so long; whether there was one."""
        import anyio  # noqa: PLC0415 - few requests ever wait

        freed = self.book.freed = self.book.freed or anyio.Event()
        with anyio.move_on_after(seconds):
            await freed.wait()
        return freed.is_set()

    def warn(self) -> None:
        """Say so once when most of a limit is used."""
        for limit in self.limits():
            if limit.used >= limit.maximum * WARN_AT:
                share = f"{limit.used / limit.maximum:.0%}" if limit.maximum else "All"
                used, maximum = limit.show(limit.used), limit.show(limit.maximum)
                self._tell_once(limit.kind, f"{share}{_USED}{used} of {maximum}.")

    def limits(self) -> Iterator[Limit]:
        budget, total = self._budget, self.book.total
        if budget.max_cost_usd is not None:
            yield Limit("cost", round(budget.max_cost_usd * PICO), total.cost)
        if budget.max_tokens is not None:
            yield Limit("tokens", budget.max_tokens, total.tokens)
        if budget.max_requests is not None:
            yield Limit("requests", budget.max_requests, total.requests)
        if budget.max_seconds is not None:
            used = round(self.book.seconds * _MILLI)
            yield Limit("time", round(budget.max_seconds * _MILLI), used)

    def admit_call(self) -> str | None:
        """Count a tool call that is about to run; why it may not, if the budget has no room for it."""
        limit = self._budget.max_tool_calls
        if limit is not None and self.book.calls >= limit:
            return CALLS_USED_UP.format(limit)
        self.book.calls += 1
        return None

    def _tell_once(self, what: str, message: str) -> None:
        if what not in self._told:
            self._told.add(what)
            if self.on_notice is not None:
                self.on_notice(message)

    def _wake(self) -> None:
        freed, self.book.freed = self.book.freed, None
        if freed is not None:
            freed.set()


class BudgetedProvider(ProviderWrapper):
    """The wrapped provider, with every request counted and none beyond the budget."""

    def __init__(
        self,
        inner: Provider,
        ledger: UsageLedger,
        budget: Budget | None = None,
        *,
        on_notice: Callable[[str], object] | None = None,
        gate: BudgetGate | None = None,
        sign_of_life: float = SIGN_OF_LIFE,
    ) -> None:
        super().__init__(inner)
        self.ledger = ledger
        ledger.book.metered = True
        if gate is None:
            gate = BudgetGate(ledger.book, budget or UNLIMITED, on_notice)
            ledger.book.gate = ledger.book.gate or gate
        self.gate = gate
        self._sign_of_life = sign_of_life
        self._size = InputSize()

    def share(self, ledger: UsageLedger, inner: Provider | None = None) -> BudgetedProvider:
        """A provider for a subagent or another purpose: its own page of the ledger, the same budget."""
        return BudgetedProvider(
            self.inner if inner is None else inner, ledger, gate=self.gate, sign_of_life=self._sign_of_life
        )

    @property
    def budget(self) -> Budget:
        """May be replaced at any time; it counts from the next request on."""
        return self.gate.budget

    @budget.setter
    def budget(self, budget: Budget | None) -> None:
        self.gate.budget = budget or UNLIMITED

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        gate = self.gate
        meter = Meter()
        need: Need | None = None
        if gate.budget != UNLIMITED:
            meter.sent = self._size.estimate(request)
            need = self._need(request, meter.sent)
            while not gate.admit(need):
                if not await gate.wait(self._sign_of_life):
                    yield MetadataChunk({})
        received = 0
        try:
            async with aclosing(open_stream(self.inner, request)) as chunks:
                async for chunk in chunks:
                    if type(chunk) is TextChunk and type(text := chunk.text) is str:
                        received += len(text) if text.isascii() else text_size(text)
                    else:
                        meter.note(chunk)
                    yield chunk
            meter.ended = True
        except Exception:
            meter.failed = True
            raise
        finally:
            meter.received += received
            self._settle(request, meter)
            if need is not None:
                gate.release(need)
                gate.warn()

    def _need(self, request: ChatRequest, sent: int) -> Need:
        model = request.model or find_default_model(self.inner)
        rates, dollars = self.ledger.rates(model), self.gate.budget.max_cost_usd
        if rates is None and dollars is not None:
            raise ConfigurationError(
                f"The budget of {format_usd(dollars)} cannot be kept: no price is known for the model "
                f"{model!r}. Give its price, limit the tokens instead of the money, or use another model."
            )
        received = request.settings.max_tokens or get_model_max_output(model)
        if rates is None:
            return Need((sent, received), (0, 0))
        return Need((sent, received), (sent * max(rates.input, rates.cache_write), received * rates.output))

    def _settle(self, request: ChatRequest, meter: Meter) -> None:
        """Enter the request in the ledger: what the service reported, else the best guess."""
        usage, estimated = meter.read(lambda: self._size.estimate(request))
        asked = request.model or find_default_model(self.inner)
        name = self.ledger.choose_name(asked, meter.model) or self.inner.name
        self.ledger.record(name, usage, estimated=estimated)


class Admission:
    """How the agent of a session may ask providers: straight, or, with a budget, only through its gate."""

    __slots__ = ("_known", "_ledger", "_on_notice", "budget", "known_refusal")

    def __init__(self, ledger: UsageLedger, provider: Provider, on_notice: Callable[[str], object]) -> None:
        """A `provider` that is behind a gate already, such as that of a subagent, keeps all others to it."""
        self._ledger = ledger
        self._on_notice = on_notice
        self._known = provider if isinstance(provider, BudgetedProvider) else None
        self.budget: Budget | None = None
        """What was given to this session; a subagent has that of its parent and none of its own."""
        self.known_refusal: Callable[[str], str | None] | None = None
        """For a replay that cannot tell what was spent: why a call was not run, by its id."""

    def limit(self, budget: Budget, provider: Provider) -> None:
        """Check a budget before each request. Without one, and without that of others who share the ledger,
        events alone tell what was used."""
        require_kind("budget", budget, Budget)
        self.budget = budget
        if self._known is None:
            self._known = BudgetedProvider(provider, self._ledger, budget, on_notice=self._on_notice)
        else:
            self._known.budget = budget

    def admit_call(self, call_id: str) -> str | None:
        """The same for a tool call: why it may not run, if that is so."""
        if self.known_refusal is not None:
            return self.known_refusal(call_id)
        gate = self._ledger.book.gate if self._known is None else self._known.gate
        if gate is not None:
            return gate.admit_call()
        self._ledger.book.calls += 1  # for a budget that may come
        return None

    def is_metering(self) -> bool:
        """Whether requests are entered in the ledger where they are made."""
        return self._known is not None

    def admit(self, provider: Provider) -> Provider:
        """The provider as the session may ask it, whoever has put it into the agent."""
        known, shared = self._known, self._ledger.book.gate
        if known is None and shared is not None:
            known = self._known = BudgetedProvider(provider, self._ledger, gate=shared)
        if known is None:
            return provider
        if isinstance(provider, BudgetedProvider) and provider.gate is known.gate:
            self._known = provider
        elif provider is not known.inner:
            self._known = known.share(known.ledger, provider)
        return self._known or provider

    def admit_for(self, purpose: str, provider: Provider) -> Provider:
        """The same with a page of its own in the ledger."""
        admitted = self.admit(provider)
        if isinstance(admitted, BudgetedProvider):
            return admitted.share(self._ledger.for_purpose(purpose))
        return admitted


def is_about_use(notice: str) -> bool:
    """Whether a notice tells how much of a limit is used."""
    return _USED in notice


def is_about_time(sentence: str) -> bool:
    """Whether a notice or refusal is about the time that a session took, which is never the same twice."""
    return sentence.endswith((" s.", f"({_OPTION['time']}) to go on."))


def _refuse(limit: Limit, own: int) -> BudgetExceededError:
    own_need = f", and the next request needs up to {limit.show(own)} for its input"
    about = "" if limit.kind in ("requests", "time") else own_need
    return BudgetExceededError(
        f"The session's budget of {limit.show(limit.maximum)} does not allow another request: "
        f"{limit.show(limit.used)} used{about}. Nothing was sent; "
        f"raise the budget ({_OPTION[limit.kind]}) to go on.",
        limit=limit.kind,
        used=limit.in_unit(limit.used),
        maximum=limit.in_unit(limit.maximum),
    )
