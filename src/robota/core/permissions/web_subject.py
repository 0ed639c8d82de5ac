"""Calls about an address, and host rules (`WebFetch(domain:example.org)`)."""

from __future__ import annotations

from urllib.parse import urlsplit

from robota.core.permissions.calls import Call, Cover, Gap, Hit, has_controls, parameter_hit, text_argument
from robota.core.permissions.rules import Rule, text_glob


class WebSubject:
    def __init__(self, call: Call) -> None:
        self._call = call
        self.url = text_argument(call.arguments, "url")
        self.host = None if self.url is None else canonical_host(self.url)
        self.problem = None
        if self.url is None:
            self.problem = "the address is missing or is not a text"
        elif self.host is None:
            self.problem = "the address can be read in more than one way"

    def hit(self, rule: Rule) -> Hit | None:
        pattern = rule.pattern
        if not rule.names(self._call.tool) or pattern is None:
            return None
        if pattern.startswith("domain:"):
            if self.host is None:
                return Hit(self.url, certain=False, reason=self.problem or "")
            return (
                Hit(self.host)
                if host_matches(pattern.removeprefix("domain:"), self.host, below=True)
                else None
            )
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        if self.url is not None and any(text_glob(pattern).matches(form) for form in self._forms()):
            return Hit(self.url)
        return None if self.problem is None else Hit(self.url, certain=False, reason=self.problem)

    def _forms(self) -> list[str]:
        """The address as written and in a canonical spelling."""
        url = (self.url or "").strip()
        forms = [self.url or "", url]
        if self.host is not None:
            parts = urlsplit(url if "://" in url else "https://" + url.lstrip("/"))
            rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            forms.append(f"{parts.scheme}://{self.host}{rest}")
        return forms

    def cover(self) -> Cover | Gap:
        if self.problem is not None:
            return Gap(self.url, self.problem)
        for rule in self._call.allow.rules:
            if rule.names(self._call.tool) and self._covers(rule.pattern):
                return Cover(rule.text, self.url)
        return Gap(self.url, "no rule allows it")

    def _covers(self, pattern: str | None) -> bool:
        if pattern is None:
            return True
        if pattern.startswith("domain:"):
            return host_matches(pattern.removeprefix("domain:"), self.host or "", below=False)
        return text_glob(pattern).matches(self.url or "")

    def mode_gap(self) -> Gap | None:
        return None


def canonical_host(url: str) -> str | None:
    """The host of an address in lower case and ASCII; None when two readers could see two hosts."""
    text = url.strip()
    if has_controls(text) or any(character in text for character in "\\ \t\n"):
        return None
    try:
        host = urlsplit(text if "://" in text else "https://" + text.lstrip("/")).hostname
        return None if not host else _canonical(host)
    except ValueError:
        return None


def _canonical(host: str) -> str | None:
    name = host.rstrip(".")
    if "%" in name or not name:
        return None
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    return _numeric_address(name.lower()) or name.lower()


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


def host_matches(pattern: str, host: str, *, below: bool) -> bool:
    """Compare by label: `*.h` is every subdomain of h, `*` every host; `below` adds those of a name."""
    wanted = (
        _canonical(pattern.strip().lower().replace("*", "\x00"))
        if "*" not in pattern
        else pattern.strip().lower().rstrip(".")
    )
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
