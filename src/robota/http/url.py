"""What a URL means: one canonical form, rules for hosts, and which redirects are followed without asking.

A URL is read once, strictly, into a `Url`; whoever checks and whoever connects use that same value. What
programs may read in two ways is refused with a `UrlError` that says what and why.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.http.errors import UrlError

Origin: TypeAlias = tuple[str, str, int]
MAX_REDIRECTS = 5

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL_LENGTH = 8192
_FORBIDDEN = lazy_pattern(
    r"[\x00-\x20\x7f-\xa0\\\s\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SHAPE = lazy_pattern(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE)
_AUTHORITY = lazy_pattern(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{0,5}))?")
_LABEL = lazy_pattern(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = lazy_pattern(r"0[xX][0-9a-fA-F]*|[0-9]+")
_READ_DIFFERENTLY = lazy_pattern("[ßẞς\u200c\u200d]")
"""Characters that the two generations of international domain names turn into different hosts."""
_PLAIN_TARGET = lazy_pattern(r"[A-Za-z0-9_.~%/:?\[\]@!$&'()*+,;=-]*")


class Url(Struct, frozen=True):
    """An http or https address in its one canonical form."""

    scheme: str
    host: str
    """Lower case, IDNA form, no trailing dot; an IPv6 address without brackets."""
    port: int
    target: str
    """Path and query, as sent."""

    @property
    def is_address(self) -> bool:
        """The host is no name that has to be looked up."""
        return ":" in self.host or self.host.rpartition(".")[2].isdecimal()

    @property
    def origin(self) -> Origin:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _DEFAULT_PORTS[self.scheme] else f"{name}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """The one meaning of a URL; one that programs may read in two ways is refused."""
    if len(text) > _MAX_URL_LENGTH:
        raise UrlError("it is longer than 8,192 characters")
    if _FORBIDDEN.search(text):
        raise UrlError(f"{text!r} holds a blank, a backslash or an invisible character")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise UrlError(f"{text!r} does not start with http:// or https://")
    if "@" in shape["authority"]:
        raise UrlError("it holds a user name or password; send credentials as a header")
    parts = _AUTHORITY.fullmatch(shape["authority"])
    if parts is None:
        raise UrlError(f"{shape['authority']!r} is not a host, or its port is not a number")
    scheme = shape["scheme"].lower()
    port = int(parts["port"] or _DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise UrlError(f"there is no port {port}")
    return Url(scheme, canonical_host(parts["host"]), port, _canonical_target(shape["target"]))


def canonical_host(text: str) -> str:
    """A host as resolvers understand it: `0x7f.1` is 127.0.0.1, `Bücher.de` is xn--bcher-kva.de."""
    if text.startswith("["):
        import socket  # noqa: PLC0415 - comes with the event loop; to build a client costs nothing

        try:
            return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, text[1:-1]))
        except OSError as error:
            raise UrlError(f"{text!r} is not an IPv6 address") from error
    if _READ_DIFFERENTLY.search(text):
        raise UrlError(f"programs disagree on what the host {text!r} means; write it in its xn-- form")
    name = _to_ascii(text)
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlError(f"{text!r} is not a valid host name")
    return _dotted(labels, text) if _NUMBER.fullmatch(labels[-1]) else name


def _to_ascii(name: str) -> str:
    if name.isascii():  # the codec would say the same, and costs 3 ms to load
        return name.lower().removesuffix(".")
    try:
        return name.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError as error:
        raise UrlError(f"{name!r} is not a valid host name") from error


def _dotted(labels: list[str], text: str) -> str:
    """An IPv4 address from one to four decimal, octal or hexadecimal numbers, the last filling the rest."""
    numbers = [_read_number(label) for label in labels]
    *leading, last = numbers
    room = 256 ** (5 - len(numbers)) if len(numbers) <= 4 else 0
    if not 0 <= last < room or not all(0 <= number < 256 for number in leading):
        raise UrlError(f"{text!r} is not an IPv4 address")
    value = last + sum(number << (24 - 8 * place) for place, number in enumerate(leading))
    return ".".join(map(str, value.to_bytes(4, "big")))


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
    path = target if target.startswith("/") else f"/{target}"
    if _PLAIN_TARGET.fullmatch(path):
        return path
    from urllib.parse import quote  # noqa: PLC0415 - three milliseconds that most addresses save

    return quote(path, safe="%/:?[]@!$&'()*+,;=~")


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
        raise UrlError(f"the redirect to {location!r} holds a blank, a backslash or an invisible character")
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
