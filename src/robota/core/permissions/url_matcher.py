"""Calls about an address, and host rules (`WebFetch(domain:example.org)`)."""

from __future__ import annotations

from urllib.parse import urlsplit

from robota.core.permissions.matchers import (
    Call,
    Cover,
    Gap,
    Hit,
    Matcher,
    first_cover,
    has_controls,
    parameter_hit,
    text_argument,
)
from robota.core.permissions.rules import Rule, text_glob
from robota.http.errors import UrlError
from robota.http.url import canonical_host

_SCHEMES = frozenset({"http", "https", "ws", "wss", "ftp", "file"})


class UrlMatcher(Matcher):
    def __init__(self, call: Call) -> None:
        self._call = call
        self._url = text_argument(call.arguments, "url")
        self._host = None if self._url is None else host_of(self._url)
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
            if self._host is None or read_domain(pattern)[0] is None:
                reason = self._problem or "its host can be read in more than one way"
                return Hit(self._url, certain=False, reason=reason)
            return Hit(self._host) if self._is_at(pattern, below=True) else None
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        globs = (text_glob(pattern), text_glob(lower_host(pattern)))
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
        wanted, port = read_domain(pattern)
        fits = wanted is not None and port in ("", "*", str(_port(self._url or "")))
        return fits and host_matches(wanted or "", self._host or "", below=below)

    def narrowest(self) -> list[str]:
        return [] if self._host is None else [f"{self._call.tool}(domain:{self._host})"]


def host_of(url: str) -> str | None:
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


def read_domain(pattern: str) -> tuple[str | None, str]:
    """Host and port of a `domain:` rule; no host when it can be read in more than one way."""
    wanted = pattern.removeprefix("domain:").strip().lower()
    if wanted.startswith("["):
        name, _, port = wanted[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = wanted.rpartition(":")
        if not name or ":" in name:  # the colons of a bare IPv6 address separate no port
            name, port = wanted, ""
    if "*" not in name:
        return _canonical(name), port
    labels = [label if "*" in label else _canonical(label) for label in name.rstrip(".").split(".")]
    return None if None in labels else ".".join(label or "" for label in labels), port


def lower_host(pattern: str) -> str:
    """A pattern for whole addresses with its scheme and host in lower case, as they are compared."""
    scheme, separator, rest = pattern.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host}".lower() + slash + path if separator else pattern


def _canonical(host: str) -> str | None:
    """The host as whoever connects understands it; an IPv6 address that stands for an IPv4 one is that."""
    try:
        name = canonical_host(f"[{host}]" if ":" in host else host.rstrip("."))
    except UrlError:
        return None
    return name.removeprefix("::ffff:") if "." in name else name


def host_matches(wanted: str, host: str, *, below: bool) -> bool:
    """Compare by label: `*.h` is every subdomain of h, `*` every host; `below` adds those of a name."""
    if wanted in ("*", host):
        return True
    if wanted.startswith("*.") and "*" not in wanted[2:]:
        return host.endswith(wanted[1:])
    if "*" in wanted:
        labels, names = wanted.split("."), host.split(".")
        return len(labels) == len(names) and all(
            text_glob(label).matches(name) for label, name in zip(labels, names, strict=True)
        )
    return below and host.endswith("." + wanted)
