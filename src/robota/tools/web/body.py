"""What all exchanges over the web share: who asks, whom to trust, a body that cannot outgrow its limit."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from robota._version import __version__
from robota.http.url import Url
from robota.tools.web.failure import bad_protocol, incomplete

if TYPE_CHECKING:
    import ssl

USER_AGENT = f"robota/{__version__}"


class BodyReader:
    """The bytes of a reply, unpacked while they arrive and never beyond the limit."""

    __slots__ = ("_arrived", "_content", "_limit", "_unpack", "_url")

    def __init__(self, url: Url, encoding: str, limit: int) -> None:
        import zlib  # noqa: PLC0415 - loaded with the HTTP library

        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise bad_protocol(url, "it packed the page in a way that was not offered")
        self._unpack = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
        self._url = url
        self._limit = limit
        self._arrived = 0
        self._content = bytearray()

    def take(self, piece: bytes) -> bool:
        """Whether there is room for more. What follows a packed page is left alone."""
        import zlib  # noqa: PLC0415 - see above

        self._arrived += len(piece)
        if self._unpack is None:
            self._content += piece
        elif not self._unpack.eof:
            try:
                self._content += self._unpack.decompress(piece, self._limit + 1 - len(self._content))
            except zlib.error as error:
                raise bad_protocol(self._url, "its packed page is broken") from error
        return max(self._arrived, len(self._content)) <= self._limit

    def finish(self) -> bytes:
        if self._unpack is not None and self._arrived and not self._unpack.eof:
            raise incomplete(self._url)
        return bytes(self._content)


@functools.cache
def trusting_context() -> ssl.SSLContext:
    """The system's certificates, or those of `SSL_CERT_FILE`: 23 ms, once per process."""
    import ssl  # noqa: PLC0415 - plain HTTP does without

    return ssl.create_default_context()
