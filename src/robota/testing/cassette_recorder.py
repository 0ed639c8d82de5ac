"""Traffic while it is recorded: requests in the order they began, replies as far as they came."""

from __future__ import annotations

import base64
from collections.abc import Callable

from robota.testing.cassette_file import Ending, Exchange, RecordedReply, SentRequest, split_events

KEPT_HEADERS = ("content-type", "location", "request-id", "retry-after", "x-request-id")
"""What adapters read from the head of a reply; everything else would only be noise, or a secret."""


class Take:
    """One exchange under way."""

    __slots__ = ("after", "data", "ended", "headers", "sent", "status")

    def __init__(self, sent: SentRequest, after: int) -> None:
        self.sent = sent
        self.after = after
        self.status = 0
        """0 while there is no answer."""
        self.headers: dict[str, str] = {}
        self.data = bytearray()
        self.ended: Ending | None = None

    def end(self, how: Ending) -> None:
        """Note how the reply ended; the first word on it counts."""
        self.ended = self.ended or how

    @property
    def failure(self) -> str:
        """What went wrong, empty for a reply to keep."""
        if not self.status:
            return "no answer"
        if self.status >= 400:
            return f"status {self.status}"
        return "a broken connection" if self.ended == "broken" else ""

    def reply(self, hide: Callable[[str], str]) -> RecordedReply:
        streamed = "event-stream" in self.headers.get("content-type", "")
        pieces = split_events(bytes(self.data)) if streamed else [bytes(self.data)] if self.data else []
        ended = self.ended or "early"
        try:
            texts = tuple(hide(piece.decode()) for piece in pieces)
        except UnicodeDecodeError:
            encoded = tuple(base64.b64encode(piece).decode() for piece in pieces)
            return RecordedReply(self.status, self.headers, encoded, "base64", ended)
        return RecordedReply(self.status, self.headers, texts, "text", ended)


class Recorder:
    """Collects takes and makes exchanges of them."""

    def __init__(self) -> None:
        self._takes: list[Take] = []

    def begin(self, sent: SentRequest) -> Take:
        answered = next((at for at, take in enumerate(self._takes) if take.ended is None), len(self._takes))
        take = Take(sent, answered)
        self._takes.append(take)
        return take

    def failures(self) -> list[str]:
        """What went wrong, of every reply that a recording leaves out by default."""
        return [take.failure for take in self._takes if take.failure]

    def exchanges(self, *, errors: bool, hide: Callable[[str], str]) -> list[Exchange]:
        """What is written down; a request without any answer never is."""
        kept = [take.status > 0 and (errors or not take.failure) for take in self._takes]
        exchanges: list[Exchange] = []
        for at, take in enumerate(self._takes):
            if kept[at]:
                after = sum(kept[: take.after])
                exchanges.append(
                    Exchange(take.sent, take.reply(hide), None if after == len(exchanges) else after)
                )
        return exchanges
