from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import Callable, Iterator

import httpx2
import pytest
from tests.http.certificates import Authority
from tests.http.peer import OK, Line, Peer, fetch, get, in_thread, post

from robota.http.address import find_proxy
from robota.http.client import HttpClient
from robota.http.detour import Detour, explain
from robota.http.errors import FailureKind, HttpError
from robota.http.url import Url, parse_url

pytestmark = pytest.mark.anyio
ELSEWHERE = Url("http", "service.example", 80, "/v1?a=b")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return


def answering(answer: Callable[[httpx2.Request], httpx2.Response]) -> HttpClient:
    return HttpClient(detour=Detour(transport=httpx2.MockTransport(answer)))


# --- proxies --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    async with Peer() as proxy, HttpClient() as client:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        for body in (b"one", b"two"):
            assert await fetch(client, post(ELSEWHERE, accept="x"), body) == b"ok"

    assert [request.partition(b"\r\n")[0] for request in proxy.requests] == [
        b"POST http://service.example/v1?a=b HTTP/1.1"
    ] * 2
    assert b"\r\nHost: service.example\r\n" in proxy.requests[0]
    assert proxy.requests[1].endswith(b"\r\n\r\ntwo")


async def test_the_environment_is_asked_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Peer() as first, Peer() as second, HttpClient() as client:
        for proxy in (first, second, first):
            monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
            assert await fetch(client, get(ELSEWHERE)) == b"ok"

    assert [len(peer.requests) for peer in (first, second)] == [2, 1]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost"])
async def test_this_machine_is_reached_past_any_proxy(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with Peer(host="0.0.0.0") as peer, HttpClient() as client:
        assert await fetch(client, get(peer.url(host=host))) == b"ok"


@pytest.mark.parametrize(
    ("exceptions", "direct"),
    [
        ("", ()),
        ("*", ("http://a.example", "http://sub.a.example", "http://10.1.2.3", "http://[2001:db8::1]:81")),
        ("b.example, a.example", ("http://a.example", "http://sub.a.example")),
        (".a.example", ("http://a.example", "http://sub.a.example")),
        ("a.example:81", ()),
        ("10.0.0.0/8,192.168.0.1", ("http://10.1.2.3",)),
        ("2001:db8::/32", ("http://[2001:db8::1]:81",)),
    ],
)
def test_exceptions_are_names_addresses_and_networks(
    monkeypatch: pytest.MonkeyPatch, exceptions: str, direct: tuple[str, ...]
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", exceptions)
    asked = ("http://a.example", "http://sub.a.example", "http://10.1.2.3", "http://[2001:db8::1]:81")
    assert tuple(url for url in asked if find_proxy(parse_url(url)) is None) == direct


async def test_a_proxy_for_https_does_not_concern_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    async with Peer() as peer, HttpClient() as client:
        assert await fetch(client, get(peer.url())) == b"ok"


async def test_a_client_that_wants_no_proxy_asks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with Peer() as peer, HttpClient(proxies=False) as client:
        assert await fetch(client, get(peer.url())) == b"ok"


async def test_tls_goes_through_a_tunnel_and_is_checked(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tunnel(line: Line) -> None:
        host = (await line.request()).split(b" ")[1].decode()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
        await line.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_copy(line.reader, writer), _copy(reader, line.writer))

    async with (
        Peer(tls=authority.server("service.example")) as peer,
        Peer(tunnel) as proxy,
        HttpClient(tls=authority.client()) as client,
    ):
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        assert await fetch(client, get(peer.url(host="service.example"))) == b"ok"
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(peer.url(host="other.example")))

    assert caught.value.kind == "certificate"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def test_a_proxy_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Peer() as gone:
        pass
    monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{gone.port}")
    async with HttpClient() as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(ELSEWHERE))
    assert caught.value.kind == "proxy"
    assert str(caught.value).startswith(f"http://127.0.0.1:{gone.port}: ConnectError: ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("written", ["ftp://proxy.example", "http://proxy.example:port"])
async def test_a_proxy_that_is_no_proxy_is_named(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("http_proxy", written)
    async with HttpClient() as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(ELSEWHERE))
    assert (caught.value.kind, written in str(caught.value)) == ("proxy", True)


async def test_dead_connections_of_a_proxy_are_not_tried_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together, served = asyncio.Barrier(3), 0

    async def answer_once(line: Line) -> None:
        nonlocal served
        await line.request()
        served += 1
        if served <= 3:
            await together.wait()  # three connections at the same time, all of them kept
        await line.send(OK)
        await line.request()  # the next one it hangs up on

    async with Peer(answer_once) as proxy, HttpClient() as client:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        await asyncio.gather(*(fetch(client, post(ELSEWHERE), repeatable=True) for _ in range(3)))
        assert await fetch(client, post(ELSEWHERE), repeatable=True) == b"ok"


# --- transports and clients -----------------------------------------------------------------------------


async def test_a_transport_gets_the_request_as_it_was_built() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(201, headers=[("x-a", "1"), ("X-A", "2")], content=request.content)

    async with answering(answer) as client:
        reply = await client.send(post(ELSEWHERE, accept="x"), b"echo")
        assert (reply.status, reply.reason, reply.headers["x-a"]) == (201, "Created", "1, 2")
        assert (await reply.read(10), reply.whole) == (b"echo", True)

    assert dict(seen[0].headers) == {"host": "service.example", "accept": "x", "content-length": "4"}
    assert str(seen[0].url) == "http://service.example/v1?a=b"


async def test_a_client_keeps_its_headers_and_stays_open() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=request.headers["x-mine"].encode())

    async with httpx2.AsyncClient(headers={"x-mine": "1"}, transport=httpx2.MockTransport(answer)) as given:
        async with HttpClient(detour=Detour(client=given)) as client:
            assert await fetch(client, get(ELSEWHERE)) == b"1"
        assert not given.is_closed


async def test_redirects_are_not_followed_by_a_client_that_would() -> None:
    moved = httpx2.MockTransport(lambda _: httpx2.Response(302, headers={"location": "http://evil.example"}))
    async with (
        httpx2.AsyncClient(transport=moved, follow_redirects=True) as given,
        await HttpClient(detour=Detour(client=given)).send(get(ELSEWHERE)) as reply,
    ):
        assert reply.status == 302


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_compressed_body_is_unpacked_once(streamed: bool) -> None:
    packed = gzip.compress(b"hello")

    async def pieces():  # type: ignore[no-untyped-def]
        yield packed[:7]
        yield packed[7:]

    def answer(_: httpx2.Request) -> httpx2.Response:
        content = pieces() if streamed else packed
        return httpx2.Response(200, headers={"content-encoding": "gzip"}, content=content)

    async with answering(answer) as client:
        assert await fetch(client, get(ELSEWHERE)) == b"hello"


# --- failures -------------------------------------------------------------------------------------------


def caused_by(error: httpx2.HTTPError, cause: BaseException) -> httpx2.HTTPError:
    error.__cause__ = (
        ExceptionGroup("all failed", [OSError("x"), cause]) if isinstance(cause, OSError) else cause
    )
    return error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (httpx2.ConnectTimeout(""), "connect_timeout", "ConnectTimeout"),
        (httpx2.ReadTimeout("slow"), "silence", "ReadTimeout: slow"),
        (httpx2.ProxyError("no"), "proxy", "ProxyError: no"),
        (httpx2.ConnectError("CERTIFICATE"), "certificate", "ConnectError: CERTIFICATE"),
        (httpx2.ConnectError("[SSL: X]"), "tls", "ConnectError: [SSL: X]"),
        (caused_by(httpx2.ConnectError("x"), ssl.SSLError("y")), "tls", "ConnectError: x"),
        (caused_by(httpx2.ConnectError("x"), ConnectionRefusedError()), "refused", "ConnectError: x"),
        (httpx2.ConnectError("x"), "connect", "ConnectError: x"),
        (httpx2.RemoteProtocolError("Server disconnected without sending a response."), "closed", ""),
        (httpx2.RemoteProtocolError("illegal status line"), "protocol", ""),
        (httpx2.ReadError("x"), "closed", "ReadError: x"),
        (httpx2.DecodingError("x"), "protocol", "DecodingError: x"),
    ],
)
async def test_each_failure_is_one_of_ours(error: httpx2.HTTPError, kind: FailureKind, text: str) -> None:
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    async with answering(fail) as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(ELSEWHERE))
    assert (caught.value.kind, caught.value.__cause__) == (kind, error)
    assert str(caught.value).startswith(text)
    assert str(explain(error)) == str(caught.value)


async def test_a_body_that_is_cut_is_an_error() -> None:
    async def pieces():  # type: ignore[no-untyped-def]
        yield b"half"
        raise httpx2.RemoteProtocolError("peer closed connection without sending complete message body")

    async with (
        answering(lambda _: httpx2.Response(200, content=pieces())) as client,
        await client.send(get(ELSEWHERE)) as reply,
    ):
        parts = reply.parts()
        assert await anext(parts) == b"half"
        with pytest.raises(HttpError) as caught:
            await anext(parts)
    assert caught.value.kind == "closed"


async def test_a_request_that_met_a_closing_connection_is_sent_once_more() -> None:
    answers = [OK, b"", OK, b"", b""]

    def answer(_: httpx2.Request) -> httpx2.Response:
        if answers.pop(0):
            return httpx2.Response(200, content=b"ok")
        raise httpx2.RemoteProtocolError("Server disconnected without sending a response.")

    async with answering(answer) as client:
        assert [await fetch(client, post(ELSEWHERE), repeatable=True) for _ in range(2)] == [b"ok", b"ok"]
        with pytest.raises(HttpError):
            await fetch(client, post(ELSEWHERE))  # not this one
        assert len(answers) == 1


# --- event loops ----------------------------------------------------------------------------------------


def test_one_event_loop_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer()
    client = HttpClient()

    async def ask() -> None:
        assert await fetch(client, get(ELSEWHERE)) == b"ok"
        assert client.detour is not None
        assert len(client.detour._clients) == 1  # that of this loop
        await client.aclose()

    with in_thread(peer):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{peer.port}")
        for _ in range(2):
            asyncio.run(ask())
