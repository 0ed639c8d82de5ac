"""A request as it goes over the wire, and what a server answers: status and headers at once, the body as it
arrives.

Everything of a request but its body is put together once and sent many times. Of a compressed body, gzip and
deflate are unpacked, which need nothing but zlib; others are never asked for. What unpacks to much is given
out in small pieces, so that a reader with a limit stops in time; what is fed without ever giving anything is
refused.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Protocol, Self

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.http.errors import HeaderError, HttpError
from robota.http.url import Url

_TOKEN = lazy_pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FRAMING = frozenset({"content-length", "transfer-encoding"})
"""Where a body ends is said by whoever sends it."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""These say how long their body is even if there is none."""
PIECE_BYTES = 256 * 1024
MAX_BARREN_BYTES = 1024 * 1024
"""Of packed data in a row that unpacks to nothing: empty blocks, or what follows the end."""


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
        sendable = value.isascii() and value.isprintable()
        if not sendable or not _TOKEN.fullmatch(name) or name.lower() in _FRAMING:
            raise HeaderError(name)
    lines = [f"{method} {url.target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return Request(method, url, tuple(sent.items()), "\r\n".join([*lines, ""]).encode("ascii"))


class BodySource(Protocol):
    """Where a body comes from: a connection of ours, or a response of httpx2."""

    status: int
    reason: bytes
    headers: dict[str, str]
    parts: list[bytes]
    """What has come and was not taken."""
    complete: bool
    """Nothing more will come."""

    def take(self) -> bytes: ...

    async def wait(self, seconds: float | None) -> None: ...

    async def aclose(self) -> None: ...


class Reply:
    """A reply that is under way. Whoever got it has to close it, if it is not read to its end too."""

    __slots__ = ("_silence", "_source", "headers", "reason", "status", "whole")

    def __init__(self, source: BodySource, silence: float | None) -> None:
        self._source: BodySource | None = source
        self._silence = silence
        self.status = source.status
        self.reason = source.reason.decode("latin-1")
        self.headers = source.headers
        """Names in lower case; repeated fields joined by a comma."""
        self.whole = False
        """The body was read to its end."""

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body, unpacked, in the pieces in which it arrives; raises `HttpError` when it is cut."""
        decoder = find_decoder(self.headers.get("content-encoding", ""))
        while (source := self._source) is not None:
            if source.parts:
                part = source.take()
                if decoder is None:
                    yield part
                else:
                    for piece in decoder.feed(part):
                        yield piece
            elif source.complete:
                if decoder is not None:
                    decoder.finish()
                self.whole = True
                return
            else:
                await source.wait(self._silence)
        raise RuntimeError("The reply was closed before it was read to its end.")

    async def read(self, limit: int) -> bytes:
        """The body, and the end of the reply; of a body beyond the limit the beginning, and not `whole`."""
        body = bytearray()
        async with self, aclosing(self.parts()) as parts:
            async for part in parts:
                body += part
                if len(body) > limit:
                    break
        return bytes(body[:limit])

    async def aclose(self) -> None:
        """Let the connection serve the next request, if this one's reply has come to its end."""
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def find_decoder(encoding: str) -> Decoder | None:
    """What undoes a `Content-Encoding`; `None` if there is nothing to undo."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise HttpError("protocol", f"it sent {encoding[:40]!r} data although none was offered")
    return Decoder(raw_too=encoding == "deflate")


class Decoder:
    """Bytes in, bytes out; `finish` tells whether that was all."""

    def __init__(self, *, raw_too: bool) -> None:
        import zlib  # noqa: PLC0415 - for the few replies that are compressed

        self._unpack = zlib.decompressobj(wbits=47)  # by the first bytes: gzip or zlib
        self._raw_too = raw_too
        """Half of the servers mean it without zlib's frame."""
        self._barren = 0
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the bytes unpack to. Those that follow the end are dropped."""
        self._barren += len(data)
        self._begun = True
        while data and not self._unpack.eof:
            piece = self._decompress(data)
            data = self._unpack.unconsumed_tail
            if piece:
                self._barren = 0
                yield piece
        if self._barren > MAX_BARREN_BYTES:
            raise HttpError("protocol", "its compressed body leads nowhere")

    def finish(self) -> None:
        """Raises unless the compressed data came to its own end."""
        if self._begun and not self._unpack.eof:
            raise HttpError("closed", "the compressed body was cut")

    def _decompress(self, data: bytes) -> bytes:
        import zlib  # noqa: PLC0415 - as above

        try:
            return self._unpack.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            if not self._raw_too:
                raise HttpError("protocol", "its compressed body is broken") from error
        self._unpack = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._raw_too = False
        return self._decompress(data)
