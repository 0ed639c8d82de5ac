"""Calls about an address, and host rules (`WebFetch(domain:example.org)`)."""

from __future__ import annotations

from urllib.parse import urlsplit

from robota.core.permissions.matchers import (
    Call,
    Cover,
    Gap,
    Hit,
    first_cover,
    has_controls,
    parameter_hit,
    text_argument,
)
from robota.core.permissions.rules import Rule, text_glob

_SCHEMES = frozenset({"http", "https", "ws", "wss", "ftp", "file"})


class UrlMatcher:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._url = text_argument(call.arguments, "url")
        self._host = None if self._url is None else canonical_host(self._url)
        self._problem = None
        if self._url is None:
            self._problem = "the address is missing or is not a text"
        elif self._host is None:
            self._problem = "the address can be read in more than one way"

    def hit(self, rule: Rule) -> Hit | None:
        pattern = rule.pattern
        if not rule.names(self._call.tool) or pattern is None:
            return None
        if pattern.startswith("domain:"):
            if self._host is None:
                return Hit(self._url, certain=False, reason=self._problem or "")
            return Hit(self._host) if self._is_at(pattern, below=True) else None
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        globs = (text_glob(pattern), text_glob(_lower_host(pattern)))
        if any(glob.matches(form) for glob in globs for form in self._forms()):
            return Hit(self._url)
        return None if self._problem is None else Hit(self._url, certain=False, reason=self._problem)

    def _forms(self) -> list[str]:
        """The address as written and in a canonical spelling."""
        if self._url is None:
            return []
        url = self._url.strip()
        forms = [self._url, url]
        if self._host is not None:
            parts = urlsplit(_with_scheme(url))
            rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            forms.append(f"{parts.scheme}://{self._host}{rest}")
        return forms

    def cover(self) -> Cover | Gap:
        if self._problem is not None:
            return Gap(self._url, self._problem)
        return first_cover(self._call, self._covers, self._url)

    def _covers(self, rule: Rule) -> bool:
        if not rule.names(self._call.tool):
            return False
        if rule.pattern is None:
            return True
        if rule.pattern.startswith("domain:"):
            return self._is_at(rule.pattern, below=False)
        return text_glob(rule.pattern).matches(self._url or "")

    def _is_at(self, pattern: str, *, below: bool) -> bool:
        """Whether the address is at a `domain:` rule's host, and at its port when it names one."""
        name, port = _split_port(pattern.removeprefix("domain:").strip())
        fits = port in ("", "*", str(_port(self._url or "")))
        return fits and host_matches(name, self._host or "", below=below)

    def narrowest(self) -> list[str]:
        return [] if self._host is None else [f"{self._call.tool}(domain:{self._host})"]


def canonical_host(url: str) -> str | None:
    """The host of an address in lower case and ASCII; None when two readers could see two hosts."""
    text = url.strip()
    if has_controls(text) or any(character in text for character in "\\ \t\n"):
        return None
    if "://" not in text and text.partition(":")[0].lower() in _SCHEMES:
        return None  # browsers read https:/host and https:host as https://host, others do not
    try:
        host = urlsplit(_with_scheme(text)).hostname
        return None if not host else _canonical(host)
    except ValueError:
        return None


def _with_scheme(url: str) -> str:
    return url if "://" in url else "https://" + url.lstrip("/")


def _port(url: str) -> int | None:
    try:
        parts = urlsplit(_with_scheme(url.strip()))
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def _split_port(wanted: str) -> tuple[str, str]:
    """`host:80` as host and port; the colons of a bare IPv6 address separate none."""
    if wanted.startswith("["):
        name, _, port = wanted[1:].partition("]")
        return name, port.removeprefix(":")
    name, colon, port = wanted.rpartition(":")
    return (name, port) if colon and ":" not in name else (wanted, "")


def _lower_host(pattern: str) -> str:
    """A pattern for whole addresses with its scheme and host in lower case, as they are compared."""
    scheme, separator, rest = pattern.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}".lower() + slash + path if separator else pattern


def _canonical(host: str) -> str | None:
    name = host.rstrip(".")
    if "%" in name or not name:
        return None
    if ":" in name:
        return _canonical_ipv6(name)
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return _numeric_address(name.lower()) or name.lower()


def _canonical_ipv6(host: str) -> str | None:
    """One spelling for an IPv6 address; one that stands for an IPv4 address becomes that."""
    import ipaddress  # noqa: PLC0415 - such hosts are rare

    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return None
    return str(address.ipv4_mapped or address)


def _numeric_address(host: str) -> str | None:
    """`0x7f.1` and `2130706433` as the address that a resolver makes of them."""
    parts = host.split(".")
    if len(parts) > 4 or not all(part[:1].isdigit() for part in parts):
        return None
    try:
        numbers = [
            int(part, 16 if part.startswith("0x") else 8 if part.startswith("0") and part != "0" else 10)
            for part in parts
        ]
    except ValueError:
        return None
    value = numbers[-1]
    for position, number in enumerate(numbers[:-1]):
        value |= number << (8 * (3 - position))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)) if value < 2**32 else None


def _canonical_labels(pattern: str) -> str | None:
    """A host pattern with its plain labels in ASCII."""
    labels = [label if "*" in label else _canonical(label) for label in pattern.rstrip(".").split(".")]
    return None if None in labels else ".".join(label or "" for label in labels)


def host_matches(pattern: str, host: str, *, below: bool) -> bool:
    """Compare by label: `*.h` is every subdomain of h, `*` every host; `below` adds those of a name."""
    wanted = _canonical(pattern.lower()) if "*" not in pattern else _canonical_labels(pattern.lower())
    if wanted is None:
        return False
    if wanted == "*" or wanted == host:
        return True
    if wanted.startswith("*.") and "*" not in wanted[2:]:
        return host.endswith(wanted[1:])
    if "*" in wanted:
        labels, names = wanted.split("."), host.split(".")
        return len(labels) == len(names) and all(
            text_glob(label).matches(name) for label, name in zip(labels, names, strict=True)
        )
    return below and host.endswith("." + wanted)
