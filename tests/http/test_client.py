from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest
from tests.http.peer import HEAD, OK, Line, Peer, fetch, get, post

from robota.http.client import HttpClient
from robota.http.connection import MAX_BARREN_BYTES
from robota.http.errors import HeaderError, HttpError
from robota.http.exchange import build_request
from robota.http.url import parse_url

pytestmark = pytest.mark.anyio


async def answer_to(data: bytes, method: str = "GET", limit: int = 1 << 20) -> tuple[int, bytes, bool]:
    """Status, body and whether it was whole, of a server that says this and hangs up."""
    async with Peer(data, hang_up=True) as peer, HttpClient() as client:
        reply = await client.send(build_request(method, peer.url(), {}))
        body = await reply.read(limit)
        return reply.status, body, reply.whole


async def failure_of(data: bytes) -> HttpError:
    with pytest.raises(HttpError) as caught:
        await answer_to(data)
    return caught.value


# --- what is sent ---------------------------------------------------------------------------------------


async def test_head_and_body_are_sent_in_one_write() -> None:
    packets: list[bytes] = []

    async def note(line: Line) -> None:
        packets.append(await line.reader.read(65536))
        await line.send(OK)

    async with Peer(note) as peer, HttpClient() as client:
        assert await fetch(client, post(peer.url("/v1?a=b"), Accept="x/y"), b"{}") == b"ok"

    host = f"127.0.0.1:{peer.port}"
    head = f"POST /v1?a=b HTTP/1.1\r\nHost: {host}\r\nAccept: x/y\r\nContent-Length: 2\r\n\r\n{{}}"
    assert packets == [head.encode()]


async def test_a_request_without_a_body_says_nothing_about_its_length() -> None:
    async with Peer() as peer, HttpClient() as client:
        await fetch(client, get(peer.url()))
        await fetch(client, post(peer.url()))

    assert [b"content-length: 0" in request.lower() for request in peer.requests] == [False, True]


async def test_a_body_of_megabytes_arrives() -> None:
    body = bytes(range(256)) * 20_000
    async with Peer() as peer, HttpClient() as client:
        assert await fetch(client, post(peer.url()), body) == b"ok"

    assert peer.requests[0].endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize(
    ("address", "line", "host"),
    [
        ("http://example.org/a b".replace(" ", "%20"), "GET /a%20b HTTP/1.1", "example.org"),
        ("http://example.org:80/<é>?q=ü", "GET /%3C%C3%A9%3E?q=%C3%BC HTTP/1.1", "example.org"),
        ("https://Bücher.example:8443", "GET / HTTP/1.1", "xn--bcher-kva.example:8443"),
        ("http://[::1]:8080/x", "GET /x HTTP/1.1", "[::1]:8080"),
    ],
)
def test_the_head_is_quoted_as_http_wants_it(address: str, line: str, host: str) -> None:
    request = build_request("GET", parse_url(address), {})
    assert request.head.decode() == f"{line}\r\nHost: {host}\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"X": "a\r\nEvil: 1"},
        {"X": "a\nb"},
        {"X": "\0"},
        {"X": "é"},
        {"a b": "c"},
        {"a:": "c"},
        {"": "c"},
        {"content-length": "9"},
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_headers_cannot_forge_a_request(headers: dict[str, str]) -> None:
    with pytest.raises(HeaderError) as caught:
        build_request("GET", parse_url("http://a.example/"), headers)
    assert caught.value.name == next(iter(headers))


def test_a_method_cannot_either() -> None:
    with pytest.raises(ValueError, match="not an HTTP method"):
        build_request("GET / HTTP/1.1\r\nX:", parse_url("http://a.example/"), {})


async def test_a_host_header_of_the_caller_replaces_ours() -> None:
    async with Peer() as peer, HttpClient() as client:
        await fetch(client, get(peer.url(), host="other.example"))

    assert peer.requests[0].lower().count(b"host:") == 1
    assert b"host: other.example\r\n" in peer.requests[0]


# --- what comes back ------------------------------------------------------------------------------------


async def test_a_reply_tells_status_reason_and_headers() -> None:
    answer = b"HTTP/1.1 404 Not  Here\r\nX-A: 1 \r\nx-a:2\r\nEmpty:\r\nContent-Length: 0\r\n\r\n"
    async with Peer(answer) as peer, HttpClient() as client, await client.send(get(peer.url())) as reply:
        assert (reply.status, reply.reason) == (404, "Not  Here")
        assert reply.headers == {"x-a": "1, 2", "empty": "", "content-length": "0"}


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (HEAD + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n", b"hello"),
        (HEAD + b"\r\nto the end", b"to the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", b"old"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", b""),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
async def test_a_body_ends_where_http_says(answer: bytes, body: bytes) -> None:
    status, got, whole = await answer_to(answer)
    assert (got, whole) == (body, True)
    assert status in (200, 204, 304)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2 \r\nok\r\n0\r\n\r\n", b"ok"),
        (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n", b"ok"),
    ],
)
async def test_a_sloppy_answer_is_understood_as_by_others(answer: bytes, body: bytes) -> None:
    assert await answer_to(answer) == (200, body, True)


async def test_hints_before_the_answer_are_skipped() -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX: 1\r\n\r\n"
    async with Peer(hints + OK) as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        assert (reply.status, reply.reason, reply.headers) == (200, "OK", {"content-length": "2"})
        assert await reply.read(10) == b"ok"
        assert await fetch(client, get(peer.url())) == b"ok"

    assert peer.connections == 1


async def test_the_reply_to_head_has_no_body_whatever_it_says() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    assert await answer_to(answer, "HEAD") == (200, b"", True)
    assert await answer_to(answer + b"forged", "HEAD") == (200, b"", True)


async def test_beyond_the_limit_only_the_beginning_is_read() -> None:
    async def flood(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"\r\n")
        while True:
            await line.send(b"x" * 10_000)

    async with Peer(flood) as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        assert (await reply.read(50_000), reply.whole) == (b"x" * 50_000, False)
        await peer.gone.acquire()


async def test_pieces_are_given_out_as_they_arrive() -> None:
    read = asyncio.Event()

    async def trickle(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await read.wait()
        await line.send(b"3\r\ntwo\r\n0\r\n\r\n")
        await line.until_left()

    async with Peer(trickle) as peer, HttpClient() as client, await client.send(get(peer.url())) as reply:
        parts = reply.parts()
        assert await anext(parts) == b"one"
        read.set()
        assert [part async for part in parts] == [b"two"]


async def test_a_reply_that_was_closed_cannot_be_read() -> None:
    async with Peer() as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        await reply.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await reply.read(10)


# --- compression ----------------------------------------------------------------------------------------


def packed(encoding: str, data: bytes) -> bytes:
    return HEAD + f"Content-Encoding: {encoding}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(b"hello") + RAW.flush()


@pytest.mark.parametrize(
    ("encoding", "data", "body"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0), b"hello"),
        ("X-GZIP", gzip.compress(b"hello", mtime=0), b"hello"),
        ("deflate", zlib.compress(b"hello"), b"hello"),
        ("deflate", RAW_DEFLATE, b"hello"),
        ("identity", b"hello", b"hello"),
        ("gzip", gzip.compress(b"hello", mtime=0) + b"what follows is left alone", b"hello"),
        ("gzip", b"", b""),
    ],
)
async def test_a_compressed_body_is_unpacked(encoding: str, data: bytes, body: bytes) -> None:
    assert await answer_to(packed(encoding, data)) == (200, body, True)


@pytest.mark.parametrize(
    "data", [gzip.compress(b"hello" * 1000, mtime=0)[:-9], gzip.compress(b"hello", mtime=0)[:5]]
)
async def test_a_compressed_body_that_is_cut_is_an_error(data: bytes) -> None:
    error = await failure_of(packed("gzip", data))
    assert (error.kind, str(error)) == ("closed", "the compressed body was cut")


async def test_a_compressed_body_that_is_none_is_an_error() -> None:
    error = await failure_of(packed("gzip", b"not packed at all"))
    assert (error.kind, str(error)) == ("protocol", "its compressed body is broken")
    assert (await failure_of(packed("deflate", b"\xff\xff\xff"))).kind == "protocol"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_what_was_not_offered_is_refused(encoding: str) -> None:
    error = await failure_of(packed(encoding, b"?"))
    assert (error.kind, str(error)) == ("protocol", f"it sent {encoding!r} data although none was offered")


async def test_a_body_that_explodes_comes_in_pieces_that_a_limit_stops() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, mtime=0)
    assert await answer_to(packed("gzip", bomb), limit=100_000) == (200, b"\0" * 100_000, False)
    async with (
        Peer(packed("gzip", bomb)) as peer,
        HttpClient() as client,
        await client.send(get(peer.url())) as reply,
    ):
        assert max([len(part) async for part in reply.parts()]) <= 256 * 1024


@pytest.mark.parametrize("filler", [b"x" * 100_000, b"\x00\x00\x00\xff\xff" * 20_000])
async def test_compressed_data_that_leads_nowhere_is_given_up(filler: bytes) -> None:
    pack = zlib.compressobj(wbits=31)
    start = pack.compress(b"hello") + pack.flush(zlib.Z_SYNC_FLUSH)
    if filler.startswith(b"x"):
        start += pack.flush()

    async def go_on(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Content-Encoding: gzip\r\n\r\n" + start)
        while True:
            await line.send(filler)

    async with Peer(go_on) as peer, HttpClient() as client:
        with pytest.raises(HttpError, match="leads nowhere"):
            await fetch(client, get(peer.url()))
        await peer.gone.acquire()


# --- answers that are none ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\nx",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nx",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhi",
        b"HTTP/1.1 101 Switching\r\n\r\nhi",
    ],
)
async def test_an_answer_that_is_no_http_is_an_error(answer: bytes) -> None:
    error = await failure_of(answer)
    assert error.kind == "protocol"
    assert str(error).startswith("its answer is malformed (")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "the connection ended without an answer"),
        (b"HTTP/1.1 200", "the connection ended before its answer was complete"),
        (HEAD + b"Content-Length: 9\r\n\r\nhalf", "the connection ended before its answer was complete"),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf",
            "the connection ended before its answer was complete",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "the connection ended before its answer was complete"),
    ],
)
async def test_an_answer_that_stops_early_is_an_error(answer: bytes, text: str) -> None:
    error = await failure_of(answer)
    assert (error.kind, str(error)) == ("closed", text)


async def test_what_came_before_a_failure_is_not_lost() -> None:
    cut = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
    async with Peer(cut) as peer, HttpClient() as client, await client.send(get(peer.url())) as reply:
        parts = reply.parts()
        assert await anext(parts) == b"hello"
        with pytest.raises(HttpError):
            await anext(parts)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrailer: ",
    ],
)
async def test_heads_and_trailers_without_end_are_cut_off(start: bytes) -> None:
    filler = b"a: b\r\n" * 500 if start.endswith(b"OK\r\n") else b"a" * 3000

    async def flood(line: Line) -> None:
        await line.request()
        await line.send(start)
        while True:
            await line.send(filler)

    async with Peer(flood) as peer, HttpClient() as client:
        with pytest.raises(HttpError, match="headers have no end"):
            await fetch(client, get(peer.url()))
        await peer.gone.acquire()


async def test_hints_may_come_as_long_as_the_caller_has_patience() -> None:
    async def flood(line: Line) -> None:
        await line.request()
        while True:
            await line.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    async with Peer(flood) as peer, HttpClient() as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await fetch(client, get(peer.url()))
        await peer.gone.acquire()


async def test_many_small_chunks_are_no_endless_head() -> None:
    chunks = b"1\r\nx\r\n" * MAX_BARREN_BYTES
    assert (await answer_to(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"))[2]


# --- time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\nhalf"])
async def test_a_server_that_falls_silent_is_given_up(start: bytes) -> None:
    async def fall_silent(line: Line) -> None:
        await line.request()
        await line.send(start)
        await line.until_left()

    async with Peer(fall_silent) as peer, HttpClient(silence=0.05) as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(peer.url()))
        await peer.gone.acquire()

    assert (caught.value.kind, str(caught.value)) == ("silence", "nothing came for 0.05 s")


async def test_nobody_at_the_address_is_an_error() -> None:
    async with Peer() as peer:
        url = peer.url()
    async with HttpClient() as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(url))
    assert caught.value.kind == "refused"


async def test_a_host_that_does_not_exist_is_an_error() -> None:
    async with HttpClient() as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(parse_url("http://no-such-host.invalid/")))
    assert caught.value.kind == "dns"
