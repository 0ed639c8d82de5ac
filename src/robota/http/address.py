"""Which machines are contacted: a host is looked up, its addresses are checked, and only they are used; or a
proxy, as the environment says, or the system where it has settings.

Whoever connects does so to the very addresses that were checked, so a name that resolves differently a moment
later gains nothing. This machine itself is never reached by way of a proxy, whatever `NO_PROXY` says: a model
server on loopback would be looked for on the proxy's machine.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from robota.http.dial import look_up
from robota.http.errors import HttpError, UrlError
from robota.http.url import Url, host_matches

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Addresses of a host, as text."""

_SPECIAL: dict[str, tuple[str, ...]] = {
    "a cloud metadata service": (
        "169.254.169.254/32",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "fd00:ec2::254/128",
    ),
    "an unspecified address": ("0.0.0.0/8", "::/128"),
    "this machine": ("127.0.0.0/8", "::1/128"),
    "a private network": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "a carrier's shared network": ("100.64.0.0/10",),
    "a link-local address": ("169.254.0.0/16", "fe80::/10"),
    "a multicast address": ("224.0.0.0/4", "ff00::/8"),
    "a reserved address": (
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
    ),
}
"""What networks are for; of an address that is in two of them, the first says what it is."""
_EMBEDDED: tuple[tuple[str, int], ...] = (
    ("::ffff:0:0/96", 0),  # IPv4-mapped
    ("64:ff9b::/96", 0),  # NAT64
    ("2002::/16", 80),  # 6to4
)
"""IPv6 networks whose addresses carry an IPv4 address, and how far from the right end it stands."""
_VARIABLES = {
    scheme: (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    for scheme in ("http", "https")
}


class AddressPolicy(Struct, frozen=True):
    """Which hosts may be contacted: every public address, and what the user allowed beyond."""

    allowed_hosts: tuple[str, ...] = ()
    """Host rules; a host they cover may have any address."""


PUBLIC_ONLY = AddressPolicy()


def describe_special(address: str) -> str | None:
    """What an address stands for if it is not public, also when IPv6 wraps it; `None` for a public one."""
    value: Address = ipaddress.ip_address(address.partition("%")[0])
    for meaning, networks in _SPECIAL.items():
        if any(value in ipaddress.ip_network(network) for network in networks):
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
    if not any(host_matches(rule, url.host) for rule in policy.allowed_hosts):
        for address in addresses:
            if meaning := describe_special(address):
                raise UrlError(
                    f"{url.host!r} leads to {meaning} ({address}); allow that host by name if this is meant"
                )
    return addresses


def find_proxy(url: Url) -> str | None:
    """The address of the proxy for this URL now; `None` if it is reached directly."""
    if sys.platform not in ("darwin", "win32") and not any(map(os.environ.get, _VARIABLES[url.scheme])):
        return None
    if is_this_machine(url):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 15 ms, for those behind a proxy

    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{url.host}:{url.port}"):
        return None
    if url.is_address and _is_within(url.host, proxies.get("no", "").split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_this_machine(url: Url) -> bool:
    """Whether the host is on the loopback interface, as far as its name tells."""
    if url.is_address:
        return ipaddress.ip_address(url.host).is_loopback
    return url.host == "localhost" or url.host.endswith(".localhost")


def shown(proxy: str) -> str:
    """The address of a proxy without what it is opened with."""
    scheme, _, place = proxy.partition("://")
    return f"{scheme}://{place.rpartition('@')[2].rstrip('/')}"


def _is_within(host: str, networks: Iterable[str]) -> bool:
    """Whether one of the networks that stand among the exceptions has this address."""
    address = ipaddress.ip_address(host)
    for text in networks:
        try:
            network = ipaddress.ip_network(text.strip(), strict=False)
        except ValueError:  # a name
            continue
        if address.version == network.version and address in network:
            return True
    return False
