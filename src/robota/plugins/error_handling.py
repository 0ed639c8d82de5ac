"""`ErrorHandlingPlugin`: failures counted, and model calls held back while a service is down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

from robota.core.errors import (
    CircuitBreakerOpenError,
    ConfigurationError,
    PluginError,
    ToolExecutionError,
    describe_exception,
    get_error_code,
)
from robota.core.messages import AssistantMessage, Json
from robota.core.plugin import PluginCategory, PluginPriority, Refusal
from robota.core.provider import ChatRequest
from robota.core.retry import CircuitBreaker
from robota.core.run import RunResult
from robota.plugins.options import check_number, check_strategy
from robota.plugins.recording import RecordingPlugin
from robota.plugins.records import Records

T = TypeVar("T")
KEPT = 1000
LONGEST_DELAY = 60.0


class ErrorHandlingPlugin(RecordingPlugin):
    """What is done about failures of a model call:

    * `simple` logs them;
    * `circuit-breaker` refuses calls for a while after too many failed in a row, then lets one probe;
    * `exponential-backoff` waits before the next call, twice as long after every failure;
    * `silent` only counts.

    A single request that fails for a moment is asked again by `RetryingProvider`, which every
    `InteractiveSession` has: this plugin sees what is left of that.
    """

    name = "error-handling"
    category: PluginCategory = "error_handling"
    priority = PluginPriority.HIGH

    def __init__(
        self,
        *,
        strategy: str = "simple",
        max_retries: int = 3,
        retry_delay: float = 1.0,
        failure_threshold: int = 5,
        breaker_timeout: float = 60.0,
    ) -> None:
        """`max_retries` and `retry_delay` are those of `execute_with_retry`; times are seconds."""
        known = ("simple", "circuit-breaker", "exponential-backoff", "silent")
        self.strategy = check_strategy(self.name, strategy, known)
        self._max_retries = check_number(self.name, "max_retries", max_retries, whole=True)
        self._delay = check_number(self.name, "retry_delay", retry_delay)
        self.breaker = CircuitBreaker(
            threshold=check_number(self.name, "failure_threshold", failure_threshold, least=1, whole=True),
            pause=check_number(self.name, "breaker_timeout", breaker_timeout),
            monotonic=lambda: self.context.ports.monotonic(),
        )
        self.records = Records(self.name, None, limit=KEPT)
        self._codes: Counter[str] = Counter()
        self._in_a_row = [0]
        """Failed model calls; shared with those that watch subagents."""
        self.begin()

    def begin(self) -> None:
        self._calling = False

    async def before_provider_call(self, request: ChatRequest) -> Refusal | None:
        if self.strategy == "circuit-breaker":
            try:
                self.breaker.admit()
            except CircuitBreakerOpenError as error:
                return Refusal(str(error))
        elif self.strategy == "exponential-backoff" and self._in_a_row[0]:
            await self.context.ports.sleep(self.delay(self._in_a_row[0]))
        self._calling = True
        return None

    async def after_provider_call(self, message: AssistantMessage) -> None:
        if self._calling and "providerError" not in message.metadata:
            self.breaker.succeed()
            self._in_a_row[0] = 0
        self._calling = False

    async def on_error(self, error: Exception) -> None:
        code = get_error_code(error)
        self._codes[code] += 1
        self.records.add(self.origin() | {"code": code, "error": describe_exception(error)})
        if self._calling and not isinstance(error, ToolExecutionError | PluginError):
            self._calling = False
            self.breaker.fail()
            self._in_a_row[0] += 1
        if self.strategy != "silent":
            import logging  # noqa: PLC0415 - only when something went wrong

            logging.getLogger("robota.plugins").warning("A run met an error: %s", describe_exception(error))

    async def after_run(self, result: RunResult) -> None:
        if self._calling:  # cut: that says nothing about the service
            self.breaker.release()
        self._calling = False

    def delay(self, attempt: int) -> float:
        """Seconds to wait after so many failures."""
        return float(min(self._delay * 2.0 ** (attempt - 1), LONGEST_DELAY))

    async def execute_with_retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something of your own, again when it fails, as the strategy says; the last failure is raised."""
        if not callable(work):
            raise ConfigurationError("execute_with_retry takes a function that returns an awaitable.")
        attempt = 1
        while True:
            probing = self.breaker.admit() if self.strategy == "circuit-breaker" else False
            try:
                value = await work()
            except Exception as error:
                self.breaker.fail()
                self._codes[get_error_code(error)] += 1
                if attempt > self._max_retries or probing:
                    raise
            else:
                self.breaker.succeed()
                return value
            backing_off = self.strategy == "exponential-backoff"
            await self.context.ports.sleep(self.delay(attempt) if backing_off else self._delay)
            attempt += 1

    def get_stats(self) -> dict[str, Json]:
        own: dict[str, Json] = {
            "failures": self._codes.total(),
            "byCode": dict(self._codes),
            "breaker": self.breaker.state,
        }
        return super().get_stats() | own
