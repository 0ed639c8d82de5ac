"""What a server answers: status and headers at once, the body as it arrives."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from robota.http.decoding import find_decoder

if TYPE_CHECKING:
    from typing import Self


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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
