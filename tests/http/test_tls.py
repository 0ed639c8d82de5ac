from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from tests.http.certificates import Authority
from tests.http.peer import HEAD, OK, Line, Peer, fetch, get, post

from robota.http.client import HttpClient
from robota.http.dial import trusting_context
from robota.http.errors import HttpError

pytestmark = pytest.mark.anyio


async def ask(peer: Peer, host: str = "localhost", trust: ssl.SSLContext | None = None) -> bytes:
    async with HttpClient(tls=trust) as client:
        return await fetch(client, get(peer.url(host=host)))


async def test_a_reply_comes_over_tls_and_the_connection_is_kept(authority: Authority) -> None:
    async with (
        Peer(tls=authority.server("localhost")) as peer,
        HttpClient(tls=authority.client()) as client,
    ):
        for body in (b"x", b"y" * 3_000_000):
            assert await fetch(client, post(peer.url(host="localhost")), body, repeatable=True) == b"ok"

    assert (peer.connections, len(peer.requests[1])) > (1, 3_000_000)


async def test_a_certificate_for_another_host_is_refused(authority: Authority) -> None:
    async with Peer(tls=authority.server("other.example")) as peer:
        with pytest.raises(HttpError, match=r"not valid for 'localhost'") as caught:
            await ask(peer, trust=authority.client())
    assert (caught.value.kind, peer.requests) == ("certificate", [])


async def test_a_certificate_of_an_unknown_authority_is_refused(
    authority: Authority, fresh_trust: pytest.MonkeyPatch
) -> None:
    async with Peer(tls=authority.server("localhost")) as peer:
        with pytest.raises(HttpError) as caught:
            await ask(peer)
    assert (caught.value.kind, peer.requests) == ("certificate", [])


async def test_an_address_is_a_name_too(authority: Authority) -> None:
    async with Peer(tls=authority.server("127.0.0.1")) as peer:
        assert await ask(peer, "127.0.0.1", authority.client()) == b"ok"


async def test_an_international_name_is_checked_in_its_own_form(authority: Authority) -> None:
    from robota.http.address import AddressPolicy
    from robota.http.url import canonical_host

    async def resolve(host: str, port: int) -> list[str]:
        assert host == "xn--bcher-kva.example"
        return ["127.0.0.1"]

    policy = AddressPolicy(("*",))
    async with (
        Peer(tls=authority.server("bücher.example")) as peer,
        HttpClient(tls=authority.client(), policy=policy, resolve=resolve) as client,
    ):
        assert await fetch(client, get(peer.url(host=canonical_host("Bücher.example")))) == b"ok"
    assert f"Host: xn--bcher-kva.example:{peer.port}\r\n".encode() in peer.requests[0]


# --- whom to trust --------------------------------------------------------------------------------------


async def test_the_system_is_asked_whom_to_trust(
    authority: Authority, fresh_trust: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paths = ssl.get_default_verify_paths()
    system = paths._replace(openssl_cafile=str(authority.file), openssl_capath=str(tmp_path))
    fresh_trust.setattr(ssl, "get_default_verify_paths", lambda: system)
    async with Peer(tls=authority.server("localhost")) as peer:
        assert await ask(peer) == b"ok"


async def test_an_empty_directory_of_the_system_is_as_good_as_none(
    authority: Authority, fresh_trust: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "README").touch()
    paths = ssl.get_default_verify_paths()
    system = paths._replace(openssl_cafile=str(tmp_path / "none"), openssl_capath=str(tmp_path))
    fresh_trust.setattr(ssl, "get_default_verify_paths", lambda: system)
    fresh_trust.setattr("robota.http.dial._USUAL_FILES", (str(tmp_path / "nor here"), str(authority.file)))
    async with Peer(tls=authority.server("localhost")) as peer:
        assert await ask(peer) == b"ok"


async def test_a_file_named_by_the_environment_is_trusted(
    authority: Authority, fresh_trust: pytest.MonkeyPatch
) -> None:
    fresh_trust.setenv("SSL_CERT_FILE", str(authority.file))
    async with Peer(tls=authority.server("localhost")) as peer:
        assert await ask(peer) == b"ok"


@pytest.mark.system  # the program `openssl` says how the file has to be called
async def test_a_directory_named_by_the_environment_is_trusted(
    authority: Authority, fresh_trust: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority.into(tmp_path)
    fresh_trust.setenv("SSL_CERT_DIR", str(tmp_path))
    async with Peer(tls=authority.server("localhost")) as peer:
        assert await ask(peer) == b"ok"


async def test_the_environment_is_asked_again_for_each_connection(
    authority: Authority, fresh_trust: pytest.MonkeyPatch
) -> None:
    async with Peer(tls=authority.server("localhost")) as peer:
        with pytest.raises(HttpError):
            await ask(peer)
        fresh_trust.setenv("SSL_CERT_FILE", str(authority.file))
        assert await ask(peer) == b"ok"


async def test_a_file_that_cannot_be_read_is_told(fresh_trust: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing.pem", tmp_path / "empty.pem"
    empty.write_text("no certificate\n")
    for file, why in (
        (missing, "No such file or directory"),
        (empty, "it holds no certificates in PEM form"),
    ):
        fresh_trust.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(HttpError) as caught:
            trusting_context()
        assert caught.value.kind == "trust"
        assert str(caught.value) == f"SSL_CERT_FILE names {file}, which cannot be used: {why}"


async def test_a_directory_that_is_none_is_told(fresh_trust: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh_trust.setenv("SSL_CERT_DIR", str(tmp_path / "missing"))
    with pytest.raises(HttpError) as caught:
        trusting_context()
    assert caught.value.kind == "trust"
    assert str(caught.value) == f"SSL_CERT_DIR names {tmp_path / 'missing'}, which is not a directory"


def test_plain_http_loads_no_certificates() -> None:
    code = (
        "import asyncio, ssl\n"
        "from robota.http.client import HttpClient\n"
        "from robota.http.errors import HttpError\n"
        "from robota.http.exchange import build_request\n"
        "from robota.http.url import Url\n"
        "def fail(*_): raise SystemExit('a context was made')\n"
        "ssl.SSLContext.load_verify_locations = ssl.SSLContext.load_default_certs = fail\n"
        "async def main():\n"
        "    async with HttpClient() as client:\n"
        "        try: await client.send(build_request('GET', Url('http', '127.0.0.1', 9, '/'), {}))\n"
        "        except HttpError as error: print(error.kind)\n"
        "asyncio.run(main())\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=clean)
    assert done.stdout.strip() == "refused"


# --- a handshake or a stream that fails -----------------------------------------------------------------


async def test_a_server_that_does_not_speak_tls_is_told() -> None:
    async def greet(line: Line) -> None:
        await line.send(b"220 mail.example ready\r\n")
        await line.until_left()

    async with Peer(greet) as peer, HttpClient() as client:
        url = type(peer.url())("https", "127.0.0.1", peer.port, "/")
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(url))
        await peer.gone.acquire()
    assert caught.value.kind == "tls"


async def test_a_handshake_that_does_not_end_is_given_up_and_leaves_no_connection() -> None:
    async with Peer(Line.until_left) as peer, HttpClient(connect_seconds=0.05) as client:
        url = type(peer.url())("https", "127.0.0.1", peer.port, "/")
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(url))
        await peer.gone.acquire()
    assert (caught.value.kind, str(caught.value)) == ("connect_timeout", "no connection came about in time")


async def test_a_broken_record_is_the_end_of_the_connection(authority: Authority) -> None:
    async def break_off(line: Line) -> None:
        await line.request()
        await line.send(HEAD + b"Content-Length: 9\r\n\r\nhalf")
        raw = line.writer.transport._ssl_protocol._transport
        raw.write(b"\x17\x03\x03\x00\x20" + b"x" * 32)
        await line.until_left()

    async with Peer(break_off, tls=authority.server("localhost")) as peer:
        with pytest.raises(HttpError) as caught:
            await ask(peer, trust=authority.client())
    assert caught.value.kind == "closed"


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_tls_on_other_loops(authority: Authority, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def work() -> None:
        async with (
            Peer(OK, tls=authority.server("localhost")) as peer,
            HttpClient(tls=authority.client()) as client,
        ):
            for _ in range(3):
                assert await fetch(client, get(peer.url(host="localhost"))) == b"ok"
        assert peer.connections == 1

    loop = new_loop()
    loop.run_until_complete(work())
    loop.close()
