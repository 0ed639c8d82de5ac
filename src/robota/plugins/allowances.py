"""How much may be used in which time: a bucket that fills again, a window that slides, one that begins anew.

An allowance is asked before a request with an estimate, and told afterwards what it really was.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Protocol

from msgspec import Struct


class LimitRules(Struct, frozen=True, kw_only=True):
    """The numbers; times are seconds, money is US dollars."""

    max_tokens: int
    max_requests: int
    window: float
    max_cost: float
    refill_rate: float
    """Tokens per second that a bucket gets back."""
    bucket_size: int


class Ticket(Struct):
    """One request that was let through."""

    at: float
    tokens: int
    cost: float


class Allowance(Protocol):
    """What one key may use."""

    def take(self, now: float, tokens: int, cost: float) -> Ticket | str:
        """Let a request through, or say why not."""

    def settle(self, ticket: Ticket, tokens: int, cost: float) -> None:
        """What the request really used."""

    def describe(self, now: float) -> dict[str, float]: ...


def refuse(rules: LimitRules, used: Ticket, requests: int, ask: Ticket, wait: float) -> str | None:
    """Why a request does not fit into a window, `None` if it does."""
    when = f"; the next is possible in {math.ceil(wait)} s" if wait > 0 else ""
    span = f"in {rules.window:g} s"
    if requests + 1 > rules.max_requests:
        return f"the limit of {rules.max_requests:,} requests {span} is used up{when}."
    if used.tokens + ask.tokens > rules.max_tokens:
        return (
            f"about {ask.tokens:,} tokens do not fit into the limit of {rules.max_tokens:,} {span}, of which "
            f"{used.tokens:,} are used{when}."
        )
    if used.cost + ask.cost > rules.max_cost:
        return f"the limit of ${rules.max_cost:g} {span} would be passed: ${used.cost:.4f} are spent{when}."
    return None


class SlidingWindow:
    """Counts what lies less than a window back. It remembers at most `max_requests` requests."""

    def __init__(self, rules: LimitRules) -> None:
        self._rules = rules
        self._tickets: deque[Ticket] = deque()

    def _sum(self, now: float) -> Ticket:
        while self._tickets and self._tickets[0].at <= now - self._rules.window:
            self._tickets.popleft()
        tickets = self._tickets
        return Ticket(now, sum(one.tokens for one in tickets), sum(one.cost for one in tickets))

    def take(self, now: float, tokens: int, cost: float) -> Ticket | str:
        ask, used = Ticket(now, tokens, cost), self._sum(now)
        wait = self._tickets[0].at + self._rules.window - now if self._tickets else 0.0
        why = refuse(self._rules, used, len(self._tickets), ask, wait)
        if why is None:
            self._tickets.append(ask)
        return ask if why is None else why

    def settle(self, ticket: Ticket, tokens: int, cost: float) -> None:
        ticket.tokens, ticket.cost = tokens, cost

    def describe(self, now: float) -> dict[str, float]:
        used = self._sum(now)
        return {"requests": len(self._tickets), "tokens": used.tokens, "costUsd": used.cost}


class FixedWindow:
    """Counts from the beginning of a window; the next one begins at nothing."""

    def __init__(self, rules: LimitRules) -> None:
        self._rules = rules
        self._start = -math.inf
        self._used = Ticket(0.0, 0, 0.0)
        self._requests = 0

    def _turn(self, now: float) -> None:
        if now - self._start >= self._rules.window:
            self._start, self._used, self._requests = now, Ticket(now, 0, 0.0), 0

    def take(self, now: float, tokens: int, cost: float) -> Ticket | str:
        self._turn(now)
        ask = Ticket(now, tokens, cost)
        wait = self._start + self._rules.window - now
        why = refuse(self._rules, self._used, self._requests, ask, wait)
        if why is not None:
            return why
        self._requests += 1
        self._used.tokens += tokens
        self._used.cost += cost
        return ask

    def settle(self, ticket: Ticket, tokens: int, cost: float) -> None:
        if ticket.at >= self._start:  # else its window is over
            self._used.tokens += tokens - ticket.tokens
            self._used.cost += cost - ticket.cost

    def describe(self, now: float) -> dict[str, float]:
        self._turn(now)
        return {"requests": self._requests, "tokens": self._used.tokens, "costUsd": self._used.cost}


class TokenBucket:
    """Tokens come from a bucket that fills at a steady rate; requests and money are those of a window."""

    def __init__(self, rules: LimitRules) -> None:
        self._rules = rules
        self._level = float(rules.bucket_size)
        self._at = -math.inf
        self._window = FixedWindow(rules)

    def _fill(self, now: float) -> None:
        if self._at > -math.inf:
            gained = (now - self._at) * self._rules.refill_rate
            self._level = min(float(self._rules.bucket_size), self._level + gained)
        self._at = now

    def take(self, now: float, tokens: int, cost: float) -> Ticket | str:
        self._fill(now)
        rules = self._rules
        if tokens > rules.bucket_size:
            return f"about {tokens:,} tokens are more than the bucket of {rules.bucket_size:,} ever holds."
        if tokens > self._level:
            missing = tokens - self._level
            wait = f" in {math.ceil(missing / rules.refill_rate)} s" if rules.refill_rate else " never"
            return (
                f"about {tokens:,} tokens are needed and {int(self._level):,} of {rules.bucket_size:,} are "
                f"left; there will be enough{wait}."
            )
        ticket = self._window.take(now, tokens, cost)
        if isinstance(ticket, Ticket):
            self._level -= tokens
        return ticket

    def settle(self, ticket: Ticket, tokens: int, cost: float) -> None:
        self._level -= tokens - ticket.tokens  # below nothing: what was too much is paid back first
        self._window.settle(ticket, tokens, cost)

    def describe(self, now: float) -> dict[str, float]:
        self._fill(now)
        return {**self._window.describe(now), "bucket": self._level}
