"""Which machines may be contacted: a host is looked up, its addresses are checked, and only they are used.

Whoever connects does so to the very addresses that were checked, so a name that resolves differently a moment
later gains nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from robota.http.dial import look_up
from robota.http.errors import HttpError, UrlError
from robota.http.url import Url, host_matches

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Addresses of a host, as text."""

_SPECIAL: tuple[tuple[str, str], ...] = (
    ("169.254.169.254/32", "a cloud metadata service"),
    ("168.63.129.16/32", "a cloud metadata service"),
    ("100.100.100.200/32", "a cloud metadata service"),
    ("fd00:ec2::254/128", "a cloud metadata service"),
    ("0.0.0.0/8", "an unspecified address"),
    ("::/128", "an unspecified address"),
    ("127.0.0.0/8", "this machine"),
    ("::1/128", "this machine"),
    ("10.0.0.0/8", "a private network"),
    ("172.16.0.0/12", "a private network"),
    ("192.168.0.0/16", "a private network"),
    ("fc00::/7", "a private network"),
    ("fec0::/10", "a private network"),
    ("100.64.0.0/10", "a carrier's shared network"),
    ("169.254.0.0/16", "a link-local address"),
    ("fe80::/10", "a link-local address"),
    ("224.0.0.0/4", "a multicast address"),
    ("ff00::/8", "a multicast address"),
    ("192.0.0.0/24", "a reserved address"),
    ("192.0.2.0/24", "a reserved address"),
    ("192.88.99.0/24", "a reserved address"),
    ("198.18.0.0/15", "a reserved address"),
    ("198.51.100.0/24", "a reserved address"),
    ("203.0.113.0/24", "a reserved address"),
    ("240.0.0.0/4", "a reserved address"),
    ("2001::/23", "a reserved address"),
    ("2001:db8::/32", "a reserved address"),
    ("3fff::/20", "a reserved address"),
)
_EMBEDDED: tuple[tuple[str, int], ...] = (
    ("::ffff:0:0/96", 0),  # IPv4-mapped
    ("64:ff9b::/96", 0),  # NAT64
    ("2002::/16", 80),  # 6to4
)
"""IPv6 networks whose addresses carry an IPv4 address, and how far from the right end it stands."""


class AddressPolicy(Struct, frozen=True):
    """Which hosts may be contacted: every public address, and what the user allowed beyond."""

    allowed_hosts: tuple[str, ...] = ()
    """Host rules; a host they cover may have any address."""

    def allows_host(self, host: str) -> bool:
        return any(host_matches(rule, host) for rule in self.allowed_hosts)


PUBLIC_ONLY = AddressPolicy()


def describe_special(address: str) -> str | None:
    """What an address stands for if it is not public, also when IPv6 wraps it; `None` for a public one."""
    value: Address = ipaddress.ip_address(address.partition("%")[0])
    for network, meaning in _SPECIAL:
        if value in ipaddress.ip_network(network):
            return meaning
    if isinstance(value, ipaddress.IPv4Address):
        return None
    for network, shift in _EMBEDDED:
        if value in ipaddress.ip_network(network):
            return describe_special(str(ipaddress.IPv4Address(int(value) >> shift & 0xFFFFFFFF)))
    return None if value in ipaddress.ip_network("2000::/3") else "a reserved address"


async def resolve_checked(
    url: Url, policy: AddressPolicy = PUBLIC_ONLY, *, resolve: Resolve | None = None
) -> tuple[str, ...]:
    """The addresses to connect to. One address that the policy forbids is enough to refuse the host."""
    addresses = tuple(await (resolve or look_up)(url.host, url.port))
    if not addresses:
        raise HttpError("dns", "the host has no address")
    if not policy.allows_host(url.host):
        for address in addresses:
            if meaning := describe_special(address):
                raise UrlError(
                    f"{url.host!r} leads to {meaning} ({address}); allow that host by name if this is meant"
                )
    return addresses
