"""What every dialect does alike with a request: groups of messages, tools, calls and results, own fields."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar
from weakref import ref

from msgspec import Struct

from robota.core.encoded import EncodeGroup
from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode, encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Json,
    JsonObject,
    Message,
    ToolMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema


class Encoder(Struct, frozen=True, kw_only=True):
    """Turns requests into bodies: bytes, or the objects that a client takes."""

    optional: ClassVar[tuple[str, ...]] = ()
    """Fields that requests can do without, should a service reject them."""
    left_out: frozenset[str] = frozenset()
    """Those of them that this service has rejected."""

    def encode(self, request: ChatRequest, model: str) -> Json:
        raise NotImplementedError

    def accepted(self, fields: JsonObject) -> JsonObject:
        """The fields without those that were rejected."""
        return {name: value for name, value in fields.items() if name not in self.left_out}


# --- messages ----------------------------------------------------------------------------------------


def encode_groups(request: ChatRequest, dialect: Hashable, encode_group: EncodeGroup) -> list[bytes]:
    """One fragment per group of the request's messages; a history keeps them under the dialect."""
    if request.history is not None:
        return request.history.fragments(dialect, len(request.messages), encode_group)
    return [encode_group(group) for group in split_groups(request.messages)]


def split_groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages as groups: each by itself, but tool results that follow one another together."""
    groups: list[list[Message]] = []
    for message in messages:
        if isinstance(message, ToolMessage) and groups and isinstance(groups[-1][-1], ToolMessage):
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


class GroupEncoder:
    """Where the groups of one request stand, and which calls wait for results there.

    Services want every call answered and every result behind its call, under ids of their own. What a history
    lacks there (a call that was compacted away, a result that never came) is filled in on the wire only.
    """

    __slots__ = ("_first_uses", "_next", "messages")

    def __init__(self, request: ChatRequest) -> None:
        self.messages = request.messages
        self._next = None if request.history is not None else 0
        self._first_uses: dict[str, int] | None = None

    def enter(self, group: Sequence[Message]) -> int:
        """The place of the group. Groups come in order; those in front may have been encoded before, so the
        first of them is looked for from the end.
        """
        at, messages = self._next, self.messages
        if at is None:
            at = next(at for at in range(len(messages) - 1, -1, -1) if messages[at] is group[0])
        self._next = at + len(group)
        return at

    def before(self, at: int) -> int:
        """The place of the message that one at this place follows on the wire; -1 if there is none."""
        return at - 1

    def takes_id(self, id: str, at: int) -> bool:
        """Whether the service takes this id of a call at this place."""
        raise NotImplementedError

    def is_first_use(self, id: str, at: int) -> bool:
        """Whether no call before this place has the id."""
        if self._first_uses is None:
            self._first_uses = {}
            for place, message in enumerate(self.messages):
                if isinstance(message, AssistantMessage):
                    for call in message.tool_calls:
                        self._first_uses.setdefault(call.id, place)
        return self._first_uses[id] == at

    def wire_ids(self, message: AssistantMessage, at: int) -> list[str]:
        """The ids on the wire of the calls at this place; one that cannot stand there is replaced."""
        ids: list[str] = []
        for number, call in enumerate(message.tool_calls):
            fits = call.id not in ids and self.takes_id(call.id, at)
            ids.append(call.id if fits else f"call_{at}_{number}")
        return ids

    def waiting(self, at: int) -> list[tuple[str, str]]:
        """The calls that wait for results at this place: their ids in the history and on the wire."""
        place = self.before(at)
        message = self.messages[place] if place >= 0 else None
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            return []
        known = (call.id for call in message.tool_calls)
        return list(zip(known, self.wire_ids(message, place), strict=True))


class CallEncoder(GroupEncoder):
    """For services that take calls and their results one by one, in a list with everything else."""

    __slots__ = ()

    def encode_group(self, group: Sequence[Message]) -> bytes:
        """The group's items with commas between them; empty when it has none."""
        at = self.enter(group)
        if isinstance(group[0], ToolMessage):
            items = self.results(group, at)
        else:
            items = chain(self._missing(at), *(self.say(message, at) for message in group))
        return b",".join(map(encode, items))

    def encode_tail(self) -> bytes:
        """Results for calls at the very end, which are not kept because the real ones may still come."""
        return b",".join(map(encode, self._missing(len(self.messages))))

    def results(self, group: Sequence[Message], at: int) -> Iterator[JsonObject]:
        waiting = self.waiting(at)
        strays: list[tuple[str, ToolMessage]] = []
        for number, message, wire_id in match_results(group, waiting):
            if wire_id is None:
                strays.append((f"call_{at}_{number}_result", message))
            else:
                yield self.result(wire_id, message)
        yield from (self.result(wire_id, None) for _, wire_id in waiting)
        for wire_id, message in strays:  # as bare text they would gain the weight of a user's words
            yield self.call(wire_id, message.name or "tool")
            yield self.result(wire_id, message)

    def _missing(self, at: int) -> Iterator[JsonObject]:
        return (self.result(wire_id, None) for _, wire_id in self.waiting(at))

    def say(self, message: Message, at: int) -> Iterable[JsonObject]:
        """The items of a message that is no result."""
        raise NotImplementedError

    def call(self, wire_id: str, name: str) -> JsonObject:
        """A call by itself, for a result whose own is gone."""
        raise NotImplementedError

    def result(self, wire_id: str, message: ToolMessage | None) -> JsonObject:
        """The result of a call; without a message there is none."""
        raise NotImplementedError


def match_results(
    group: Sequence[Message], waiting: list[tuple[str, str]]
) -> Iterator[tuple[int, ToolMessage, str | None]]:
    """Each result with its number and the wire id of its call, if that is known; `waiting` keeps the rest."""
    for number, message in enumerate(group):
        if isinstance(message, ToolMessage):
            known = next((pair for pair in waiting if pair[0] == message.tool_call_id), None)
            if known is not None:
                waiting.remove(known)
            yield number, message, None if known is None else known[1]


def read_arguments(text: str) -> JsonObject | None:
    """The arguments of a call, if they are a JSON object; anything else services refuse or fail on."""
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def safe_arguments(text: str) -> str:
    """The arguments as the model wrote them; `{}` if they are not an object."""
    return "{}" if read_arguments(text) is None else text


UNANSWERED = "No result is known for this call."


def note_left_out(part: ImagePart | ImageUriPart | FilePart) -> str:
    """Stands for a part that the model does not take, so that it knows that something was there."""
    if isinstance(part, FilePart):
        what, kind = f"file {part.name or 'without a name'} ({part.mime_type})", "files"
    else:
        what, kind = f"image ({part.mime_type or 'unknown type'})", "images"
    return f"[{what} left out: this endpoint does not take {kind}]"


def url_of(part: ImagePart | ImageUriPart | FilePart) -> str:
    return part.uri if isinstance(part, ImageUriPart) else f"data:{part.mime_type};base64,{part.data}"


# --- tools -------------------------------------------------------------------------------------------


class EncodedTools(Struct, eq=False):
    """The JSON of tools in one dialect: each schema is encoded once, as long as somebody has it.

    Agents share the schemas of their tools, so this is a table for all providers of a dialect.
    """

    _encode: Callable[[ToolSchema], bytes]
    _kept: dict[int, tuple[ref[ToolSchema], bytes]] = {}
    encodings: int = 0
    """How often a schema was encoded: the counted work that tests guard."""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, tools: Iterable[ToolSchema]) -> list[bytes]:
        kept = self._kept
        found = []
        for tool in tools:
            known = kept.get(id(tool))
            if known is None or known[0]() is not tool:  # the address of one that is gone is given away again
                known = kept[id(tool)] = self._keep(tool)
            found.append(known[1])
        return found

    def _keep(self, tool: ToolSchema) -> tuple[ref[ToolSchema], bytes]:
        self.encodings += 1
        place, kept = id(tool), self._kept

        def forget(gone: ref[ToolSchema]) -> None:
            if kept.get(place, (None,))[0] is gone:
                kept.pop(place, None)

        return ref(tool, forget), self._encode(tool)


# --- fields ------------------------------------------------------------------------------------------


def own_fields(settings: ModelSettings, *ours: str) -> JsonObject:
    """The caller's own fields but `tools`, which are added to ours; what holds the messages is refused."""
    taken = next((name for name in ours if name in settings.extra), None)
    if taken is not None:
        raise ConfigurationError(
            f"ModelSettings.extra cannot hold {taken!r}; pass messages in ChatRequest.messages."
        )
    return {name: value for name, value in settings.extra.items() if name != "tools"}


def without_none(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
