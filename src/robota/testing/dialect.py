"""What the model server must know of a vendor's protocol, and nothing else of it.

One `Dialect` per protocol: which paths are its own, how a request reads, how a reply is said. Chat
Completions is `robota.testing.wire_chat`; another protocol is another module and one more entry in
`robota.testing.model_server.DIALECTS`. HTTP, Server-Sent Events framing and every fault belong to the server.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject, ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)

Said: TypeAlias = str | Chunk
"""A step of a script that a model says; a text is one delta."""
ServerSentEvent: TypeAlias = tuple[str, bytes]
"""Name (empty for none) and data of one event."""
Events: TypeAlias = Iterable[ServerSentEvent]

UNREADABLE = (LookupError, TypeError, AttributeError, ValueError)
"""What reading a request raises that has another shape than the protocol."""
DEFAULT_USAGE = TokenUsage(10, 5)
"""What a reply costs whose script does not say."""
ARGUMENT_FRAGMENT = 12
"""Characters of a tool call's arguments per delta."""


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


class ReplyEncoder:
    """Says one reply. `begin`, then `say` for each step, then `end`; or `whole` instead of all three."""

    protocol: ClassVar[str]
    """Its name in sentences."""
    end_mark: ClassVar[ServerSentEvent | None] = None
    """The event after which a client may stop reading, if the protocol has one."""

    def __init__(self) -> None:
        self.usage = DEFAULT_USAGE
        self.stop: StopChunk | None = None

    def begin(self, first: Said | None) -> Events:
        return ()

    def say(self, said: Said) -> Events:
        match said:
            case str():
                return self.text(said)
            case TextChunk():
                return self.text(said.text)
            case ReasoningChunk():
                return self.think(said.text)
            case ReasoningBlock():
                return self.thought(said)
            case ToolInputChunk():
                return self.fragment(said)
            case ToolCall():
                return self.call(said)
            case ServerToolChunk():
                return self.hosted(said)
        self._keep(said)
        return ()

    def _keep(self, said: Said) -> None:
        """Facts that colour what follows instead of being events themselves."""
        match said:
            case TokenUsage():
                self.usage = said
            case StopChunk():
                self.stop = said
            case MetadataChunk():
                self.note(dict(said.values))
            case _:
                raise self.refuse(said)

    def end(self) -> Events:
        raise NotImplementedError

    def whole(self, said: Sequence[Said]) -> JsonObject:
        """The reply as one JSON document, for a client that does not stream."""
        raise NotImplementedError

    def text(self, text: str) -> Events:
        raise NotImplementedError

    def think(self, text: str) -> Events:
        raise NotImplementedError

    def thought(self, block: ReasoningBlock) -> Events:
        """Thinking as a whole, or the signature of what was streamed."""
        raise self.refuse(block)

    def fragment(self, chunk: ToolInputChunk) -> Events:
        raise NotImplementedError

    def call(self, call: ToolCall) -> Events:
        raise NotImplementedError

    def hosted(self, tool: ServerToolChunk) -> Events:
        raise self.refuse(tool)

    def note(self, facts: JsonObject) -> None:
        """Metadata of the reply."""
        raise NotImplementedError

    def refuse(self, said: object) -> ConfigurationError:
        """The error for a step that cannot be said in this protocol."""
        return ConfigurationError(
            f"{type(said).__name__} cannot be said in {self.protocol}; write the bytes with RawBytes, "
            "or use ScriptedProvider, which plays every chunk."
        )

    def decoded(self, said: Sequence[Said]) -> Iterator[JsonObject]:
        """All events of a reply with these steps, as a client reads them."""
        for _, data in self.begin(said[0] if said else None):
            yield msgspec.json.decode(data)
        for step in said:
            for _, data in self.say(step):
                yield msgspec.json.decode(data)
        for _, data in self.end():
            yield msgspec.json.decode(data)


class Dialect:
    """A protocol. Most are told apart by the end of a path, and ask for a stream in the body."""

    name: ClassVar[str]
    reply: ClassVar[Callable[..., ReplyEncoder]]
    """Makes what says one reply, of the variant of its request."""
    path: ClassVar[str] = ""
    """How the paths end whose POST asks the model something; any prefix may stand before it."""
    base_path: ClassVar[str] = ""
    """What clients of the protocol expect at the end of their base URL."""
    delta_name: ClassVar[str] = ""
    """The name of the events that carry text; empty where events have none."""

    def serves(self, path: str) -> bool:
        return path.endswith(self.path)

    def wants_stream(self, path: str, body: JsonObject) -> bool:
        return body.get("stream") is True

    def check(self, body: JsonObject) -> str | None:
        """Why the vendor would refuse this request, or `None`."""
        return next(self.problems(body), None)

    def problems(self, body: JsonObject) -> Iterator[str]:
        """The same, one by one; behind the first nothing is certain."""
        raise NotImplementedError

    def read(self, body: JsonObject) -> Conversation:
        raise NotImplementedError

    def variant(self, path: str, body: JsonObject) -> tuple[Hashable, ...]:
        """What of the request the reply's bytes depend on, so that they can be prepared once."""
        return (str(body.get("model", "")),)

    def encoder(self, path: str, body: JsonObject) -> ReplyEncoder:
        return self.reply(*self.variant(path, body))

    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        """A failure that is told inside a stream which began well."""
        raise NotImplementedError

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        """An event as a later version of the protocol might have it."""
        raise NotImplementedError

    def error_body(self, status: int, message: str) -> JsonObject:
        raise NotImplementedError


def pieces_of(call: ToolCall, index: int) -> Iterator[ToolInputChunk]:
    """A call as vendors stream it: its id and name, then its arguments in fragments."""
    yield ToolInputChunk(index, "", call.id, call.name)
    for at in range(0, len(call.arguments), ARGUMENT_FRAGMENT):
        yield ToolInputChunk(index, call.arguments[at : at + ARGUMENT_FRAGMENT])


def read_arguments(text: Json) -> Json:
    """The arguments of a call where a protocol has them as JSON; what is none stays what it is."""
    try:
        return msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, TypeError):
        return text
