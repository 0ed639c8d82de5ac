from __future__ import annotations

import asyncio
import inspect
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from tests.http.certificates import Authority
from tests.http.peer import Line, Peer, in_thread
from tests.providers.loopback import Loopback, Reply

from robota.core import ChatRequest, UserMessage
from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelNotAvailableError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.http.errors import HttpError
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.wire.channel import HttpChannel

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret"
REPLY = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def channel(url: str, key: str = KEY, **options: object) -> HttpChannel:
    return HttpChannel(url, provider="acme", key=key, **options)  # type: ignore[arg-type]


async def exchange(server_channel: HttpChannel, body: bytes = b"{}") -> bytes:
    reply = await server_channel.open(body, model="m1")
    return await reply.read(1 << 20)


async def refusal(reply: Reply, key: str = KEY) -> RobotaError:
    async with Loopback(reply) as server:
        acme = channel(f"{server.url}/chat/completions", key)
        with pytest.raises(RobotaError) as caught:
            await exchange(acme)
        await acme.aclose()
        return caught.value


def error_reply(
    status: int, message: str = "", headers: dict[str, str] | None = None, **fields: object
) -> Reply:
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return Reply([body], status, headers or {"content-type": "application/json"})


# --- requests --------------------------------------------------------------------------------------------


async def test_a_request_carries_what_was_prepared_and_nothing_of_the_client() -> None:
    async with Loopback(Reply([b"ok"])) as server:
        acme = channel(f"{server.url}/chat/completions?api-version=1")
        assert await exchange(acme, b'{"a":1}') == b"ok"
        await acme.aclose()
        request = server.requests[0]
        assert (request.path, request.body) == ("/v1/chat/completions?api-version=1", b'{"a":1}')
        agent = request.headers.pop("user-agent")
        assert agent.startswith("robota/")
        assert request.headers == {
            "host": server.origin.removeprefix("http://"),
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": "7",
            "authorization": f"Bearer {KEY}",
        }


async def test_one_connection_serves_one_request_after_another() -> None:
    async with Loopback(*(Reply([b"ok"]) for _ in range(3))) as server:
        acme = channel(server.url)
        for _ in range(3):
            await exchange(acme)
        await acme.aclose()
        assert server.connections == 1


async def test_after_closing_another_request_opens_a_new_connection() -> None:
    async with Loopback(Reply([b"one"]), Reply([b"two"])) as server:
        acme = channel(server.url)
        assert await exchange(acme) == b"one"
        await acme.aclose()
        assert await exchange(acme) == b"two"
        await acme.aclose()
        assert server.connections == 2


class Forgetful:
    """Answers the first `answers` requests of a connection and hangs up when the next one comes."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):  # the client is done
            for number in range(self.answers + 1):
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                self.requests += 1
                if number < self.answers:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()


async def test_a_kept_connection_that_the_server_just_closed_is_replaced() -> None:
    forgetful = Forgetful(answers=1)
    async with await asyncio.start_server(forgetful.serve, "127.0.0.1", 0) as server:
        acme = channel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        assert [await exchange(acme), await exchange(acme)] == [b"ok", b"ok"]
        await acme.aclose()
    assert forgetful.requests == 3


async def test_a_first_request_is_never_sent_twice() -> None:
    forgetful = Forgetful(answers=0)
    async with await asyncio.start_server(forgetful.serve, "127.0.0.1", 0) as server:
        acme = channel(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        with pytest.raises(NetworkError):
            await exchange(acme)
        await acme.aclose()
    assert forgetful.requests == 1


async def test_connections_of_a_loop_in_another_thread_are_closed_too() -> None:
    async with Loopback(Reply([b"ok"])) as server:
        acme = channel(server.url)
        other = asyncio.new_event_loop()
        thread = asyncio.to_thread(other.run_forever)
        running = asyncio.ensure_future(thread)
        answer = asyncio.run_coroutine_threadsafe(exchange(acme), other)
        assert await asyncio.wrap_future(answer) == b"ok"
        await acme.aclose()
        other.call_soon_threadsafe(other.stop)
        await running
        other.close()


async def test_compression_against_our_wish_is_undone() -> None:
    import gzip

    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    async with Loopback(Reply([gzip.compress(b"data: x\n\n")], headers=headers)) as server:
        acme = channel(server.url)
        assert await exchange(acme) == b"data: x\n\n"
        await acme.aclose()


async def test_a_client_handed_in_keeps_its_headers_and_stays_open() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.headers["x-mine"], request.headers["authorization"]))
        return httpx2.Response(200, content=b"ok")

    seen: list[tuple[str, str]] = []
    async with httpx2.AsyncClient(headers={"x-mine": "1"}, transport=httpx2.MockTransport(answer)) as client:
        acme = channel("https://acme.test/v1", client=client)
        await exchange(acme)
        await acme.aclose()
        assert not client.is_closed
        assert seen == [("1", f"Bearer {KEY}")]


async def test_a_transport_handed_in_carries_the_requests() -> None:
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=request.content))
    acme = channel("https://acme.test/v1", transport=transport)
    assert await exchange(acme, b'"echo"') == b'"echo"'
    await acme.aclose()


async def test_plain_http_loads_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ssl.SSLContext, "load_default_certs", lambda *_: pytest.fail("certificates were loaded")
    )
    async with Loopback(Reply([b"ok"])) as server:
        acme = channel(server.url)
        await exchange(acme)
        await acme.aclose()


def modules_after(*statements: str) -> set[str]:
    code = "\n".join(("import sys", *statements, "print('modules', *sys.modules)"))
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean)
    return set(done.stdout.rpartition("modules")[2].split())


BUILD = "from robota.providers.openai_compatible import OpenAICompatibleProvider as P; p = P('k', '{}', 'm')"


def test_building_a_provider_loads_no_client() -> None:
    loaded = modules_after(BUILD.format("https://acme.test/v1"))
    assert not loaded & {"httptools", "httpx2", "asyncio", "ssl", "socket"}


def test_asking_directly_loads_neither_httpx2_nor_what_comes_with_it() -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(REPLY)}\r\n\r\n"
    peer = Peer(head.encode() + REPLY)
    with in_thread(peer):
        loaded = modules_after(
            BUILD.format(f"http://127.0.0.1:{peer.port}/v1"),
            "import asyncio",
            "from robota.core import ChatRequest, UserMessage",
            "async def main():",
            "    async for chunk in p.stream(ChatRequest(messages=[UserMessage('Hi.')], model='m')): pass",
            "    await p.aclose()",
            "asyncio.run(main())",
        )
    assert "httptools" in loaded
    assert not loaded & {"httpx2", "httpcore2", "h11", "anyio", "truststore", "urllib.parse", "http.client"}


async def test_between_the_provider_and_the_socket_are_three_functions_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from asyncio.selector_events import _SelectorSocketTransport as Transport

    walks: list[list[str]] = []
    write = Transport.write

    def note_walk(self: object, data: bytes) -> None:
        if data.startswith(b"POST"):
            frames = inspect.stack(context=0)[1:]
            ours = [frame.function for frame in frames if "/robota/" in frame.filename]
            walks.append(ours)
        write(self, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Transport, "write", note_walk)
    async with (
        Loopback(Reply([REPLY]), Reply([REPLY])) as server,
        OpenAICompatibleProvider("k", server.url, "m") as provider,
    ):
        for _ in range(2):
            async for _ in provider.stream(ChatRequest(messages=[UserMessage("Hi.")], model="m")):
                pass
        assert server.connections == 1

    assert walks == [["send", "open", "stream"]] * 2


async def test_a_user_and_a_password_in_the_url_are_sent_as_http_wants_it() -> None:
    async with Loopback(
        Reply([b"ok"]), error_reply(401, "Not with s3cret/pass, Basic bWU6czNjcmV0L3Bhc3M=.")
    ) as server:
        acme = channel(server.url.replace("http://", "http://me:s3cret%2Fpass@"))
        assert await exchange(acme) == b"ok"
        with pytest.raises(AuthenticationError) as caught:
            await exchange(acme)
        await acme.aclose()

    assert server.requests[0].headers["authorization"] == "Basic bWU6czNjcmV0L3Bhc3M="
    assert acme.origin == server.origin
    assert "(401: Not with ***, ***)" in str(caught.value)


async def test_a_proxy_that_appears_later_is_asked_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy"
    async with Peer(ok) as proxy:
        acme = channel("http://service.invalid/v1")
        with pytest.raises(NetworkError, match="the host was not found"):
            await exchange(acme)
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert await exchange(acme) == b"proxy"
        await acme.aclose()

    assert proxy.requests[0].startswith(b"POST http://service.invalid/v1 HTTP/1.1\r\n")


# --- what cannot work --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["localhost:8080/v1", "ftp://x/v1", "https://", "/v1", "http://[::1/v1", "http://x:y/v1"]
)
def test_a_url_that_is_no_web_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not a web address"):
        channel(url)


@pytest.mark.parametrize("key", ["sk\nline", "sk-é", "sk\0"])
def test_a_key_that_http_cannot_carry_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError, match="'authorization'") as caught:
        channel("https://acme.test/v1", key)
    assert key not in str(caught.value)


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "what", "next_step"),
    [
        (400, ProviderError, "rejected the request", "check the model's limits and the request's settings"),
        (401, AuthenticationError, "refused the API key", "check the key or set another one"),
        (
            402,
            ProviderError,
            "says that the account has no credit left",
            "check the billing page of the service",
        ),
        (
            403,
            AuthenticationError,
            "does not allow this with the given key",
            "check what the key may do, or use another model",
        ),
        (413, ProviderError, "finds the request too large", "compact the conversation or send smaller files"),
        (
            429,
            RateLimitError,
            "asks for patience",
            "wait a moment and try again, or check the limits of your plan",
        ),
        (500, ProviderError, "failed", "try again in a moment"),
        (529, ProviderError, "failed", "try again in a moment"),
    ],
)
async def test_a_refusal_is_one_sentence_with_the_next_step(
    status: int, kind: type[RobotaError], what: str, next_step: str
) -> None:
    error = await refusal(error_reply(status, " Why.\n"))
    assert (type(error), getattr(error, "status", None)) == (kind, status)
    assert str(error) == f"acme {what} ({status}: Why); {next_step}."


async def test_a_missing_page_names_the_address() -> None:
    error = await refusal(Reply([b"<html>404</html>"], 404))
    assert isinstance(error, ProviderError)
    assert str(error).startswith("acme knows no ")
    assert (
        "/v1/chat/completions (404); check the model name and the base URL, which usually ends in /v1."
        in str(error)
    )


@pytest.mark.parametrize(
    "reply",
    [
        error_reply(404, "The model `m1` does not exist", code="model_not_found"),
        error_reply(404, 'model "m1" not found, try pulling it first'),
        error_reply(400, "Model Not Exist"),
    ],
)
async def test_a_missing_model_is_named(reply: Reply) -> None:
    error = await refusal(reply)
    assert isinstance(error, ModelNotAvailableError)
    assert (error.model, error.provider) == ("m1", "acme")


@pytest.mark.parametrize(
    "said",
    [
        "The model `m1` has been deprecated, learn more here: https://acme.test/deprecations",
        "Your organization must be verified to use the model `m1`",
    ],
)
async def test_why_a_model_is_not_available_is_told(said: str) -> None:
    error = await refusal(error_reply(404, f"{said}.", code="model_not_found"))
    assert str(error) == f'Model "m1" is not available for provider "acme" ({said}); check its name.'


async def test_a_conversation_that_is_too_long_says_so() -> None:
    error = await refusal(error_reply(400, "too long", code=400, type="exceed_context_size_error"))
    assert str(error).startswith("acme cannot take a conversation this long (400: too long)")


async def test_a_service_that_wants_a_key_says_so_when_none_was_given() -> None:
    error = await refusal(error_reply(401, "Unauthorized"), key="")
    assert str(error) == "acme wants an API key and got none (401: Unauthorized); pass api_key."


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":"plain"}', "plain"),
        (b'{"detail":"from a framework"}', "from a framework"),
        (b'{"object":"error","message":"flat"}', "flat"),
        (b'[{"error":{"message":"in a list"}}]', "in a list"),
        (
            b'{"error":{"message":"Provider returned error","metadata":'
            b'{"raw":"{\\"error\\":{\\"message\\":\\"no tools.\\"}}","provider_name":"Acme"}}}',
            "Provider returned error: no tools (from Acme)",
        ),
        (b'{"error":{"message":"Failed","metadata":{"raw":"busy"}}}', "Failed: busy"),
        (b"just words", "just words"),
        (b"\xff\xfe", "��"),
    ],
)
async def test_what_the_service_said_is_found_wherever_it_stands(body: bytes, said: str) -> None:
    assert f"(500: {said})" in str(await refusal(Reply([body], 500)))


async def test_long_explanations_are_cut_and_endless_ones_not_read() -> None:
    assert len(str(await refusal(Reply([b"x" * 10_000] * 20, 500, hang=True)))) < 500


async def test_half_an_explanation_is_not_quoted() -> None:
    error = await refusal(Reply([b'{"error":{"mess'], 500, cut=True))
    assert str(error) == "acme failed (500); try again in a moment."


async def test_the_facts_of_a_refusal_are_attributes() -> None:
    headers = {"retry-after": "7", "x-request-id": "req-1"}
    error = await refusal(error_reply(429, "slow down", headers))
    assert isinstance(error, RateLimitError)
    assert (error.provider, error.status, error.request_id, error.retry_after) == ("acme", 429, "req-1", 7)


@pytest.mark.parametrize(
    ("headers", "fits"),
    [
        ({"retry-after-ms": "1500"}, lambda wait: wait == 1.5),
        (
            {"retry-after": format_datetime(datetime.now(UTC) + timedelta(60), True)},
            lambda wait: wait > 5_000_000,
        ),
        ({"retry-after": "soon"}, lambda wait: wait is None),
    ],
)
async def test_the_wait_asked_for_is_in_seconds(
    headers: dict[str, str], fits: Callable[[float | None], bool]
) -> None:
    error = await refusal(error_reply(503, "busy", headers))
    assert isinstance(error, ProviderError)
    assert fits(error.retry_after)


async def test_a_redirect_is_not_followed_because_the_key_would_go_along() -> None:
    async with Loopback() as elsewhere:
        error = await refusal(Reply([], 307, {"location": elsewhere.url}))
        assert elsewhere.connections == 0
        assert str(error) == f"acme moved to {elsewhere.url} (307); set the base URL to its new address."


async def test_a_key_echoed_by_the_service_is_hidden() -> None:
    error = await refusal(error_reply(401, f"Incorrect API key provided: {KEY}"))
    assert "(401: Incorrect API key provided: ***)" in str(error)


# --- no answer -------------------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_is_asked_about() -> None:
    async with Loopback() as gone:
        pass
    acme = channel(f"http://user:{KEY}@{gone.origin.removeprefix('http://')}/v1")
    with pytest.raises(NetworkError) as caught:
        await exchange(acme)
    assert str(caught.value).startswith(f"acme could not be reached at {gone.origin} (")
    assert str(caught.value).endswith("); is the server running?")


async def failure_at(url: str, **options: object) -> str:
    acme = channel(url, **options)
    with pytest.raises(NetworkError) as caught:
        await exchange(acme)
    await acme.aclose()
    assert isinstance(caught.value.__cause__, HttpError)
    return str(caught.value)


async def test_a_host_that_does_not_exist_is_told() -> None:
    text = await failure_at("http://no-such-host.invalid/v1")
    assert text.startswith("acme could not be reached at http://no-such-host.invalid (the host was not found")


async def test_a_certificate_that_is_not_trusted_is_told(
    authority: Authority, fresh_trust: pytest.MonkeyPatch
) -> None:
    async with Peer(tls=authority.server("localhost")) as peer:
        origin = f"https://localhost:{peer.port}"
        text = await failure_at(f"{origin}/v1")
        assert text.startswith(f"The certificate of {origin} is not trusted (")
        assert text.endswith("); set SSL_CERT_FILE to your CA bundle.")
        fresh_trust.setenv("SSL_CERT_FILE", str(authority.file))
        acme = channel(f"{origin}/v1")
        assert await exchange(acme) == b"ok"
        await acme.aclose()


async def test_a_server_that_does_not_speak_tls_is_told() -> None:
    async def greet(line: Line) -> None:
        await line.send(b"220 mail.test ready\r\n")
        await line.until_left()

    async with Peer(greet) as peer:
        origin = f"https://127.0.0.1:{peer.port}"
        assert await failure_at(f"{origin}/v1") == (
            f"acme at {origin} does not speak TLS; use http:// in the base URL if that is meant."
        )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "the connection ended without an answer"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf",
            "the connection ended before its answer was complete",
        ),
        (b"SSH-2.0\r\n", "its answer is malformed (Expected HTTP/, RTSP/ or ICE/)"),
    ],
)
async def test_half_an_answer_is_told(answer: bytes, said: str) -> None:
    async with Peer(answer, hang_up=True) as peer:
        acme = channel(f"http://127.0.0.1:{peer.port}/v1")
        try:
            with pytest.raises((NetworkError, HttpError)) as caught:
                await exchange(acme)
        finally:
            await acme.aclose()
    error = caught.value
    text = str(error if isinstance(error, NetworkError) else acme.translate(error))
    assert text == f"The connection to acme at http://127.0.0.1:{peer.port} broke ({said}); try again."


async def test_a_service_that_falls_silent_is_told() -> None:
    async with Loopback(Reply([], hang=True)) as server:
        acme = channel(server.url, silence=0.05)
        reply = await acme.open(b"{}")
        with pytest.raises(HttpError) as caught:
            await reply.read(10)
        await acme.aclose()
    text = f"acme at {server.origin} stopped answering (nothing came for 0.05 s); try again."
    assert str(acme.translate(caught.value)) == text


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (
            httpx2.ConnectTimeout(""),
            "acme could not be reached at {} in time; check the address and the network.",
        ),
        (httpx2.ReadTimeout(""), "acme at {} stopped answering (ReadTimeout); try again."),
        (
            httpx2.ProxyError("no"),
            "The proxy on the way to {} failed (ProxyError: no); check HTTPS_PROXY and NO_PROXY.",
        ),
        (
            httpx2.ConnectError("CERTIFICATE"),
            "The certificate of {} is not trusted (ConnectError: CERTIFICATE); "
            "set SSL_CERT_FILE to your CA bundle.",
        ),
        (
            httpx2.ConnectError("[SSL: WRONG_VERSION_NUMBER]"),
            "acme at {} does not speak TLS; use http:// in the base URL if that is meant.",
        ),
        (
            httpx2.RemoteProtocolError("cut"),
            "The connection to acme at {} broke (RemoteProtocolError: cut); try again.",
        ),
        (httpx2.ReadError(f"at {KEY}"), "The connection to acme at {} broke (ReadError: at ***); try again."),
    ],
)
async def test_each_failure_of_the_network_says_what_to_do(failure: httpx2.HTTPError, text: str) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise failure

    acme = channel("https://acme.test/v1", transport=httpx2.MockTransport(fail))
    with pytest.raises(NetworkError) as caught:
        await exchange(acme)
    await acme.aclose()
    assert str(caught.value) == text.format("https://acme.test")
    assert isinstance(caught.value.__cause__, HttpError)
    assert caught.value.__cause__.__cause__ is failure
