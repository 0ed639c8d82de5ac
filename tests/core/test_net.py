from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from robota.core.errors import NetworkError, ValidationError
from robota.core.http1 import send_request
from robota.core.net import (
    AddressPolicy,
    Url,
    describe_special,
    host_matches,
    judge_redirect,
    parse_url,
    resolve_checked,
)

# --- one meaning per URL --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org.:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:80", "http://example.org/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("http://example.org:/x", "http://example.org/x"),
        ("http://example.org?q", "http://example.org/?q"),
        ("http://Bücher.de/é", "http://xn--bcher-kva.de/%C3%A9"),
        ("http://ｅxample。org/", "http://example.org/"),
        ("http://[::FFFF:127.0.0.1]:8080/", "http://[::ffff:127.0.0.1]:8080/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://a_b.example.org/<x>", "http://a_b.example.org/%3Cx%3E"),
    ],
)
def test_a_url_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_url(text)) == canonical
    assert str(parse_url(canonical)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http:example.org",
        "http:///example.org",
        "http://",
        "http://good.org@evil.org/",
        "http://user:secret@example.org/",
        "http://good.org\\@evil.org/",
        "http:\\\\example.org",
        "http://exam ple.org/",
        " http://example.org/",
        "http://example.org/\n",
        "http://example.org\0.evil.org/",
        "http://example.org/\u202egnp",
        "http://example.org/\ud800",
        "http://%65xample.org/",
        "http://a..b/",
        "http://-a.org/",
        "http://℀.org/",
        "http://faß.de/",
        "http://[fe80::1%25eth0]/",
        "http://[::1/",
        "http://::1/",
        "http://1.2.3.4.5/",
        "http://256.0.0.1/",
        "http://host.1/",
        "http://08.1/",
        "http://4294967296/",
        "http://example.org:0/",
        "http://example.org:65536/",
        "http://example.org:8o/",
        "http://example.org:80:80/",
        "http://" + "a." * 127 + "aa/",
        "http://example.org/" + "x" * 9000,
    ],
)
def test_a_url_that_can_be_misread_is_refused(text: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        parse_url(text)
    assert refusal.value.field == "url"


@pytest.mark.parametrize(
    ("rule", "host", "matches"),
    [
        ("example.org", "example.org", True),
        ("Example.ORG.", "example.org", True),
        ("example.org", "notexample.org", False),
        ("example.org", "example.org.evil.com", False),
        ("example.org", "www.example.org", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("api.*.org", "api.example.org", True),
        ("api.*.org", "api.a.b.org", False),
        ("*", "anything.at.all", True),
        ("bücher.de", "xn--bcher-kva.de", True),
        ("[::1]", "::1", True),
        ("127.0.0.1", "127.0.0.1", True),
    ],
)
def test_host_rules_match_whole_labels(rule: str, host: str, matches: bool) -> None:
    assert host_matches(rule, host) is matches


# --- which addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "meaning"),
    [
        ("127.0.0.1", "this machine"),
        ("127.255.0.9", "this machine"),
        ("::1", "this machine"),
        ("::ffff:127.0.0.1", "this machine"),
        ("2002:7f00:0001::", "this machine"),
        ("64:ff9b::127.0.0.1", "this machine"),
        ("0.0.0.0", "an unspecified address"),
        ("::", "an unspecified address"),
        ("10.1.2.3", "a private network"),
        ("172.31.0.1", "a private network"),
        ("192.168.1.1", "a private network"),
        ("fd12::1", "a private network"),
        ("64:ff9b::10.0.0.1", "a private network"),
        ("100.64.0.1", "a carrier's shared network"),
        ("169.254.1.1", "a link-local address"),
        ("fe80::1%eth0", "a link-local address"),
        ("169.254.169.254", "a cloud metadata service"),
        ("::ffff:169.254.169.254", "a cloud metadata service"),
        ("fd00:ec2::254", "a cloud metadata service"),
        ("224.0.0.1", "a multicast address"),
        ("ff02::1", "a multicast address"),
        ("255.255.255.255", "a reserved address"),
        ("192.0.2.1", "a reserved address"),
        ("2001:db8::1", "a reserved address"),
        ("2001:0:53aa:64c::1", "a reserved address"),
        ("64:ff9b:1::1", "a reserved address"),
        ("::8.8.8.8", "a reserved address"),
        ("8.8.8.8", None),
        ("172.32.0.1", None),
        ("2606:4700::1111", None),
        ("64:ff9b::8.8.8.8", None),
        ("2002:808:808::1", None),
    ],
)
def test_addresses_that_are_not_public_are_recognised(address: str, meaning: str | None) -> None:
    assert describe_special(address) == meaning


def names(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


@pytest.mark.anyio
async def test_a_public_host_gives_the_addresses_to_connect_to() -> None:
    url = parse_url("https://example.org/")
    assert await resolve_checked(url, resolve=names("8.8.8.8", "8.8.4.4")) == ("8.8.8.8", "8.8.4.4")


@pytest.mark.anyio
async def test_one_forbidden_address_refuses_the_host() -> None:
    with pytest.raises(ValidationError, match=r"'example.org' leads to this machine \(127.0.0.1\)"):
        await resolve_checked(parse_url("https://example.org/"), resolve=names("8.8.8.8", "127.0.0.1"))


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0"])
async def test_this_machine_is_refused_however_it_is_spelled(host: str) -> None:
    with pytest.raises(ValidationError, match="leads to"):
        await resolve_checked(parse_url(f"http://{host}/"))


@pytest.mark.anyio
async def test_an_allowed_host_may_be_anywhere() -> None:
    policy = AddressPolicy(("localhost", "*.internal.example"))
    assert "127.0.0.1" in await resolve_checked(parse_url("http://localhost/"), policy)
    assert await resolve_checked(
        parse_url("http://ci.internal.example/"), policy, resolve=names("10.0.0.7")
    ) == ("10.0.0.7",)


@pytest.mark.anyio
async def test_a_host_without_an_address_is_a_network_error() -> None:
    with pytest.raises(NetworkError, match="no address"):
        await resolve_checked(parse_url("http://example.org/"), resolve=names())
    with pytest.raises(NetworkError, match="not found"):
        await resolve_checked(parse_url("http://nowhere.invalid/"))


# --- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "location", "target", "reason"),
    [
        ("https://a.org/x/y", "z?q=1", "https://a.org/x/z?q=1", ""),
        ("http://a.org/", "https://a.org/", "https://a.org/", ""),
        ("http://a.org/", "//b.org/", "http://b.org/", "it leads to another host, b.org"),
        ("https://a.org/", "https://www.a.org/", "https://www.a.org/", "it leads to another host, www.a.org"),
        ("https://a.org/", "http://a.org/", "http://a.org/", "it leads from https to http"),
        ("http://a.org/", "http://a.org:8080/", "http://a.org:8080/", "it leads to another port, 8080"),
    ],
)
def test_only_the_same_host_is_followed(url: str, location: str, target: str, reason: str) -> None:
    redirect = judge_redirect(parse_url(url), location, followed=0)
    assert (str(redirect.url), redirect.follow, redirect.reason) == (target, not reason, reason)


def test_the_sixth_redirect_is_not_followed() -> None:
    url = parse_url("http://a.org/")
    assert judge_redirect(url, "/b", followed=4).follow
    assert not judge_redirect(url, "/b", followed=5).follow


@pytest.mark.parametrize("location", ["http://u@b.org/", "javascript:alert(1)", "http:\\\\b.org", "/a b"])
def test_a_malformed_redirect_is_refused(location: str) -> None:
    with pytest.raises(ValidationError):
        judge_redirect(parse_url("http://a.org/"), location, followed=0)


# --- the client ------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(
    answer: bytes,
    *,
    tls: ssl.SSLContext | None = None,
    hang: bool = False,
    arrived: anyio.Event | None = None,
) -> AsyncIterator[tuple[Url, list[bytes]]]:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        requests.append(head + await reader.readexactly(length))
        if arrived:
            arrived.set()
        try:
            writer.write(answer)
            await writer.drain()
            if hang:
                await reader.read()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Url("https" if tls else "http", "hooks.example", port, "/path?x=1"), requests


@pytest.mark.anyio
async def test_a_request_goes_to_the_given_address_under_the_given_name() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello") as (
        url,
        requests,
    ):
        response = await send_request(url, ["127.0.0.1"], headers={"X-Key": "v"}, body=b"{}")
    assert (response.status, response.reason, response.body) == (200, "OK", b"hello")
    assert response.headers["x-a"] == "1, 2"
    head = f"POST /path?x=1 HTTP/1.1\r\nHost: hooks.example:{url.port}\r\nContent-Length: 2\r\n"
    rest = "Connection: close\r\nAccept-Encoding: identity\r\nX-Key: v\r\n\r\n{}"
    assert requests == [(head + rest).encode()]


@pytest.mark.anyio
async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (url, _):
        response = await send_request(url, ["127.0.0.2", "127.0.0.1"])
    assert (response.status, response.body) == (204, b"")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "body", "truncated"),
    [
        (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde", False),
        (b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n9\r\ndefghijkl\r\n0\r\n\r\n", b"abcdefgh", True),
        (b"\r\nuntil", b"until", False),
        (b"\r\nuntil the end", b"until th", True),
        (b"Content-Length: 9\r\n\r\n123456789", b"12345678", True),
        (b"Content-Length: 2, 2\r\n\r\nok", b"ok", False),
    ],
)
async def test_a_body_ends_where_it_says_or_at_the_cap(answer: bytes, body: bytes, truncated: bool) -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n" + answer) as (url, _):
        response = await send_request(url, ["127.0.0.1"], max_body=8)
    assert (response.body, response.truncated) == (body, truncated)


@pytest.mark.anyio
async def test_interim_answers_are_skipped() -> None:
    async with answering(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n") as (url, _):
        assert (await send_request(url, ["127.0.0.1"])).status == 404


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "content length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "content length"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b", "'gzip' data"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "transfer encoding"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", "chunk does not end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "closed the connection"),
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "did not answer in HTTP"),
    ],
)
async def test_a_bad_answer_is_a_network_error(answer: bytes, said: str) -> None:
    async with answering(answer) as (url, _):
        with pytest.raises(NetworkError, match=said):
            await send_request(url, ["127.0.0.1"])


@pytest.mark.anyio
async def test_a_server_that_drips_is_given_up() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", hang=True) as (url, _):
        with pytest.raises(NetworkError, match="did not answer within"):
            await send_request(url, ["127.0.0.1"], timeout=0.2)


@pytest.mark.anyio
async def test_nobody_listening_is_a_network_error() -> None:
    async with answering(b"") as (url, _):
        pass
    with pytest.raises(NetworkError, match="could not be reached"):
        await send_request(url, ["127.0.0.1"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "headers", [{"X": "a\r\nEvil: 1"}, {"Host": "evil"}, {"content-length": "9"}, {"a b": "c"}, {"X": "é"}]
)
async def test_headers_cannot_forge_the_request(headers: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="header"):
        await send_request(Url("http", "a.org", 80, "/"), ["127.0.0.1"], headers=headers)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test"
    )
    subprocess.run(
        [
            *command.split(),
            "-addext",
            "subjectAltName=DNS:hooks.example",
            "-keyout",
            path,
            "-out",
            f"{path}.crt",
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.mark.anyio
async def test_tls_checks_the_name_and_not_the_address(certificate: Path) -> None:
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", tls=server_side) as (url, _):
        assert (await send_request(url, ["127.0.0.1"], tls=trusting)).body == b"ok"
        with pytest.raises(NetworkError, match="certificate verify failed"):
            await send_request(url, ["127.0.0.1"])
        other = Url(url.scheme, "other.example", url.port, url.target)
        with pytest.raises(NetworkError, match="certificate verify failed"):
            await send_request(other, ["127.0.0.1"], tls=trusting)


@pytest.mark.anyio
async def test_cancelling_closes_the_connection() -> None:
    arrived = anyio.Event()
    server = answering(b"HTTP/1.1 200 OK\r\n", hang=True, arrived=arrived)
    async with server as (url, _), anyio.create_task_group() as group:
        group.start_soon(send_request, url, ["127.0.0.1"])
        await arrived.wait()
        group.cancel_scope.cancel()
