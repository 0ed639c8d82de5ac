from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import uvloop
from tests.http.certificates import Authority
from tests.http.peer import HEAD, OK, Line, Peer, fetch, get, in_thread, post

from robota.http.client import HttpClient
from robota.http.connection import HIGH_WATER, Connection
from robota.http.errors import HttpError

pytestmark = pytest.mark.anyio

BOTH_LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


# --- kept connections -----------------------------------------------------------------------------------


async def test_one_connection_serves_one_request_after_another() -> None:
    async with Peer() as peer, HttpClient() as client:
        for body in (b"one", b"two", b"three"):
            assert await fetch(client, post(peer.url()), body, repeatable=True) == b"ok"

    assert (peer.connections, [request[-3:] for request in peer.requests]) == (1, [b"one", b"two", b"ree"])


async def test_one_more_is_opened_for_what_goes_on_at_the_same_time_and_the_last_used_is_next() -> None:
    async with Peer() as peer, HttpClient() as client:
        first = await client.send(get(peer.url("/1")))
        assert await fetch(client, get(peer.url("/2"))) == b"ok"
        await first.read(10)
        for number in range(3, 6):
            await fetch(client, get(peer.url(f"/{number}")))

    assert (peer.connections, len(peer.requests)) == (2, 5)


async def test_each_server_has_connections_of_its_own() -> None:
    async with Peer() as one, Peer() as other, HttpClient() as client:
        for peer in (one, other, one, other):
            await fetch(client, get(peer.url()))

    assert (one.connections, other.connections) == (1, 1)


async def test_a_reply_that_is_not_read_to_its_end_costs_its_connection() -> None:
    async with Peer(HEAD + b"Content-Length: 100\r\n\r\nonly the beginning") as peer, HttpClient() as client:
        for _ in range(2):
            async with await client.send(get(peer.url())) as reply:
                assert reply.status == 200
            await peer.gone.acquire()

    assert peer.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ],
)
async def test_a_connection_whose_server_will_not_go_on_is_not_kept(answer: bytes) -> None:
    async with Peer(answer) as peer, HttpClient() as client:
        for _ in range(2):
            assert await fetch(client, get(peer.url())) == b"ok"
            await peer.gone.acquire()

    assert peer.connections == 2


async def test_a_refusal_before_the_request_was_sent_whole_costs_the_connection() -> None:
    async def refuse(line: Line) -> None:
        await line.reader.readuntil(b"\r\n\r\n")
        await line.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await line.until_left()

    async with Peer(refuse) as peer, HttpClient() as client:
        for _ in range(2):
            async with await client.send(post(peer.url()), b"x" * 50_000_000) as reply:
                assert reply.status == 413

    assert peer.connections == 2


async def test_a_connection_that_nobody_took_for_long_is_closed() -> None:
    async with Peer() as peer, HttpClient(keep_alive=0.02) as client:
        first = await client.send(get(peer.url()))
        await fetch(client, get(peer.url()))
        await first.read(10)
        await peer.gone.acquire()
        await peer.gone.acquire()
        await fetch(client, get(peer.url()))

    assert peer.connections == 3


async def test_a_connection_that_has_waited_too_long_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Peer() as peer, HttpClient() as client:
        await fetch(client, get(peer.url()))
        later = asyncio.get_running_loop().time() + 61
        monkeypatch.setattr("time.monotonic", lambda: later)
        await fetch(client, get(peer.url()))

    assert peer.connections == 2


# --- between two requests -------------------------------------------------------------------------------


async def test_a_connection_that_the_server_closed_is_replaced() -> None:
    async with Peer(OK, hang_up=True) as peer, HttpClient() as client:
        for _ in range(3):
            assert await fetch(client, get(peer.url())) == b"ok"
            await peer.gone.acquire()

    assert peer.connections == 3


class Forgetful:
    """Answers the first `answers` requests of a connection; on the next one it hangs up, or half answers."""

    def __init__(self, answers: int, last: bytes = b"") -> None:
        self.answers = answers
        self.last = last
        self.requests = 0

    async def __call__(self, line: Line) -> None:
        for _ in range(self.answers):
            await line.request()
            self.requests += 1
            await line.send(OK)
        await line.request()
        self.requests += 1
        await line.send(self.last)


async def test_a_request_that_met_a_closing_connection_is_sent_once_more() -> None:
    forgetful = Forgetful(answers=1)
    async with Peer(forgetful) as peer, HttpClient() as client:
        assert [await fetch(client, post(peer.url()), b"x", repeatable=True) for _ in range(3)] == [b"ok"] * 3

    assert (peer.connections, forgetful.requests) == (3, 5)


@pytest.mark.parametrize(
    ("answers", "last"),
    [
        (0, b""),  # a first request never was on a kept connection
        (1, b"HTTP/1.1 2"),  # an answer had begun
    ],
)
async def test_else_it_is_never_sent_twice(answers: int, last: bytes) -> None:
    forgetful = Forgetful(answers, last)
    async with Peer(forgetful) as peer, HttpClient() as client:
        for _ in range(answers):
            await fetch(client, post(peer.url()), b"x", repeatable=True)
        with pytest.raises(HttpError) as caught:
            await fetch(client, post(peer.url()), b"x", repeatable=True)

    assert (forgetful.requests, caught.value.kind) == (answers + 1, "closed")


async def test_what_must_not_be_done_twice_gets_a_new_connection() -> None:
    forgetful = Forgetful(answers=1)
    async with Peer(forgetful) as peer, HttpClient() as client:
        await fetch(client, get(peer.url()))
        for _ in range(2):
            assert await fetch(client, post(peer.url()), b"x") == b"ok"

    assert (peer.connections, forgetful.requests) == (3, 3)


async def test_a_silent_server_is_not_asked_again() -> None:
    async def answer_once(line: Line) -> None:
        await line.request()
        await line.send(OK)
        await line.until_left()

    async with Peer(answer_once) as peer, HttpClient(silence=0.05) as client:
        await fetch(client, get(peer.url()))
        with pytest.raises(HttpError, match="nothing came"):
            await fetch(client, post(peer.url()), repeatable=True)

    assert peer.connections == 1


@pytest.mark.parametrize("stray", [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", b"x", b"\r\n\r\nx"])
async def test_bytes_after_a_reply_close_the_connection_and_answer_nobody(stray: bytes) -> None:
    async with Peer(OK + stray) as peer, HttpClient() as client:
        for _ in range(2):
            async with await client.send(get(peer.url())) as reply:
                assert (reply.status, await reply.read(10)) == (200, b"ok")
            await peer.gone.acquire()

    assert peer.connections == 2


@pytest.mark.parametrize("closed_before", [True, False])
async def test_bytes_that_come_later_close_it_too(closed_before: bool) -> None:
    speak = asyncio.Event()

    async def speak_up(line: Line) -> None:
        await line.request()
        await line.send(OK)
        await speak.wait()
        await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await line.until_left()

    async with Peer(speak_up) as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        parts = reply.parts()
        assert await anext(parts) == b"ok"
        if closed_before:
            await reply.aclose()
        speak.set()
        await peer.gone.acquire()
        await reply.aclose()
        assert await fetch(client, get(peer.url())) == b"ok"

    assert peer.connections == 2


# --- back-pressure --------------------------------------------------------------------------------------


@pytest.mark.parametrize("secure", [False, True])
async def test_a_reader_that_pauses_makes_the_server_wait(authority: Authority, secure: bool) -> None:
    tls = authority.server("localhost") if secure else None
    size = 50_000_000

    async def flood(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Content-Length: %d\r\n\r\n" % size + b"x" * size)
        await line.until_left()

    async with (
        Peer(flood, tls=tls) as peer,
        HttpClient(tls=authority.client()) as client,
        await client.send(get(peer.url(host="localhost"))) as reply,
    ):
        connection = reply._source
        assert isinstance(connection, Connection)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert connection._paused
        assert sum(map(len, connection.parts)) <= HIGH_WATER + 256 * 1024
        assert sum([len(part) async for part in reply.parts()]) == size


# --- cancellation ---------------------------------------------------------------------------------------


async def test_a_request_cancelled_at_any_moment_leaves_no_connection_behind() -> None:
    async def slowly(line: Line) -> None:
        while True:
            await line.request()
            for piece in (b"HTTP/1.1 200 OK\r\n", b"Content-Length: 4\r\n", b"\r\nok", b"ok"):
                await line.send(piece)
                await asyncio.sleep(0)

    async with Peer(slowly) as peer:
        async with HttpClient() as client:
            outcomes = set()
            for turns in range(60):
                if turns % 2:
                    await fetch(client, get(peer.url()))  # so that half of them meet a kept connection
                asking = asyncio.ensure_future(fetch(client, post(peer.url()), b"body"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                outcomes.add(asking.cancelled())
                [pool] = [pool for known in client._pools.values() if (pool := known())] or [None]
                assert pool is None or not pool.busy
            assert await fetch(client, get(peer.url())) == b"okok"
        for _ in range(peer.connections):
            await peer.gone.acquire()

    assert outcomes == {True, False}


async def test_cancelling_while_a_body_arrives_closes_the_connection() -> None:
    async def half(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Content-Length: 9\r\n\r\nhalf")
        await line.until_left()

    async with Peer(half) as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        reading = asyncio.ensure_future(reply.read(10))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
        await peer.gone.acquire()

    assert reading.cancelled()


async def test_cancelling_while_connecting_closes_the_socket() -> None:
    greeted = asyncio.Event()

    async def mute(line: Line) -> None:
        await line.reader.readexactly(1)  # the first byte of a handshake that will not go on
        greeted.set()
        await line.until_left()

    async with Peer(mute) as peer, HttpClient() as client:
        url = peer.url()
        secure = type(url)("https", "localhost", url.port, "/")
        asking = asyncio.ensure_future(fetch(client, get(secure)))
        await greeted.wait()
        asking.cancel()
        await asyncio.wait([asking])
        await peer.gone.acquire()


async def test_a_reply_that_was_closed_reads_nothing_of_the_next_one() -> None:
    async with Peer() as peer, HttpClient() as client:
        first = await client.send(get(peer.url()))
        late = first.parts()
        assert await anext(late) == b"ok"
        await first.aclose()
        second = await client.send(get(peer.url()))
        with pytest.raises(RuntimeError, match="closed"):
            await anext(late)
        assert await second.read(10) == b"ok"

    assert peer.connections == 1


async def test_closing_a_reply_wakes_whoever_waits_for_more_of_it() -> None:
    async def half(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Content-Length: 9\r\n\r\nhalf")
        await line.until_left()

    async with Peer(half) as peer, HttpClient() as client:
        reply = await client.send(get(peer.url()))
        parts = reply.parts()
        assert await anext(parts) == b"half"
        waiting = asyncio.ensure_future(anext(parts))
        await asyncio.sleep(0)
        await reply.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await waiting


async def test_closing_the_client_closes_what_is_kept_and_what_is_in_use() -> None:
    async def half(line: Line) -> None:
        await line.request()
        await line.send(OK)
        await line.request()
        await line.send(HEAD + b"\r\nhalf")
        await line.until_left()

    async with Peer(half) as peer:
        client = HttpClient()
        await fetch(client, get(peer.url()))
        reply = await client.send(get(peer.url()))
        parts = reply.parts()
        assert await anext(parts) == b"half"
        await client.aclose()
        await peer.gone.acquire()
        with pytest.raises(HttpError, match="connection was closed"):
            await anext(parts)
        await reply.aclose()


# --- event loops ----------------------------------------------------------------------------------------


def on_a_loop(new_loop: Callable[[], asyncio.AbstractEventLoop], work: Callable[[], Awaitable[None]]) -> None:
    loop = new_loop()
    try:
        loop.run_until_complete(work())  # type: ignore[arg-type]
    finally:
        loop.close()


@BOTH_LOOPS
def test_the_same_client_serves_one_event_loop_after_another(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    client = HttpClient()
    bodies: list[bytes] = []

    async def ask() -> None:
        async with Peer() as peer:
            bodies.extend([await fetch(client, get(peer.url())) for _ in range(2)])
            assert peer.connections == 1
            await client.aclose()
            await peer.gone.acquire()

    for _ in range(3):
        on_a_loop(new_loop, ask)
    assert bodies == [b"ok"] * 6


@BOTH_LOOPS
def test_loops_that_are_gone_leave_neither_themselves_nor_connections(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    client = HttpClient()
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def ask_and_forget() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        assert await fetch(client, get(peer.url())) == b"ok"

    peer = Peer()
    with in_thread(peer) as run_there, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # nobody closed the client: so much is right
        for _ in range(5):
            on_a_loop(new_loop, ask_and_forget)
        gc.collect()
        for _ in range(5):
            run_there(peer.gone.acquire())  # its sockets are closed

    assert [loop() for loop in loops] == [None] * 5
    assert len(client._pools) == 0


async def test_connections_of_a_loop_in_another_thread_are_closed_too() -> None:
    async with Peer() as peer:
        client = HttpClient()
        other = asyncio.new_event_loop()
        thread = threading.Thread(target=other.run_forever)
        thread.start()
        asking = asyncio.run_coroutine_threadsafe(fetch(client, get(peer.url())), other)
        assert await asyncio.wrap_future(asking) == b"ok"
        await client.aclose()
        await peer.gone.acquire()
        other.call_soon_threadsafe(other.stop)
        await asyncio.to_thread(thread.join)
        other.close()


def test_everything_works_on_uvloop() -> None:
    async def ask() -> None:
        body = b"x" * 3_000_000
        async with Peer(HEAD + b"Content-Length: 3000000\r\n\r\n" + body) as peer, HttpClient() as client:
            for _ in range(2):
                assert await fetch(client, post(peer.url()), body, repeatable=True) == body
            asking = asyncio.ensure_future(fetch(client, post(peer.url()), body, repeatable=True))
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            with pytest.raises(HttpError) as caught:
                await fetch(client, get(type(peer.url())("http", "no-such-host.invalid", 80, "/")))
            assert caught.value.kind == "dns"
        assert peer.connections == 1

    on_a_loop(uvloop.new_event_loop, ask)


async def test_a_server_that_gave_up_on_an_idle_connection_gets_the_request_over_a_new_one() -> None:
    async def tire(line: Line) -> None:
        await line.request()
        await line.send(OK)
        if peer.connections == 1:
            await line.request()
            await line.send(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async with Peer(tire) as peer, HttpClient() as client:
        assert [await fetch(client, get(peer.url())) for _ in range(2)] == [b"ok", b"ok"]

    assert peer.connections == 2


@pytest.mark.skipif(sys.platform == "win32", reason="has no such limit")
async def test_a_process_that_may_open_nothing_more_is_told_so() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Peer() as peer, HttpClient() as client:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")), hard))
        opened = []
        try:
            with suppress(OSError):
                while True:
                    opened.append(os.open(os.devnull, os.O_RDONLY))
            for host in ("127.0.0.1", "service.example"):
                with pytest.raises(HttpError) as caught:
                    await fetch(client, get(peer.url(host=host)))
                assert (caught.value.kind, str(caught.value)) == ("descriptors", "Too many open files")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for descriptor in opened:
                os.close(descriptor)
