"""What every dialect does alike with a request: groups of messages, tools, the arguments of calls."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from weakref import ref

from robota.core.encoded import EncodeGroup
from robota.core.jsontext import decode
from robota.core.messages import JsonObject, Message, ToolMessage
from robota.core.provider import ChatRequest, ToolSchema


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


class EncodedTools:
    """The JSON of tools in one dialect: each schema is encoded once, as long as somebody has it.

    Agents share the schemas of their tools, so this is a table for all providers of a dialect.
    """

    __slots__ = ("_encode", "_kept", "encodings")

    def __init__(self, encode: Callable[[ToolSchema], bytes]) -> None:
        self._encode = encode
        self._kept: dict[int, tuple[ref[ToolSchema], bytes]] = {}
        self.encodings = 0
        """How often a schema was encoded: the counted work that tests guard."""

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, tools: Iterable[ToolSchema]) -> list[bytes]:
        """The JSON of each tool."""
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


def read_arguments(text: str) -> JsonObject | None:
    """The arguments of a call, if they are a JSON object; anything else services refuse or fail on."""
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
