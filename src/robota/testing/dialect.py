"""What the model server must know of a vendor's protocol, and nothing else of it.

One `Dialect` per protocol: which paths are its own, how a request reads, how a reply is said. Chat
Completions is `robota.testing.wire_chat`; another protocol is another module and one more entry in
`robota.testing.model_server.DIALECTS`. HTTP, Server-Sent Events framing and every fault belong to the server.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject, TokenUsage, ToolCall
from robota.core.provider import Chunk

Said: TypeAlias = str | Chunk
"""A step of a script that a model says; a text is one delta."""
ServerSentEvent: TypeAlias = tuple[str, bytes]
"""Name (empty for none) and data of one event."""

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError)
"""What reading a request raises that has another shape than the protocol."""
DEFAULT_USAGE = TokenUsage(10, 5)
"""What a reply costs whose script does not say."""


class Turn(Struct, frozen=True):
    """One message of a request, read from whatever the protocol makes of it."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""
    """The id of the call a tool message answers."""


class Conversation(Struct, frozen=True):
    """What a request says to the model, the same for every protocol."""

    turns: tuple[Turn, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools on offer."""

    def texts(self, role: str) -> list[str]:
        return [turn.text for turn in self.turns if turn.role == role]


class ReplyEncoder(Protocol):
    """Says one reply. `begin`, then `say` for each step, then `end`; or `whole` instead of all three."""

    @property
    def end_mark(self) -> ServerSentEvent | None:
        """The event after which a client may stop reading, if the protocol has one."""
        ...

    def begin(self, first: Said | None) -> Iterable[ServerSentEvent]: ...
    def say(self, said: Said) -> Iterable[ServerSentEvent]: ...
    def end(self) -> Iterable[ServerSentEvent]: ...
    def whole(self, said: Sequence[Said]) -> JsonObject:
        """The reply as one JSON document, for a client that does not stream."""
        ...


class Dialect(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def base_path(self) -> str:
        """What clients of the protocol expect at the end of their base URL."""
        ...

    @property
    def delta_name(self) -> str:
        """The name of the events that carry text; empty where events have none."""
        ...

    def serves(self, path: str) -> bool:
        """Whether a POST to this path asks the model something in this protocol."""
        ...

    def wants_stream(self, path: str, body: JsonObject) -> bool: ...
    def check(self, body: JsonObject) -> str | None:
        """Why the vendor would refuse this request, or `None`."""
        ...

    def read(self, body: JsonObject) -> Conversation: ...
    def variant(self, path: str, body: JsonObject) -> Hashable:
        """What of the request the reply's bytes depend on, so that they can be prepared once."""
        ...

    def encoder(self, path: str, body: JsonObject) -> ReplyEncoder: ...
    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        """A failure that is told inside a stream which began well."""
        ...

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        """An event as a later version of the protocol might have it."""
        ...

    def error_body(self, status: int, message: str) -> JsonObject: ...


def read_arguments(text: str) -> Json:
    """The arguments of a call where a protocol has them as JSON; what is none stays the text that it is."""
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return text


def refuse(said: object, dialect: str) -> ConfigurationError:
    """The error for a step that cannot be said in a protocol."""
    return ConfigurationError(
        f"{type(said).__name__} cannot be said in {dialect}; write the bytes with RawBytes, "
        "or use ScriptedProvider, which plays every chunk."
    )
