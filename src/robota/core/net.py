"""What an address on the network means: one canonical URL, host rules, and which machines may be contacted.

A URL is read once, strictly, into a `Url`; whoever checks and whoever connects use that same value. A host is
contacted at the very addresses that were checked, so a name that resolves differently a moment later gains
nothing. Refusals are `ValidationError`s with field `url` that say what was refused and why.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from robota.core.errors import NetworkError, ValidationError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""Addresses of a host, as text."""

MAX_REDIRECTS = 5

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_LENGTH = 8192
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\s\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\ud800-\udfff]")
_SHAPE = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_READ_DIFFERENTLY = re.compile("[ßẞς\u200c\u200d]")
"""Characters that the two generations of international domain names turn into different hosts."""


class Url(Struct, frozen=True):
    """An http or https address in its one canonical form."""

    scheme: str
    host: str
    """Lower case, IDNA form, no trailing dot; an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query, as sent."""

    @property
    def authority(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _DEFAULT_PORTS[self.scheme] else f"{name}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """The one meaning of a URL; one that programs may read in two ways is refused."""
    if len(text) > _MAX_URL_LENGTH:
        raise _refused("it is longer than 8,192 characters")
    if _FORBIDDEN.search(text):
        raise _refused(f"{text!r} holds a blank, a backslash or an invisible character")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise _refused(f"{text!r} does not start with http:// or https://")
    if "@" in shape["authority"]:
        raise _refused("it holds a user name or password; send credentials as a header")
    parts = _AUTHORITY.fullmatch(shape["authority"])
    if parts is None:
        raise _refused(f"{shape['authority']!r} is no host, or its port is no number")
    scheme = shape["scheme"].lower()
    port = int(parts["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise _refused(f"there is no port {port}")
    return Url(scheme, canonical_host(parts["host"]), port, _canonical_target(shape["target"]))


def canonical_host(text: str) -> str:
    """A host as resolvers understand it: `0x7f.1` is 127.0.0.1, `Bücher.de` is xn--bcher-kva.de."""
    if text.startswith("["):
        try:
            return socket.inet_ntop(socket.AF_INET6, ipaddress.IPv6Address(text[1:-1]).packed)
        except ValueError as error:
            raise _refused(f"{text!r} is no IPv6 address") from error
    if _READ_DIFFERENTLY.search(text):
        raise _refused(f"programs disagree on what the host {text!r} means; write it in its xn-- form")
    name = _to_ascii(text)
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _refused(f"{text!r} is no valid host name")
    return _dotted(labels, text) if _NUMBER.fullmatch(labels[-1]) else name


def _to_ascii(name: str) -> str:
    try:
        return name.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise _refused(f"{name!r} is no valid host name") from error


def _dotted(labels: list[str], text: str) -> str:
    """An IPv4 address from one to four decimal, octal or hexadecimal numbers, the last filling the rest."""
    numbers = [_read_number(label) for label in labels]
    *leading, last = numbers
    room = 256 ** (5 - len(numbers)) if len(numbers) <= 4 else 0
    if not 0 <= last < room or not all(0 <= number < 256 for number in leading):
        raise _refused(f"{text!r} is no IPv4 address")
    value = last + sum(number << (24 - 8 * place) for place, number in enumerate(leading))
    return str(ipaddress.IPv4Address(value))


def _read_number(label: str) -> int:
    """The value of one part of an IPv4 address, -1 if it has none."""
    if not _NUMBER.fullmatch(label) or len(label) > 16:
        return -1
    if label[:2].lower() == "0x":
        return int(label[2:] or "0", 16)
    try:
        return int(label, 8 if label.startswith("0") else 10)
    except ValueError:
        return -1


def _canonical_target(target: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 - three milliseconds that a start without network saves

    path = target if target.startswith("/") else f"/{target}"
    return quote(path, safe="%/:?[]@!$&'()*+,;=~")


def _refused(reason: str) -> ValidationError:
    return ValidationError(f"The URL is refused: {reason}.", field="url")


def host_matches(rule: str, host: str) -> bool:
    """Whether a canonical host falls under a rule: `*` any, `*.example.org` what lies below it, else itself.

    A `*` elsewhere stands for exactly one label.
    """
    wanted = _to_ascii(rule.strip("[]")).split(".")
    labels = host.split(".")
    if wanted == ["*"]:
        return True
    if wanted[0] == "*":
        wanted = wanted[1:]
        if len(labels) <= len(wanted):
            return False
        labels = labels[-len(wanted) :]
    return len(labels) == len(wanted) and all(
        part in ("*", label) for part, label in zip(wanted, labels, strict=True)
    )


# --- which addresses may be contacted -----------------------------------------------------------------

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
    addresses = tuple(await (resolve or _resolve)(url.host, url.port))
    if not addresses:
        raise NetworkError(f"The host {url.host!r} has no address.")
    if not policy.allows_host(url.host):
        for address in addresses:
            if meaning := describe_special(address):
                raise _refused(
                    f"{url.host!r} leads to {meaning} ({address}); allow that host by name if this is meant"
                )
    return addresses


async def _resolve(host: str, port: int) -> list[str]:
    import anyio  # noqa: PLC0415 - parsing a URL needs no event loop

    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise NetworkError(f"The host {host!r} was not found: {error.strerror or error}.") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


# --- redirects ----------------------------------------------------------------------------------------


class Redirect(Struct, frozen=True):
    """Where a server points, and whether to go there without asking."""

    url: Url
    follow: bool
    reason: str = ""
    """Why not."""


def judge_redirect(url: Url, location: str, *, followed: int) -> Redirect:
    """What to do with a redirect: the same host is followed, another one is only reported.

    The target is a new URL: refused if malformed, and still to be checked by rules and address policy.
    """
    from urllib.parse import urljoin  # noqa: PLC0415 - see `_canonical_target`

    if _FORBIDDEN.search(location):
        raise _refused(f"the redirect to {location!r} holds a blank, a backslash or an invisible character")
    target = parse_url(urljoin(str(url), location))
    if followed >= MAX_REDIRECTS:
        return Redirect(target, False, f"more than {MAX_REDIRECTS} redirects")
    if target.host != url.host:
        return Redirect(target, False, f"it leads to another host, {target.host}")
    if target.scheme == "http" and url.scheme == "https":
        return Redirect(target, False, "it leads from https to http")
    upgraded = (url.scheme, url.port, target.scheme, target.port) == ("http", 80, "https", 443)
    if target.port != url.port and not upgraded:
        return Redirect(target, False, f"it leads to another port, {target.port}")
    return Redirect(target, True)
