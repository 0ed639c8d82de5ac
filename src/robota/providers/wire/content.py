"""What one reply says: the part of reading that every wire does in its own way.

A dialect is a `ReplyContent`: it turns decoded events into chunks, knows what an error looks like, when a
reply is whole, and which chunks close it. The bytes around it are `robota.providers.wire.reply`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from robota.core.errors import RobotaError
from robota.core.messages import Json, JsonObject, TokenUsage
from robota.core.provider import Chunk, MetadataChunk
from robota.providers.wire.errors import describe_error_event

_TOO_MANY = 2**53


class Peer(Struct, frozen=True):
    """Whose reply it is, for the words of an error."""

    provider: str
    request_id: str | None = None
    secrets: Sequence[str] = ()
    begun: bool = True
    """Whether a reply had begun, when it came to an error."""


class ReplyContent:
    """The content of one reply; what is certain only at the end is kept and told by `close`."""

    surface: ClassVar[str]
    """The API's name in native payloads."""
    format: ClassVar[str]
    """The API's name in sentences."""
    plain_key: ClassVar[str]
    """What an event has that is neither an end nor an error, so that most need no second look."""
    advice: ClassVar[str] = "check the base URL"
    """What to do when something else answers."""

    def __init__(self) -> None:
        self.finish_reason = ""
        """The service's own word for why it stopped; empty until it has said so."""
        self.done = False
        """The service said that this was all."""
        self.error: Json = None
        """Why the reply is worth nothing although it came to its end, if it says so."""
        self.announced = False
        self.usage: TokenUsage | None = None

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        """Add the event's chunks. The raw bytes go with its text; if it has none, they are returned."""
        raise NotImplementedError

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        """A reply that was not streamed; false if this is none."""
        raise NotImplementedError

    def close(self) -> list[Chunk]:
        """The chunks of a reply that is over and whole."""
        raise NotImplementedError

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        """What the event says went wrong, if it is about that; `named` events call themselves errors."""
        return reply.get("error") or (reply if named else None)  # an error may say nothing at all: `{}`

    def describe_error(self, error: Json, peer: Peer) -> RobotaError:
        return describe_error_event(
            error, peer.provider, request_id=peer.request_id, secrets=peer.secrets, begun=peer.begun
        )

    def announce(self, model: Json, response_id: Json, chunks: list[Chunk]) -> None:
        """Tell once who answers, as soon as an event says so."""
        values = {"model": model, "responseId": response_id}
        values = {name: value for name, value in values.items() if value and isinstance(value, str)}
        if values:
            self.announced = True
            chunks.append(MetadataChunk(values))


def count_of(record: Json, name: str) -> int:
    """A count of tokens, if it can be one."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if type(value) is int and 0 < value < _TOO_MANY else 0


def text_of(record: JsonObject, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
