"""What every wire does alike with a conversation: groups of messages, sets of tools, a call's arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from robota.core.encoded import EncodeGroup
from robota.core.jsontext import decode
from robota.core.messages import JsonObject, Message, ToolMessage
from robota.core.provider import ChatRequest, ToolSchema

_MAX_TOOL_SETS = 32


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


class ToolSets:
    """The JSON of tool sets, kept as long as the same tuple is used."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[int, bool], tuple[tuple[ToolSchema, ...], bytes]] = {}

    def find(
        self, tools: tuple[ToolSchema, ...], encode: Callable[[tuple[ToolSchema, ...]], bytes], *,
        variant: bool = False,
    ) -> bytes:  # fmt: skip
        """The set's JSON; `variant` tells two forms of it apart."""
        key = (id(tools), variant)
        kept = self._kept.get(key)
        if kept is None or kept[0] is not tools:
            if len(self._kept) >= _MAX_TOOL_SETS:
                self._kept.clear()
            kept = self._kept[key] = (tools, encode(tools))
        return kept[1]


def read_arguments(text: str) -> JsonObject | None:
    """The arguments of a call, if they are a JSON object; anything else services refuse or fail on."""
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
