"""Bodies that a server compressed, unpacked while they arrive: gzip and deflate, which need nothing but zlib.

Others are never asked for. What unpacks to much is given out in small pieces, so that a reader with a limit
stops in time; what is fed without ever giving anything is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from robota.http.errors import HttpError

PIECE_BYTES = 256 * 1024
MAX_BARREN_BYTES = 1024 * 1024
"""Of packed data in a row that unpacks to nothing: empty blocks, or what follows the end."""


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
        try:
            return self._unpack.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            if not self._raw_too:
                raise HttpError("protocol", "its compressed body is broken") from error
        self._unpack = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        self._raw_too = False
        return self._decompress(data)
