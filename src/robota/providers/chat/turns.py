"""The messages of a Chat Completions request, as fragments that are encoded once and joined as they are.

A fragment is one group of messages as JSON objects with commas between them. The API wants every call
answered at once and every result behind its call; what a history lacks there (a call that was compacted away,
a result that never came) is filled in on the wire only. What an endpoint cannot take (images, files) is
replaced by a note, so that the model knows that something was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    JsonObject,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.providers.chat.thoughts import details_of, thinking_of
from robota.providers.encoding import read_arguments

MAX_ID_LENGTH = 40
UNANSWERED = "No result is known for this call."


class ChatDialect(Struct, frozen=True):
    """How one endpoint wants its messages; the key under which a history keeps their wire form."""

    images: bool = False
    files: bool = False
    reasoning_field: str | None = None
    """Where past thinking is sent back; `None` leaves it out, which most endpoints expect."""
    reasoning_placeholder: str | None = None
    """Stands there for answers without thinking of this wire, for endpoints that insist on some."""
    reasoning_details: bool = False
    """Whether the endpoint wants back the details of its thinking."""
    max_tokens_field: str = "max_tokens"
    output_schema: bool = False


class TurnEncoder:
    """Encodes the groups of one request's messages, which must be handed over in their order."""

    __slots__ = ("_at", "_dialect", "_messages")

    def __init__(self, messages: Sequence[Message], dialect: ChatDialect) -> None:
        self._messages = messages
        self._dialect = dialect
        self._at: int | None = None

    def encode_group(self, group: Sequence[Message]) -> bytes:
        if self._at is None:
            self._at = self._find(group[0])
        at = self._at
        self._at += len(group)
        if isinstance(group[0], ToolMessage):
            wire = [encode(message) for message in self._results(group, at)]
            if self._dialect.images:
                wire += self._encode_result_images(group)
        else:
            wire = [encode(message) for message in self._missing_results(at)]
            wire += [encode(self._encode_message(message, at)) for message in group]
        return b",".join(wire)

    def encode_tail(self) -> bytes:
        """Results for calls at the very end, which are not kept because the real ones may still come."""
        return b",".join(map(encode, self._missing_results(len(self._messages))))

    def _find(self, first: Message) -> int:
        """Where a group begins. Those before it were encoded earlier, so it is close to the end."""
        messages = self._messages
        return next((at for at in range(len(messages) - 1, -1, -1) if messages[at] is first), 0)

    # --- what tools answered -----------------------------------------------------------------------------

    def _results(self, group: Sequence[Message], at: int) -> Iterator[JsonObject]:
        waiting = self._waiting(at)
        strays: list[tuple[str, ToolMessage]] = []
        for number, message in enumerate(group):
            if not isinstance(message, ToolMessage):
                continue
            known = next((pair for pair in waiting if pair[0] == message.tool_call_id), None)
            if known is None:
                strays.append((f"call_{at}_{number}_result", message))
            else:
                waiting.remove(known)
                yield _result(known[1], self._result_text(message))
        yield from (_result(wire_id, UNANSWERED) for _, wire_id in waiting)
        for wire_id, message in strays:  # as bare text they would gain the weight of a user's words
            call = _call(wire_id, message.name or "tool", "{}")
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
            yield _result(wire_id, self._result_text(message))

    def _missing_results(self, at: int) -> Iterator[JsonObject]:
        return (_result(wire_id, UNANSWERED) for _, wire_id in self._waiting(at))

    def _waiting(self, at: int) -> list[tuple[str, str]]:
        """The calls of the message before this place: their ids in the history and on the wire."""
        before = self._messages[at - 1] if at else None
        if not isinstance(before, AssistantMessage) or not before.tool_calls:
            return []
        wire_ids = _wire_ids(before.tool_calls, at - 1)
        return [(call.id, wire_id) for call, wire_id in zip(before.tool_calls, wire_ids, strict=True)]

    # --- messages ------------------------------------------------------------------------------------

    def _encode_message(self, message: Message, at: int) -> JsonObject:
        if isinstance(message, AssistantMessage):
            return self._encode_assistant(message, at)
        if isinstance(message, UserMessage) and message.parts:
            return {"role": "user", "content": [self._encode_part(part) for part in message.parts]}
        return {"role": message.role, "content": message.content}

    def _encode_assistant(self, message: AssistantMessage, at: int) -> JsonObject:
        calls = message.tool_calls
        wire: JsonObject = {"role": "assistant", "content": message.content or (None if calls else "")}
        if calls:
            wire_ids = _wire_ids(calls, at)
            wire["tool_calls"] = [
                _call(wire_id, call.name, call.arguments)
                for call, wire_id in zip(calls, wire_ids, strict=True)
            ]
        self._add_thinking(message, wire)
        return wire

    def _add_thinking(self, message: AssistantMessage, wire: JsonObject) -> None:
        dialect = self._dialect
        if dialect.reasoning_field:
            thinking = thinking_of(message.reasoning) or dialect.reasoning_placeholder
            if thinking:
                wire[dialect.reasoning_field] = thinking
        if dialect.reasoning_details and (details := details_of(message.reasoning)):
            wire["reasoning_details"] = details

    def _encode_part(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return {"type": "text", "text": part.text}
        if isinstance(part, FilePart):
            if not self._dialect.files:
                return _note(f"file {part.name or 'without a name'} ({part.mime_type})", "files")
            data = f"data:{part.mime_type};base64,{part.data}"
            return {"type": "file", "file": {"filename": part.name or "file", "file_data": data}}
        if not self._dialect.images:
            return _note(f"image ({part.mime_type or 'unknown type'})", "images")
        uri = part.uri if isinstance(part, ImageUriPart) else f"data:{part.mime_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": uri}}

    def _result_text(self, message: ToolMessage) -> str:
        """A result's text; its other parts as notes, because this message can hold nothing but text."""
        notes = []
        for part in message.parts:
            if isinstance(part, FilePart) or (not isinstance(part, TextPart) and not self._dialect.images):
                note = _note(f"{part.mime_type or 'unknown type'} content", "it in a tool result")
                notes.append(note["text"])
        return "\n".join(filter(None, (message.content, *notes)))

    def _encode_result_images(self, group: Sequence[Message]) -> list[bytes]:
        """The images of a group of tool results, as the user message that has to carry them."""
        content: list[JsonObject] = []
        for message in group:
            if isinstance(message, ToolMessage):
                images = [part for part in message.parts if isinstance(part, ImagePart | ImageUriPart)]
                if images:
                    content.append({"type": "text", "text": f"Images in the result of {message.name}:"})
                    content += map(self._encode_part, images)
        return [encode({"role": "user", "content": content})] if content else []


def _wire_ids(calls: Sequence[ToolCall], at: int) -> list[str]:
    """The ids of a message's calls; one that is missing, too long or there twice is replaced."""
    ids: dict[str, None] = {}
    for number, call in enumerate(calls):
        fits = 0 < len(call.id) <= MAX_ID_LENGTH and call.id not in ids
        ids[call.id if fits else f"call_{at}_{number}"] = None
    return list(ids)


def _call(wire_id: str, name: str, arguments: str) -> JsonObject:
    """A call with its arguments as the model wrote them; `{}` if they are no object: servers fail on it."""
    safe = "{}" if read_arguments(arguments) is None else arguments
    return {"id": wire_id, "type": "function", "function": {"name": name, "arguments": safe}}


def _result(wire_id: str, text: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": wire_id, "content": text}


def _note(what: str, kind: str) -> JsonObject:
    return {"type": "text", "text": f"[{what} left out: this endpoint does not take {kind}]"}
