"""A history as the items of a Responses request: messages, reasoning, calls and their outputs.

The API wants every output to follow its call and every call to have an output, under ids of its own. What a
history lacks there (a call that was compacted away, a result that never came) is filled in on the wire only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImageUriPart,
    JsonObject,
    Message,
    Part,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from robota.providers.encoding import read_arguments

MAX_ID_LENGTH = 64
SURELY_UNIQUE_LENGTH = 20
"""Ids of this length are random; shorter ones (`call_0`) may come again in a later turn."""
PHASES = ("commentary", "final_answer")
"""What newer models call their own messages; they want to see it again."""
UNANSWERED = "No result is known for this call."


class ItemDialect(Struct, frozen=True):
    """What the model takes; the key under which a history keeps its wire form."""

    images: bool = True
    files: bool = True
    instructions: bool = True
    """Whether the system prompt travels beside the items; otherwise all system messages are items."""


class ItemEncoder:
    """Encodes the groups of one request's messages, which must be handed over in their order."""

    __slots__ = ("_at", "_dialect", "_first_uses", "_leading", "_messages")

    def __init__(self, messages: Sequence[Message], dialect: ItemDialect) -> None:
        self._messages = messages
        self._dialect = dialect
        self._leading = _count_leading(messages) if dialect.instructions else 0
        self._at: int | None = None
        self._first_uses: dict[str, int] | None = None

    @property
    def instructions(self) -> str | None:
        """The system messages at the beginning, which travel outside the items."""
        texts = [message.content for message in self._messages[: self._leading]]
        return "\n\n".join(texts) or None

    def encode_group(self, group: Sequence[Message]) -> bytes:
        """The group's items with commas between them; empty when it has none."""
        if self._at is None:
            self._at = self._find(group[0])
        at = self._at
        self._at += len(group)
        return b",".join(map(encode, self._items(group, at)))

    def encode_tail(self) -> bytes:
        """Outputs for calls at the very end, which are not kept because their results may still come."""
        return b",".join(map(encode, self._missing_outputs(len(self._messages))))

    def _find(self, first: Message) -> int:
        """Where a group begins. Those before it were encoded earlier, so it is close to the end."""
        messages = self._messages
        return next((at for at in range(len(messages) - 1, -1, -1) if messages[at] is first), 0)

    def _items(self, group: Sequence[Message], at: int) -> Iterator[JsonObject]:
        if isinstance(group[0], ToolMessage):
            yield from self._results(group, at)
            return
        yield from self._missing_outputs(at)
        for message in group:
            if isinstance(message, AssistantMessage):
                yield from self._assistant(message, at)
            elif isinstance(message, UserMessage):
                yield {"role": "user", "content": self._content(message)}
            elif at >= self._leading:
                role = "developer" if self._dialect.instructions else "system"
                yield {"role": role, "content": message.content}

    # --- what the model said ---------------------------------------------------------------------------

    def _assistant(self, message: AssistantMessage, at: int) -> Iterator[JsonObject]:
        if not message.content and not message.tool_calls:
            return  # reasoning that nothing follows is refused
        ids = self._call_ids(message, at)
        known = {call.id for call in message.tool_calls}
        thoughts = [
            (_following_call(block), item) for block in message.reasoning if (item := _thought(block))
        ]
        yield from (item for before, item in thoughts if before not in known)
        if message.content:
            phase = message.metadata.get("phase")
            labels = {"phase": phase} if phase in PHASES else {}
            # the type can be left out of all items but this one, where some servers insist on it
            yield {"type": "message", "role": "assistant", "content": message.content, **labels}
        for call, wire_id in zip(message.tool_calls, ids, strict=True):
            yield from (item for before, item in thoughts if before == call.id)
            yield _call(wire_id, call.name, call.arguments)

    # --- what tools answered ---------------------------------------------------------------------------

    def _results(self, group: Sequence[Message], at: int) -> Iterator[JsonObject]:
        waiting = self._waiting(at)
        for number, message in enumerate(group):
            if not isinstance(message, ToolMessage):
                continue
            known = next((pair for pair in waiting if pair[0] == message.tool_call_id), None)
            if known is not None:
                waiting.remove(known)
                yield _output(known[1], self._output_content(message))
            else:  # its call is gone; as bare text the result would gain the weight of a user's words
                spare = f"call_{at}_{number}_result"
                yield _call(spare, message.name or "tool", "{}")
                yield _output(spare, self._output_content(message))
        yield from (_output(wire_id, UNANSWERED) for _, wire_id in waiting)

    def _missing_outputs(self, at: int) -> Iterator[JsonObject]:
        return (_output(wire_id, UNANSWERED) for _, wire_id in self._waiting(at))

    def _waiting(self, at: int) -> list[tuple[str, str]]:
        """The calls of the message before this place: their ids in the history and on the wire."""
        before = self._messages[at - 1] if at else None
        if not isinstance(before, AssistantMessage) or not before.tool_calls:
            return []
        ids = self._call_ids(before, at - 1)
        return [(call.id, wire_id) for call, wire_id in zip(before.tool_calls, ids, strict=True)]

    def _call_ids(self, message: AssistantMessage, at: int) -> list[str]:
        ids: list[str] = []
        for number, call in enumerate(message.tool_calls):
            fits = 0 < len(call.id) <= MAX_ID_LENGTH and call.id not in ids
            if fits and len(call.id) < SURELY_UNIQUE_LENGTH:
                fits = self._first_use(call.id) == at
            ids.append(call.id if fits else f"call_{at}_{number}")
        return ids

    def _first_use(self, call_id: str) -> int:
        if self._first_uses is None:
            self._first_uses = {}
            for at, message in enumerate(self._messages):
                if isinstance(message, AssistantMessage):
                    for call in message.tool_calls:
                        self._first_uses.setdefault(call.id, at)
        return self._first_uses[call_id]

    # --- parts -----------------------------------------------------------------------------------------

    def _content(self, message: UserMessage) -> str | list[JsonObject]:
        return [self._part(part) for part in message.parts] if message.parts else message.content

    def _output_content(self, message: ToolMessage) -> str | list[JsonObject]:
        media = [part for part in message.parts if not isinstance(part, TextPart)]
        if not media:
            return message.content
        text = [_text(message.content)] if message.content else []
        return text + [self._part(part) for part in media]

    def _part(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return _text(part.text)
        if isinstance(part, FilePart):
            if not self._dialect.files:
                return _text(f"[file {part.name} ({part.mime_type}) left out: this model takes no files]")
            data = f"data:{part.mime_type};base64,{part.data}"
            return {"type": "input_file", "filename": part.name or "file", "file_data": data}
        if not self._dialect.images:
            return _text(f"[image ({part.mime_type or 'unknown type'}) left out: this model takes no images]")
        uri = part.uri if isinstance(part, ImageUriPart) else f"data:{part.mime_type};base64,{part.data}"
        return {"type": "input_image", "image_url": uri, "detail": "auto"}


def _count_leading(messages: Sequence[Message]) -> int:
    places = (at for at, message in enumerate(messages) if not isinstance(message, SystemMessage))
    return next(places, len(messages))


def _thought(block: ReasoningBlock) -> JsonObject | None:
    """The reasoning item to send back; `None` for thinking of other providers, which this one cannot read."""
    data = block.data
    if not isinstance(data, dict) or data.get("type") != "reasoning" or not data.get("encrypted_content"):
        return None
    return {name: value for name, value in data.items() if name != "before"}


def _following_call(block: ReasoningBlock) -> str | None:
    before = block.data.get("before") if isinstance(block.data, dict) else None
    return before if isinstance(before, str) else None


def _call(wire_id: str, name: str, arguments: str) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": wire_id,
        "name": name,
        "arguments": "{}" if read_arguments(arguments) is None else arguments,
    }


def _output(wire_id: str, output: str | list[JsonObject]) -> JsonObject:
    return {"type": "function_call_output", "call_id": wire_id, "output": output}


def _text(text: str) -> JsonObject:
    return {"type": "input_text", "text": text}
