"""A request as it goes over the wire: everything but its body is put together once and sent many times."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.http.errors import HeaderError
from robota.http.url import Url

_TOKEN = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Where a body ends is said by whoever sends it."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""These say how long their body is even if there is none."""


class Request(Struct, frozen=True):
    """Made by `build_request`."""

    method: str
    url: Url
    headers: tuple[tuple[str, str], ...]
    """As sent; `Host` is one of them."""
    head: bytes
    """The lines above the body, but for the body's length and the empty line."""

    def encode(self, body: bytes) -> bytes:
        if body or self.method in _WITH_BODY:
            return b"%bContent-Length: %d\r\n\r\n%b" % (self.head, len(body), body)
        return self.head + b"\r\n"


def build_request(method: str, url: Url, headers: Mapping[str, str]) -> Request:
    """The request for an address; raises `HeaderError` for a header that could forge another request."""
    if not _TOKEN.fullmatch(method):
        raise ValueError(f"{method!r} is not an HTTP method.")
    own = {} if any(name.lower() == "host" for name in headers) else {"Host": url.authority}
    sent = {**own, **headers}
    for name, value in sent.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _FRAMING:
            raise HeaderError(name)
        if not value.isascii() or not value.isprintable():
            raise HeaderError(name)
    lines = [f"{method} {url.target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return Request(method, url, tuple(sent.items()), "\r\n".join([*lines, ""]).encode("ascii"))
