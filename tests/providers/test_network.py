from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpcore2
import httpx2
import pytest
from anyio.abc import SocketStream
from anyio.streams.tls import TLSListener
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from robota.providers.wire.network import Stream
from robota.providers.wire.pool import Transport, find_transport

pytestmark = pytest.mark.anyio
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=60)
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Peer:
    """A server that notes what arrives with one read, and answers once a request is whole."""

    def __init__(self, answer: bytes = ANSWER, requests: int = 1000) -> None:
        self.answer = answer
        self.requests = requests
        """How many it answers on one connection."""
        self.packets: list[bytes] = []
        self.url = ""
        self.connections = 0
        self.ended = 0
        self.closed = anyio.Event()

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        with suppress(anyio.BrokenResourceError, anyio.EndOfStream):  # what some tests are about
            await self.converse(stream)
        self.ended += 1
        self.closed.set()

    async def converse(self, stream: SocketStream) -> None:
        received, answered = b"", 0
        async with stream:
            async for packet in stream:
                self.packets.append(packet)
                received += packet
                head, _, body = received.partition(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
                if b"\r\n\r\n" in received and len(body) >= length:
                    received = b""
                    if not self.answer:
                        return
                    await stream.send(self.answer)
                    answered += 1
                    if answered == self.requests:
                        return


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[Peer]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    peer.url = f"http://127.0.0.1:{port}/v1"
    async with anyio.create_task_group() as group:
        group.start_soon(listener.serve, peer.serve)
        yield peer
        group.cancel_scope.cancel()
    await listener.aclose()


def client() -> httpx2.AsyncClient:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.AsyncClient(transport=Transport(context, LIMITS), timeout=None)


async def test_head_and_body_of_a_request_arrive_together() -> None:
    async with listening(Peer()) as peer, client() as web:
        replies = [await web.post(peer.url, content=b"one"), await web.post(peer.url, content=b"two")]

    assert [reply.text for reply in replies] == ["hi", "hi"]
    assert [packet.partition(b"\r\n\r\n")[2] for packet in peer.packets] == [b"one", b"two"]


async def test_a_request_without_a_body_is_sent_before_its_reply_is_awaited() -> None:
    async with listening(Peer()) as peer, client() as web:
        reply = await web.get(peer.url)

    assert (reply.text, len(peer.packets)) == ("hi", 1)


async def test_a_long_body_goes_as_it_is() -> None:
    body = b"x" * 3_000_000
    async with listening(Peer()) as peer, client() as web:
        reply = await web.post(peer.url, content=body)

    assert reply.text == "hi"
    assert b"".join(peer.packets).endswith(b"\r\n\r\n" + body)


async def test_a_connection_that_ends_without_an_answer_is_an_error_of_httpx2() -> None:
    async with listening(Peer(answer=b"")) as peer, client() as web:
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await web.post(peer.url, content=b"one")


async def test_nobody_at_the_address_is_an_error_of_httpx2() -> None:
    async with listening(Peer()) as peer:
        address = peer.url
    async with client() as web:
        with pytest.raises(httpx2.ConnectError):
            await web.post(address, content=b"one")


async def test_a_timeout_of_the_request_counts() -> None:
    async with listening(Peer(answer=b"HTTP/1.1 200 OK\r\n")) as peer, client() as web:
        with pytest.raises(httpx2.ReadTimeout):
            await web.post(peer.url, content=b"one", timeout=0.01)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_left_to_httpx2(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    without = find_transport(context, LIMITS)
    monkeypatch.setenv(variable, "http://127.0.0.1:9")

    assert isinstance(without, Transport)
    assert find_transport(context, LIMITS) is None


async def test_the_library_still_shows_the_stream_that_is_read_without_a_detour() -> None:
    async with listening(Peer()) as peer:
        port = int(peer.url.removesuffix("/v1").rpartition(":")[2])
        inner = await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", port)
        stream = Stream(inner)

        assert stream._bytes is not None
        await stream.aclose()


async def test_the_same_over_tls(tmp_path: Path) -> None:
    server, browser = contexts(tmp_path)
    peer = Peer()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    secure = TLSListener(listener, server, standard_compatible=False)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with (
        anyio.create_task_group() as group,
        httpx2.AsyncClient(transport=Transport(browser, LIMITS), timeout=None) as web,
    ):
        group.start_soon(secure.serve, peer.serve)
        reply = await web.post(f"https://localhost:{port}/v1", content=b"one")
        group.cancel_scope.cancel()
    await secure.aclose()

    assert reply.text == "hi"
    assert [packet.partition(b"\r\n\r\n")[2] for packet in peer.packets] == [b"one"]


async def test_a_handshake_that_is_given_up_leaves_no_connection_open(tmp_path: Path) -> None:
    _, browser = contexts(tmp_path)
    greeted = anyio.Event()

    class Mute(Peer):
        async def converse(self, stream: SocketStream) -> None:
            async with stream:
                async for _ in stream:
                    greeted.set()

    async with listening(Mute()) as peer, anyio.create_task_group() as group:
        async with httpx2.AsyncClient(transport=Transport(browser, LIMITS), timeout=None) as web:
            group.start_soon(web.post, peer.url.replace("http://127.0.0.1", "https://localhost"))
            await greeted.wait()
            group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await peer.closed.wait()


async def test_a_broken_record_is_an_error_of_httpx2(tmp_path: Path) -> None:
    server, browser = contexts(tmp_path)

    class Broken(Peer):
        async def converse(self, stream: Any) -> None:
            await stream.receive()
            await stream.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
            await stream.transport_stream.send(b"\x17\x03\x03\x00\x20" + b"x" * 32)
            await stream.transport_stream.aclose()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    secure = TLSListener(listener, server, standard_compatible=False)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with (
        anyio.create_task_group() as group,
        httpx2.AsyncClient(transport=Transport(browser, LIMITS), timeout=None) as web,
    ):
        group.start_soon(secure.serve, Broken().serve)
        with pytest.raises(httpx2.ReadError):
            await web.post(f"https://localhost:{port}/v1", content=b"one")
        group.cancel_scope.cancel()
    await secure.aclose()


def contexts(place: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's with a certificate made for it, and a client's that trusts nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    chain, secret = place / "certificate", place / "key"
    chain.write_bytes(certificate.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain, secret)
    return server, ssl.create_default_context(cafile=str(chain))


async def test_a_connection_is_used_again_and_one_more_is_opened_for_what_goes_on_at_the_same_time() -> None:
    async with listening(Peer()) as peer, client() as web:
        async with web.stream("POST", peer.url, content=b"one") as first:
            async with web.stream("POST", peer.url, content=b"two") as second:
                await second.aread()
            await first.aread()
        for body in (b"three", b"four"):
            await web.post(peer.url, content=body)

    assert peer.connections == 2


async def test_a_reply_that_is_not_read_to_its_end_costs_its_connection() -> None:
    long = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly the beginning"
    async with listening(Peer(answer=long)) as peer, client() as web:
        for _ in range(2):
            async with web.stream("POST", peer.url, content=b"one") as reply:
                assert reply.status_code == 200
            await peer.closed.wait()
            peer.closed = anyio.Event()

    assert (peer.connections, peer.ended) == (2, 2)


async def test_a_connection_that_the_server_closed_is_replaced() -> None:
    async with listening(Peer(requests=1)) as peer, client() as web:
        for _ in range(3):
            await web.post(peer.url, content=b"one")
            await peer.closed.wait()
            peer.closed = anyio.Event()

    assert peer.connections == 3


async def test_cancelling_closes_the_connection() -> None:
    async with (
        listening(Peer(answer=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n")) as peer,
        client() as web,
    ):
        with anyio.CancelScope() as scope:
            async with web.stream("POST", peer.url, content=b"one") as reply:
                scope.cancel()
                await reply.aread()
        await peer.closed.wait()

    assert scope.cancelled_caught


async def test_closing_the_client_closes_what_is_kept_and_what_is_in_use() -> None:
    async with listening(Peer()) as peer:
        web = client()
        await web.post(peer.url, content=b"one")
        open_reply = await web.send(web.build_request("POST", peer.url, content=b"two"), stream=True)
        await web.aclose()
        await peer.closed.wait()
        await open_reply.aclose()

    assert (peer.connections, peer.ended) == (1, 1)


async def test_connections_that_nobody_took_for_long_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(Peer()) as peer, client() as web:
        async with web.stream("POST", peer.url, content=b"one") as first:
            await web.post(peer.url, content=b"two")
            later = time.monotonic() + 61
            monkeypatch.setattr("time.monotonic", lambda: later)
            await first.aread()
        await peer.closed.wait()

    assert (peer.connections, peer.ended) == (2, 1)


async def test_a_request_cancelled_at_any_moment_leaves_no_connection_behind() -> None:
    async with listening(Peer()) as peer:
        async with client() as web:
            await web.post(peer.url, content=b"one")
            for moments in range(40):
                asking = asyncio.ensure_future(web.post(peer.url, content=b"two"))
                for _ in range(moments):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
                pool = web._transport._pool  # type: ignore[attr-defined]  # ours
                assert pool._busy == set()
            assert (await web.post(peer.url, content=b"three")).text == "hi"
        with anyio.fail_after(30):
            while peer.ended < peer.connections:
                await peer.closed.wait()
                peer.closed = anyio.Event()

    assert peer.connections > 1
