from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
import pytest

from robota.core.errors import (
    AuthenticationError,
    CircuitBreakerOpenError,
    ConfigurationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    wrap_provider_error,
)
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.ports import Ports
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.core.retry import CircuitBreaker, RetryingProvider, RetryPolicy, is_retryable, parse_retry_after
from robota.providers.scripted import Fail, Reply, ScriptedProvider, Step

pytestmark = pytest.mark.anyio

REQUEST = ChatRequest(model="m", messages=[])
RECORDED = ChatRequest(model="m", messages=[], want_raw=True)
OVERLOADED = ProviderError("Overloaded.", status=529)


class World:
    """A clock that moves only by waiting, and a record of the waits."""

    def __init__(self, random: float = 1.0) -> None:
        self.time = 0.0
        self.waits: list[float] = []
        self.ports = Ports(monotonic=lambda: self.time, random=lambda: random, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds


def retrying(world: World, *replies: Reply, **policy: float) -> RetryingProvider:
    return RetryingProvider(
        ScriptedProvider(*replies),
        policy=RetryPolicy(**policy),  # type: ignore[arg-type]  # max_attempts is the one int
        ports=world.ports,
    )


async def drain(provider: RetryingProvider, request: ChatRequest = REQUEST) -> list[Chunk]:
    return [chunk async for chunk in provider.stream(request)]


async def fail_call(provider: RetryingProvider) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the kind is what the tests look at
        await drain(provider)
    assert isinstance(caught.value, Exception)
    return caught.value


def calls(provider: RetryingProvider) -> int:
    assert isinstance(provider.inner, ScriptedProvider)
    return len(provider.inner.requests)


# --- what is tried again ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_a_passing_status_is_worth_another_try(status: int) -> None:
    assert is_retryable(ProviderError("no", status=status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
@pytest.mark.parametrize("kind", [ProviderError, RateLimitError, NetworkError])
def test_a_final_status_is_never_tried_again(kind: type[ProviderError], status: int) -> None:
    assert not is_retryable(kind("no", status=status))


@pytest.mark.parametrize(
    "error",
    [RateLimitError("slow down"), NetworkError("connection reset"), ConnectionResetError(), TimeoutError()],
)
def test_rate_limits_and_connection_faults_need_no_status(error: Exception) -> None:
    assert is_retryable(error)


def test_a_provider_error_without_status_is_tried_again_only_when_a_connection_fault_caused_it() -> None:
    assert is_retryable(wrap_provider_error(ConnectionResetError("reset"), "p"))
    assert not is_retryable(wrap_provider_error(KeyError("choices"), "p"))


@pytest.mark.parametrize(
    "error", [AuthenticationError("refused", status=401), ConfigurationError("no web search")]
)
async def test_other_errors_pass_through_at_once(error: Exception) -> None:
    world = World()
    provider = retrying(world, [Fail(error)], "late")
    assert await fail_call(provider) is error
    assert (calls(provider), world.waits) == (1, [])


async def test_a_failed_call_is_repeated_and_the_listener_sees_a_notice_before_each_wait() -> None:
    world = World()
    provider = retrying(world, [Fail(OVERLOADED)], [Fail(NetworkError("Connection reset."))], "hello")
    assert await drain(provider) == [
        RetryNotice(attempt=2, max_attempts=5, delay=1.0, message="Overloaded.", status=529),
        RetryNotice(attempt=3, max_attempts=5, delay=2.0, message="Connection reset."),
        TextChunk("hello"),
        StopChunk("end_turn"),
    ]
    assert world.waits == [1.0, 2.0]


async def test_the_last_failure_is_raised_unchanged_when_the_attempts_are_used_up() -> None:
    provider = retrying(World(), *[[Fail(OVERLOADED)]] * 9, max_attempts=3)
    assert await fail_call(provider) is OVERLOADED
    assert calls(provider) == 3


# --- how long -----------------------------------------------------------------------------------------


async def test_waits_double_up_to_a_cap() -> None:
    world = World()
    await fail_call(retrying(world, *[[Fail(OVERLOADED)]] * 6, max_attempts=6, base_delay=2, max_delay=10))
    assert world.waits == [2, 4, 8, 10, 10]


async def test_waits_are_spread_by_full_jitter() -> None:
    world = World(random=0.25)
    await fail_call(retrying(world, *[[Fail(OVERLOADED)]] * 3, max_attempts=3, base_delay=4))
    assert world.waits == [1.0, 2.0]


async def test_a_wait_is_never_shorter_than_the_service_asked_for() -> None:
    world = World()
    await drain(retrying(world, [Fail(RateLimitError("Slow down.", retry_after=17.5))], "ok"))
    assert world.waits == [17.5]


async def test_a_wait_beyond_the_limit_ends_the_call_with_a_message_that_names_it() -> None:
    world = World()
    provider = retrying(
        world,
        [
            Fail(
                RateLimitError(
                    "Quota used up.", provider="p", status=429, request_id="r1", retry_after=3600.2
                )
            )
        ],
        "late",
    )
    error = await fail_call(provider)
    assert isinstance(error, RateLimitError)
    assert str(error).startswith("Quota used up. The service asks to wait 3601 s, longer than the 60 s")
    assert (error.provider, error.status, error.request_id, error.retry_after) == ("p", 429, "r1", 3600.2)
    assert (calls(provider), world.waits) == (1, [])


async def test_a_wait_ends_at_once_when_the_caller_is_cancelled() -> None:
    provider = RetryingProvider(
        ScriptedProvider([Fail(RateLimitError("Slow down.", retry_after=59.0))], "late")
    )
    seen: list[Chunk] = []
    with anyio.CancelScope() as scope:
        async for chunk in provider.stream(REQUEST):
            seen.append(chunk)
            scope.cancel()
    assert scope.cancelled_caught
    assert [type(chunk) for chunk in seen] == [RetryNotice]
    assert calls(provider) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("20", 20.0),
        (" 1.5 ", 1.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:02:00 -0000", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=100.0) == seconds


# --- nothing is repeated that somebody has seen -------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        TextChunk("Hel"),
        ReasoningChunk("hm"),
        ReasoningBlock("hm"),
        ToolInputChunk(0, "{"),
        ToolCall("1", "add"),
        ServerToolChunk("web_search"),
        StopChunk("end_turn"),
    ],
    ids=lambda chunk: type(chunk).__name__,
)
async def test_a_reply_that_has_begun_is_never_started_again(content: Chunk) -> None:
    provider = retrying(World(), [content, Fail(OVERLOADED)], "again")
    stream = provider.stream(REQUEST)
    assert await anext(stream) == content
    with pytest.raises(ProviderError, match=r"Overloaded\."):
        await anext(stream)
    assert calls(provider) == 1


async def test_native_payloads_do_not_count_as_a_beginning_and_are_seen_for_every_attempt() -> None:
    payload = NativePayload(kind="request", payload={})
    seen = await drain(retrying(World(), [payload, Fail(OVERLOADED)], [payload, "ok"]), RECORDED)
    assert [type(chunk) for chunk in seen] == [
        NativePayload,
        RetryNotice,
        NativePayload,
        TextChunk,
        StopChunk,
    ]


async def test_usage_and_metadata_of_a_failed_attempt_are_not_reported() -> None:
    start: list[Chunk] = [MetadataChunk({"id": "1"}), TokenUsage(10)]
    again: list[Chunk] = [MetadataChunk({"id": "2"}), TokenUsage(11)]
    seen = await drain(retrying(World(), [*start, Fail(OVERLOADED)], [*again, "ok"]))
    assert seen[1:] == [*again, TextChunk("ok"), StopChunk("end_turn")]


async def test_a_reply_of_usage_alone_still_arrives() -> None:
    class Silent:
        name = "silent"

        async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
            yield TokenUsage(1)

    assert await drain(RetryingProvider(Silent())) == [TokenUsage(1)]


async def test_closing_the_stream_closes_the_connection_below() -> None:
    inner = ScriptedProvider(["Hel", "lo"])
    stream = RetryingProvider(inner).stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert inner.open_streams == 0


async def test_the_wrapper_has_the_name_and_the_capabilities_of_what_it_wraps() -> None:
    inner = ScriptedProvider(name="inner", capabilities=Capabilities(vision=True))
    provider = RetryingProvider(inner)
    assert (provider.name, provider.capabilities) == ("inner", Capabilities(vision=True))


async def test_closing_the_wrapper_closes_the_provider() -> None:
    class Closable(ScriptedProvider):
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    inner = Closable()
    async with RetryingProvider(inner), RetryingProvider(ScriptedProvider()):
        assert not inner.closed
    assert inner.closed


# --- the circuit breaker ------------------------------------------------------------------------------


def tripped(world: World) -> CircuitBreaker:
    breaker = CircuitBreaker(monotonic=world.ports.monotonic)
    for _ in range(5):
        breaker.admit()
        breaker.fail()
    return breaker


def test_five_failed_calls_in_a_row_open_the_circuit_for_a_minute() -> None:
    world = World()
    breaker = tripped(world)
    world.time = 20.5
    with pytest.raises(
        CircuitBreakerOpenError, match=r"failed 5 times in a row; .* allowed in 40 s"
    ) as caught:
        breaker.admit()
    assert (breaker.state, caught.value.retry_after) == ("open", 39.5)


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker = CircuitBreaker(threshold=2)
    breaker.fail()
    breaker.succeed()
    breaker.fail()
    assert breaker.state == "closed"


def test_after_the_pause_a_single_call_probes_the_service() -> None:
    world = World()
    breaker = tripped(world)
    world.time = 60.0
    assert breaker.state == "half_open"
    assert breaker.admit() is True
    with pytest.raises(CircuitBreakerOpenError, match="once the call that probes it has been answered"):
        breaker.admit()


def test_a_successful_probe_closes_the_circuit() -> None:
    world = World()
    breaker = tripped(world)
    world.time = 60.0
    breaker.admit()
    breaker.succeed()
    assert (breaker.state, breaker.admit()) == ("closed", False)


def test_a_failed_probe_opens_the_circuit_again() -> None:
    world = World()
    breaker = tripped(world)
    world.time = 60.0
    breaker.admit()
    breaker.fail()
    assert breaker.state == "open"


async def test_calls_are_refused_without_asking_the_service_while_the_circuit_is_open() -> None:
    provider = retrying(World(), *[[Fail(OVERLOADED)]] * 5, "late", max_attempts=1)
    for _ in range(5):
        await fail_call(provider)
    assert isinstance(await fail_call(provider), CircuitBreakerOpenError)
    assert calls(provider) == 5


async def test_the_attempts_of_one_call_count_as_one_failure() -> None:
    provider = retrying(World(), *[[Fail(OVERLOADED)]] * 8, max_attempts=8)
    await fail_call(provider)
    assert provider.breaker.state == "closed"


@pytest.mark.parametrize(
    "error",
    [
        RateLimitError("slow down"),
        ProviderError("bad request", status=400),
        AuthenticationError("no", status=401),
    ],
)
async def test_answers_of_a_living_service_do_not_open_the_circuit(error: Exception) -> None:
    provider = retrying(World(), *[[Fail(error)]] * 6, max_attempts=1)
    for _ in range(6):
        assert await fail_call(provider) is error


async def test_a_probe_is_not_repeated_when_it_fails() -> None:
    world = World()
    provider = RetryingProvider(
        ScriptedProvider([Fail(OVERLOADED)], "late"), breaker=tripped(world), ports=world.ports
    )
    world.time = 60.0
    assert await fail_call(provider) is OVERLOADED
    assert (calls(provider), provider.breaker.state) == (1, "open")


async def test_the_first_content_of_a_probe_lets_other_calls_pass() -> None:
    world = World()
    provider = RetryingProvider(ScriptedProvider("one", "two"), breaker=tripped(world), ports=world.ports)
    world.time = 60.0
    probe = provider.stream(REQUEST)
    await anext(probe)
    assert await drain(provider) == [TextChunk("two"), StopChunk("end_turn")]
    await probe.aclose()


@pytest.mark.parametrize("ending", [Fail(ConfigurationError("no web search")), None])
async def test_a_probe_that_says_nothing_about_the_service_lets_the_next_call_probe(
    ending: Fail | None,
) -> None:
    world = World()
    payload = NativePayload(kind="request", payload={})
    script: list[Step] = [payload] if ending is None else [payload, ending]
    provider = RetryingProvider(ScriptedProvider(script, "ok"), breaker=tripped(world), ports=world.ports)
    world.time = 60.0
    probe = provider.stream(RECORDED)
    await anext(probe)
    if ending is None:
        await probe.aclose()
    else:
        with pytest.raises(ConfigurationError):
            await anext(probe)
    assert provider.breaker.state == "half_open"
    assert await drain(provider) == [TextChunk("ok"), StopChunk("end_turn")]
