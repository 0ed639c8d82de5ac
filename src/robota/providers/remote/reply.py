"""Reads the reply of a robota host from its bytes. It does no I/O: feed it what arrives, then `finish`."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.messages import AssistantMessage
from robota.core.provider import Chunk
from robota.providers.remote.wire import decode_event
from robota.providers.wire.errors import quote
from robota.providers.wire.reply import MAX_REPLY_BYTES
from robota.providers.wire.sse import EventSplitter, ServerSentEvent

_FIX = "check the server URL"
_MAX_QUOTE = 200
_LOOK = 4096
"""Bytes that are kept to see what kind of reply it is, and to quote from."""


class RemoteReader:
    """Gives out the chunks of one reply. Only the whole message, its last event, says that it is complete."""

    __slots__ = (
        "_known", "_provider", "_secrets", "_size", "_splitter", "_start", "cut", "failure", "message",
    )  # fmt: skip

    def __init__(self, provider: str, secrets: Sequence[str] = ()) -> None:
        self.message: AssistantMessage | None = None
        """The whole answer, once it has come."""
        self.failure: RobotaError | None = None
        """What is wrong with the reply; `finish` will raise it."""
        self.cut: RobotaError | None = None
        """Why the connection ended, to be set from outside."""
        self._provider = provider
        self._secrets = secrets
        self._splitter = EventSplitter(provider=provider)
        self._start = b""
        self._size = 0
        self._known = False
        """Some event of a host has come."""

    @property
    def over(self) -> bool:
        """Nothing more is worth reading."""
        return self.message is not None or self.failure is not None

    def feed(self, raw: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        self._size += len(raw)
        try:
            if self._size > MAX_REPLY_BYTES:
                raise self._refuse(f"sent more than {MAX_REPLY_BYTES >> 20} MiB in one reply")
            if not self._known:
                self._look(raw)
            for event in self._splitter.feed(raw):
                self._read(event, chunks)
                if self.over:
                    break
        except RobotaError as error:
            self.failure = error
        return chunks

    def finish(self) -> AssistantMessage:
        """The answer as a whole; raises what went wrong."""
        if self.failure is not None:
            raise self.failure
        if self.message is None:
            raise self.cut or NetworkError(
                f"{self._provider} closed the connection before the reply was complete; try again, or "
                f"{_FIX} if it never answers.",
                provider=self._provider,
            )
        return self.message

    def _look(self, raw: bytes) -> None:
        """Recognise what is no event stream at all by its first character."""
        self._start = (self._start + raw[:_LOOK]).lstrip()[:_LOOK]
        if self._start.startswith(b"<"):
            raise self._refuse("answered with a web page")
        if self._start[:1] in (b"{", b"["):
            raise self._refuse(f"sent no stream of a robota host ({self._quote(self._start)})")

    def _read(self, event: ServerSentEvent, chunks: list[Chunk]) -> None:
        try:
            told = decode_event(event.event, event.data, self._secrets)
        except ValueError:
            raise self._refuse(
                f"sent an event that cannot be read ({event.event}: {self._quote(event.data)})"
            ) from None
        if told is None:
            return
        self._known = True
        if isinstance(told, AssistantMessage):
            self.message = told
        elif isinstance(told, RobotaError):
            self.failure = told
        else:
            chunks.append(told)

    def _quote(self, data: bytes) -> str:
        return quote(data[:_LOOK].decode("utf-8", "replace"), self._secrets, _MAX_QUOTE)

    def _refuse(self, what: str) -> ProviderError:
        return ProviderError(f"{self._provider} {what}; {_FIX}.", provider=self._provider, status=200)
