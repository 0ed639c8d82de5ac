"""What a script may tell the model server to do: everything a model says, and everything a network does.

A reply is a text, a list of steps, an `HttpError`, a `Cut`, or a function that gets the request and returns
one of these. Texts and chunks mean what they mean to `ScriptedProvider`. `ContentType`, `Drip`, `Crlf`,
`NoEndMark`, `CallIds` and `Cut(after_bytes=…)` shape the whole reply wherever they stand; every other step
happens in its place. A reply of raw steps alone is exactly those bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import TypeAlias, cast

from msgspec import Struct, field

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.core.provider import Chunk
from robota.providers.scripted import Delay, Stall, check_reply, number_calls
from robota.testing.http_server import Latch, ReceivedRequest


class HttpError(Struct, frozen=True):
    """An answer that is no reply. Without a body it carries the protocol's own error JSON.

    A string is sent as text, `<` at its beginning makes it HTML, anything else is sent as JSON.
    """

    status: int
    body: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | datetime | None = None
    """How long to wait before the next request: seconds, or the moment when it may come."""

    @classmethod
    def html(cls, status: int = 502) -> HttpError:
        """The page a proxy sends when what is behind it is gone."""
        return cls(
            status, f"<html><head><title>{status}</title></head><body><h1>Bad gateway</h1></body></html>"
        )


class Cut(Struct, frozen=True, kw_only=True):
    """Close the connection here, or after so many bytes of the body. As a whole reply: without a word.

    `clean` ends the body as if it were complete, as a proxy does that lost its upstream.
    """

    after_bytes: int | None = None
    clean: bool = False


class RawBytes(Struct, frozen=True):
    """These bytes, as they are."""

    data: bytes


class Malformed(Struct, frozen=True):
    """An event of the kind that carries text, whose data is not JSON."""

    data: str = '{"id": "half an event'


class ErrorEvent(Struct, frozen=True):
    """A failure told inside a stream that began with status 200. Nothing follows it."""

    message: str = "The server had an error while processing your request."
    kind: str = "server_error"


class UnknownEvent(Struct, frozen=True):
    """An event of a kind that no client has heard of yet; without a stream, a field that none knows."""

    kind: str = "scripted.novelty"
    fields: Mapping[str, Json] = field(default_factory=dict)


class KeepAlive(Struct, frozen=True):
    """A comment line. With `every` it is repeated at that interval in seconds until the client gives up."""

    text: str = "keep-alive"
    every: float | None = None


class Drip(Struct, frozen=True):
    """Send the body in pieces of this many bytes, so that characters, lines and events arrive torn.

    The pieces leave one by one; `delay` adds seconds between them, and with a `tap` each of them waits for
    the test. A large number sends many events at once.
    """

    bytes_per_chunk: int = 1
    delay: float = 0.0
    tap: Tap | None = None


class ContentType(Struct, frozen=True):
    """Announce the reply as something else."""

    value: str


class Crlf(Struct, frozen=True):
    """End the lines of the event stream with carriage return and line feed."""


class NoEndMark(Struct, frozen=True):
    """Leave out the event that marks the end of the stream, such as `[DONE]`."""


class CallIds(Struct, frozen=True):
    """Give every tool call of the reply this id; the empty text gives them none."""

    id: str = ""


class Gate:
    """A place in a reply where the server waits until the test opens it."""

    __slots__ = ("opened", "reached")

    def __init__(self) -> None:
        self.reached = Latch("the reply reached its gate")
        self.opened = Latch("the test opened the gate")

    def open(self) -> None:
        self.opened.open()


class Forever(Struct, frozen=True):
    """The same text again and again: until the gate opens, or until the client gives up."""

    text: str
    until: Gate | None = None
    every: float = 0.001
    """Seconds between two of them."""


class Tap(Struct, eq=False):
    """What a dripping reply waits for: `tick()` lets one piece out. Ticks may come early, from any thread."""

    _lock: Lock = field(default_factory=Lock)
    _ticks: int = 0
    _waiting: deque[Callable[[], object]] = field(default_factory=deque)

    def tick(self, pieces: int = 1) -> None:
        with self._lock:
            self._ticks += pieces
        self._release()

    def then(self, callback: Callable[[], object]) -> None:
        """Call it with the next tick that nobody else takes."""
        with self._lock:
            self._waiting.append(callback)
        self._release()

    def _release(self) -> None:
        while True:
            with self._lock:
                if not self._ticks or not self._waiting:
                    return
                self._ticks -= 1
                callback = self._waiting.popleft()
            callback()


Wait: TypeAlias = Delay | Stall | Gate
ModelStep: TypeAlias = (
    str | Chunk | Wait | HttpError | Cut | RawBytes | Malformed | ErrorEvent | UnknownEvent | KeepAlive
    | Forever | Drip | ContentType | Crlf | NoEndMark | CallIds
)  # fmt: skip
ModelReply: TypeAlias = ModelStep | Sequence[ModelStep] | Callable[[ReceivedRequest], "ModelReply"]


def settle(reply: ModelReply, request: ReceivedRequest) -> tuple[ModelStep, ...] | str | HttpError | Cut:
    """The reply with every function called."""
    while callable(reply) and not isinstance(reply, type):
        reply = reply(request)
    return freeze(reply)


def freeze(
    reply: ModelReply,
) -> tuple[ModelStep, ...] | str | HttpError | Cut:
    """The reply as something that cannot change, refused when a step means nothing to a server."""
    if isinstance(reply, (str, HttpError, Cut)):
        return reply
    if isinstance(reply, ModelStep):
        return (reply,)
    check_reply(reply)
    steps: tuple[ModelStep, ...] = tuple(number_calls(cast("Sequence[ModelStep]", reply)))
    for kind in {type(step) for step in steps}:
        if not issubclass(kind, ModelStep):
            raise ConfigurationError(
                f"{kind.__name__} is not a step of a model server's reply. A failure on the wire is "
                "HttpError, ErrorEvent or Cut; the other steps are listed in robota.testing.model_script."
            )
    return steps
