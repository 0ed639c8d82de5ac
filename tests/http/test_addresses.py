from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.http.certificates import Authority
from tests.http.peer import Line, Peer, fetch, get

from robota.http import dial
from robota.http.address import AddressPolicy, describe_special, resolve_checked
from robota.http.client import HttpClient
from robota.http.errors import HttpError, UrlError
from robota.http.url import parse_url

pytestmark = pytest.mark.anyio
ANYWHERE = AddressPolicy(("*",))


class Names:
    """A resolver that gives one list of addresses after another, and notes who was asked for."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0)


async def ask(peer: Peer, names: Names, host: str = "name.example", **options: Any) -> bytes:
    policy = options.pop("policy", ANYWHERE)
    async with HttpClient(policy=policy, resolve=names, **options) as client:
        return await fetch(client, get(peer.url(host=host)))


# --- which addresses -------------------------------------------------------------------------------------


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


async def test_a_public_host_gives_the_addresses_to_connect_to() -> None:
    url = parse_url("https://example.org/")
    assert await resolve_checked(url, resolve=Names(["8.8.8.8", "8.8.4.4"])) == ("8.8.8.8", "8.8.4.4")


async def test_one_forbidden_address_refuses_the_host() -> None:
    with pytest.raises(UrlError, match=r"'example.org' leads to this machine \(127.0.0.1\)"):
        await resolve_checked(parse_url("https://example.org/"), resolve=Names(["8.8.8.8", "127.0.0.1"]))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "2130706433", "0"])
async def test_this_machine_is_refused_however_it_is_spelled(host: str) -> None:
    with pytest.raises(UrlError, match="leads to"):
        await resolve_checked(parse_url(f"http://{host}/"))


async def test_an_allowed_host_may_be_anywhere() -> None:
    policy = AddressPolicy(("localhost", "*.internal.example"))
    assert "127.0.0.1" in await resolve_checked(parse_url("http://localhost/"), policy)
    assert await resolve_checked(
        parse_url("http://ci.internal.example/"), policy, resolve=Names(["10.0.0.7"])
    ) == ("10.0.0.7",)


async def test_a_host_without_an_address_is_a_network_error() -> None:
    with pytest.raises(HttpError, match="no address"):
        await resolve_checked(parse_url("http://example.org/"), resolve=Names([]))
    with pytest.raises(HttpError, match="not found"):
        await resolve_checked(parse_url("http://nowhere.invalid/"))


# --- addresses that were checked ------------------------------------------------------------------------


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with Peer() as peer:
        assert await ask(peer, names) == b"ok"

    assert (names.asked, names.answers) == ([("name.example", peer.port)], [["10.0.0.1"]])
    assert f"Host: name.example:{peer.port}\r\n".encode() in peer.requests[0]


async def test_an_address_that_is_not_allowed_is_not_contacted() -> None:
    async with Peer() as peer:
        with pytest.raises(UrlError, match=r"'name.example' leads to this machine \(127.0.0.1\)"):
            await ask(peer, Names(["8.8.8.8", "127.0.0.1"]), policy=AddressPolicy())

    assert peer.connections == 0


async def test_each_request_is_looked_up_and_checked_anew() -> None:
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    policy = AddressPolicy()
    async with Peer() as peer, HttpClient(policy=ANYWHERE, resolve=names) as client:
        assert await fetch(client, get(peer.url(host="name.example"))) == b"ok"
        client.policy = policy  # as if the first answer had been a public one
        with pytest.raises(UrlError, match="a private network"):
            await fetch(client, get(peer.url(host="name.example")))

    assert (peer.connections, len(names.asked)) == (1, 2)


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with Peer() as peer:
        assert await ask(peer, Names(["127.0.0.1"])) == b"ok"


async def test_the_certificate_is_checked_for_the_name_and_not_for_the_address(authority: Authority) -> None:
    async with Peer(tls=authority.server("name.example")) as peer:
        assert await ask(peer, Names(["127.0.0.1"]), tls=authority.client()) == b"ok"
        with pytest.raises(HttpError, match=r"not valid for 'other.example'"):
            await ask(peer, Names(["127.0.0.1"]), "other.example", tls=authority.client())


async def test_a_host_without_an_address_is_an_error() -> None:
    async with Peer() as peer:
        with pytest.raises(HttpError, match="the host has no address"):
            await ask(peer, Names([]))


async def test_looking_a_host_up_takes_part_of_the_time_to_connect() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async with HttpClient(policy=ANYWHERE, resolve=never, connect_seconds=0.02) as client:
        with pytest.raises(HttpError) as caught:
            await fetch(client, get(parse_url("http://name.example/")))
    assert caught.value.kind == "connect_timeout"


# --- several addresses ----------------------------------------------------------------------------------


async def test_the_next_address_is_tried_when_one_is_dead() -> None:
    async with Peer() as peer:
        assert await ask(peer, Names(["127.0.0.2", "127.0.0.3", "127.0.0.1"])) == b"ok"


async def test_when_all_are_dead_the_last_failure_is_told() -> None:
    async with Peer() as peer:
        pass
    with pytest.raises(HttpError) as caught:
        await ask(peer, Names(["127.0.0.2", "127.0.0.1"]))
    assert caught.value.kind == "refused"


async def test_somebody_else_at_an_address_ends_the_search(authority: Authority) -> None:
    async with Peer(tls=authority.server("other.example")) as peer:
        with pytest.raises(HttpError) as caught:
            await ask(peer, Names(["127.0.0.1", "127.0.0.1"]), tls=authority.client())
    assert (caught.value.kind, peer.requests) == ("certificate", [])


async def test_an_address_that_does_not_answer_does_not_hold_up_the_next(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dial, "HEAD_START_SECONDS", 0.01)
    async with (
        Peer(Line.until_left, host="127.0.0.2") as mute,
        Peer(tls=authority.server("name.example"), port=mute.port) as peer,
    ):
        assert await ask(peer, Names(["127.0.0.2", "127.0.0.1"]), tls=authority.client()) == b"ok"
        await mute.gone.acquire()  # the one that lost was hung up


async def test_one_that_succeeds_wins_over_one_that_fails_at_the_same_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dial, "HEAD_START_SECONDS", 0)

    async def connect(address: str) -> str:
        await both.wait()
        if address == "dead":
            raise HttpError("refused", "no")
        return address

    for addresses in (["dead", "alive"], ["alive", "dead"]) * 10:
        both = asyncio.Barrier(2)
        assert await dial._race(connect, addresses) == "alive"  # type: ignore[arg-type, comparison-overlap]


async def test_a_race_cancelled_at_any_moment_leaves_no_connection_behind() -> None:
    async with Peer() as peer:
        for turns in range(30):
            names = Names(["127.0.0.2", "127.0.0.1", "127.0.0.1"])
            asking = asyncio.ensure_future(ask(peer, names))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
        for _ in range(peer.connections):
            await peer.gone.acquire()

    assert peer.connections > 1


# --- IPv6 and names -------------------------------------------------------------------------------------


async def test_an_ipv6_address_is_reached_by_its_literal() -> None:
    async with Peer(host="::1") as peer, HttpClient() as client:
        assert await fetch(client, get(peer.url())) == b"ok"
    assert f"Host: [::1]:{peer.port}\r\n".encode() in peer.requests[0]


async def test_a_name_leads_to_one_of_its_addresses() -> None:
    async with Peer() as peer, HttpClient() as client:
        assert await fetch(client, get(peer.url(host="localhost"))) == b"ok"


async def test_the_two_kinds_of_addresses_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def found(kind: int, *addresses: str) -> list[Any]:
        return [(kind, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]

    async def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return found(socket.AF_INET6, "::1", "::2", "::3", "::1") + found(
            socket.AF_INET, "1.1.1.1", "2.2.2.2"
        )

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    assert await dial.look_up("name.example", 80) == ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]
