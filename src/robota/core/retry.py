"""A provider that tries again: capped exponential backoff, the service's `Retry-After`, a circuit breaker.

A request is repeated only while nothing of the reply has reached the caller: once a piece of text, thinking
or a tool call was yielded, a failure is the caller's to see. Every wait is announced by a `RetryNotice`, ends
at once when the caller is cancelled, and comes from the ports, so a replay need not wait.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import UTC
from typing import Literal, TypeAlias

from msgspec import Struct

from robota.core.errors import CircuitBreakerOpenError, NetworkError, ProviderError, RateLimitError
from robota.core.given import Options, check_fields
from robota.core.messages import TokenUsage
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import (
    ChatRequest,
    Chunk,
    MetadataChunk,
    NativePayload,
    Provider,
    ProviderWrapper,
    RetryNotice,
)

ServiceError: TypeAlias = ProviderError | RateLimitError | NetworkError

RETRYABLE_STATUS = frozenset({408, 409, 429})
"""What is worth another try besides 5xx (529 included). All other answers would only be given again."""

_NOT_CONTENT = (NativePayload, RetryNotice)
_HELD = (TokenUsage, MetadataChunk)


class RetryPolicy(Options, frozen=True, kw_only=True):
    """How often and how patiently; times are seconds."""

    max_attempts: int = 5
    """Calls in all, the first one included."""
    base_delay: float = 1.0
    """Upper bound of the first wait; it doubles with every further one."""
    max_delay: float = 30.0
    max_retry_after: float = 60.0
    """The longest wait a service may ask for. If it wants more, the call fails with an error that says so."""

    def __post_init__(self) -> None:
        check_fields(self)


class CircuitBreaker(Struct, eq=False):
    """Refuses calls for a while after too many failed in a row, then lets a single one probe the service.

    Only outages count: a rate limit or a refused request comes from a service that is alive.
    """

    threshold: int = 5
    pause: float = 60.0
    """Seconds."""
    monotonic: Callable[[], float] = REAL_WORLD.monotonic
    _failures: int = 0
    _opened_at: float | None = None
    _probing: bool = False

    @property
    def state(self) -> Literal["closed", "open", "half_open"]:
        if self._opened_at is None:
            return "closed"
        return "open" if self._remaining(self._opened_at) > 0 else "half_open"

    def admit(self) -> bool:
        """Let a call pass or refuse it. True means: this call is the probe, and a verdict must follow."""
        if self._opened_at is None:
            return False
        wait = max(self._remaining(self._opened_at), 0.0)
        if not wait and not self._probing:
            self._probing = True
            return True
        when = f"in {math.ceil(wait)} s" if wait else "once the call that probes it has been answered"
        raise CircuitBreakerOpenError(
            f"The model service failed {self._failures} times in a row; the next call is allowed {when}.",
            retry_after=wait,
        )

    def succeed(self) -> None:
        self._failures = 0
        self._opened_at = None
        self._probing = False

    def fail(self) -> None:
        self._failures += 1
        if self._probing or self._failures >= self.threshold:
            self._opened_at = self.monotonic()
        self._probing = False

    def release(self) -> None:
        """The probe ended without telling anything about the service: the next call may probe."""
        self._probing = False

    def _remaining(self, opened_at: float) -> float:
        return opened_at + self.pause - self.monotonic()


class RetryingProvider(ProviderWrapper):
    """The wrapped provider, called again when its service has a moment of weakness."""

    def __init__(
        self,
        inner: Provider,
        *,
        policy: RetryPolicy | None = None,
        breaker: CircuitBreaker | None = None,
        ports: Ports = REAL_WORLD,
    ) -> None:
        super().__init__(inner)
        self.policy = RetryPolicy() if policy is None else policy
        self.breaker = CircuitBreaker(monotonic=ports.monotonic) if breaker is None else breaker
        self._ports = ports

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        probing = self.breaker.admit()
        attempts = 1 if probing else self.policy.max_attempts
        attempt, started = 1, False
        early: list[Chunk] = []
        """Usage and metadata wait for the first content, so that a failed call leaves none behind."""
        try:
            while True:
                early.clear()
                try:
                    async with aclosing(self.inner.stream(request)) as chunks:
                        async for chunk in chunks:
                            if not started:
                                if isinstance(chunk, _HELD):
                                    early.append(chunk)
                                    continue
                                if not isinstance(chunk, _NOT_CONTENT):
                                    started, probing = True, False
                                    self.breaker.succeed()
                                    for held in early:
                                        yield held
                            yield chunk
                    self.breaker.succeed()
                    for held in () if started else early:
                        yield held
                    return
                except Exception as error:  # noqa: BLE001 - raised there, unless it is worth another attempt
                    delay = self._delay_after(error, attempt, may_repeat=not started and attempt < attempts)
                    failed = RetryNotice(
                        attempt=attempt + 1,
                        max_attempts=attempts,
                        delay=delay,
                        message=str(error),
                        status=getattr(error, "status", None),
                    )
                attempt += 1
                yield failed
                await self._ports.sleep(delay)
        finally:
            if probing:
                self.breaker.release()

    def _delay_after(self, error: Exception, attempt: int, *, may_repeat: bool) -> float:
        """Seconds to wait before the next attempt; raises the error if there is none."""
        if not may_repeat or not is_retryable(error) or _asked_wait(error) > self.policy.max_retry_after:
            self._give_up(error)
            raise error
        ceiling = min(self.policy.max_delay, self.policy.base_delay * 2.0 ** (attempt - 1))
        return max(_asked_wait(error), self._ports.random() * ceiling)

    def _give_up(self, error: Exception) -> None:
        """Tell the breaker, and say in the error how long the service wants to be left alone."""
        if _is_outage(error):
            self.breaker.fail()
        elif isinstance(error, RateLimitError) or getattr(error, "status", None) is not None:
            self.breaker.succeed()
        asked = _asked_wait(error)
        if asked > self.policy.max_retry_after and isinstance(error, ServiceError):
            raise type(error)(
                f"{error} The service asks to wait {math.ceil(asked)} s, longer than the "
                f"{self.policy.max_retry_after:g} s that are waited out automatically; try again after that.",
                provider=error.provider,
                status=error.status,
                request_id=error.request_id,
                retry_after=asked,
            ) from error


def _asked_wait(error: Exception) -> float:
    asked = error.retry_after if isinstance(error, ServiceError) else None
    return 0.0 if asked is None else asked


def _is_outage(error: Exception) -> bool:
    if not is_retryable(error) or isinstance(error, RateLimitError):
        return False
    status = getattr(error, "status", None)
    return status is None or status == 408 or status >= 500


def is_retryable(error: BaseException) -> bool:
    """Whether the same request may succeed a moment later.

    A status decides when there is one. Without one it takes a rate limit or a connection fault; an adapter
    that meets "overloaded" inside a stream gives its error the status 529.
    """
    if isinstance(error, NetworkError) and error.lasting:
        return False
    if isinstance(error, ServiceError) and error.status is not None:
        return error.status in RETRYABLE_STATUS or error.status >= 500
    if isinstance(error, ProviderError):
        return isinstance(error.__cause__, (ConnectionError, TimeoutError))
    return isinstance(error, (RateLimitError, NetworkError, ConnectionError, TimeoutError))


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait from a `Retry-After` header, a number or an HTTP date; `None` if it is neither."""
    if value is None or not value.strip():
        return None
    try:
        seconds = float(value)
    except ValueError:
        return _seconds_until(value, now)
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _seconds_until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - costs 5 ms, and a date is rare

    try:
        moment = parsedate_to_datetime(date)
    except (ValueError, OverflowError):  # no date, or one with a zone of twenty digits
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(moment.timestamp() - now, 0.0)
