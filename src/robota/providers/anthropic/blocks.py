"""Content blocks of the Messages API, from the parts of our messages.

What the API has no block for (other image types, binary files) is replaced by a note, so that the model knows
that something was there. Text without a visible character has no block at all, because the API refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Json,
    JsonObject,
    Part,
    ReasoningBlock,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.providers.encoding import UNANSWERED, note_left_out, read_arguments

CONTENT_KEY = "anthropicContent"
"""Metadata of an assistant message whose blocks cannot be put together again from its text and its calls."""
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


class BlockDialect(Struct, frozen=True):
    """What the model takes; the key under which a history keeps its wire form."""

    images: bool = True
    files: bool = True

    def encode(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return text_block(part.text)
        if not (self.files if isinstance(part, FilePart) else self.images):
            return text_block(note_left_out(part))
        if isinstance(part, FilePart):
            return _file_block(part)
        if isinstance(part, ImagePart):
            return _image_block(part.mime_type, part.data)
        if part.uri.startswith("data:"):
            head, _, data = part.uri.removeprefix("data:").partition(",")
            return _image_block(head.partition(";")[0], data)
        return {"type": "image", "source": {"type": "url", "url": part.uri}}


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def user_blocks(message: UserMessage, dialect: BlockDialect) -> list[JsonObject]:
    parts = message.parts or (TextPart(message.content),)
    return [dialect.encode(part) for part in parts if not isinstance(part, TextPart) or part.text.strip()]


def result_block(message: ToolMessage, wire_id: str, dialect: BlockDialect) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": wire_id}
    others = [dialect.encode(part) for part in message.parts if not isinstance(part, TextPart)]
    text = message.content if message.content.strip() else ""
    if others:
        block["content"] = [text_block(text), *others] if text else others
    elif text:
        block["content"] = text
    if message.metadata.get("success") is False:
        block["is_error"] = True
    return block


def stray_result_block(message: ToolMessage) -> JsonObject:
    """A result whose call is not in the history any more: said as text, because nothing else is accepted."""
    return text_block(f"[Result of an earlier call of {message.name}]\n{message.content}")


def missing_result_block(wire_id: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": wire_id, "content": UNANSWERED, "is_error": True}


def assistant_blocks(message: AssistantMessage, wire_ids: Sequence[str]) -> list[JsonObject]:
    """The blocks of an answer in the order in which the API wants them back: thinking, text, calls."""
    calls = [_call_block(call, id) for call, id in zip(message.tool_calls, wire_ids, strict=True)]
    native = _native_blocks(message, calls)
    if native is not None:
        return native
    blocks = [block for thought in message.reasoning if (block := _thinking_block(thought)) is not None]
    if message.content.strip():
        blocks.append(text_block(message.content))
    # thinking by itself is not an answer the API would take back
    return blocks + calls if calls or message.content.strip() else []


def _image_block(mime_type: str, data: str) -> JsonObject:
    if mime_type not in IMAGE_TYPES:
        return text_block(f"[image ({mime_type}) left out: this API takes {', '.join(IMAGE_TYPES)}]")
    return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}


def _file_block(part: FilePart) -> JsonObject:
    if part.mime_type == "application/pdf":
        source = {"type": "base64", "media_type": part.mime_type, "data": part.data}
    elif part.mime_type.startswith("text/") or part.mime_type == "application/json":
        from base64 import b64decode  # noqa: PLC0415 - text files sent as files are rare

        text = b64decode(part.data).decode("utf-8", "replace")
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        name = part.name or "without a name"
        return text_block(f"[file {name} ({part.mime_type}) left out: this API takes PDF and text]")
    return {"type": "document", "source": source, **({"title": part.name} if part.name else {})}


def _call_block(call: ToolCall, wire_id: str) -> JsonObject:
    return {
        "type": "tool_use",
        "id": wire_id,
        "name": call.name,
        "input": read_arguments(call.arguments) or {},
    }


def _thinking_block(thought: ReasoningBlock) -> JsonObject | None:
    """Thinking as the API signed it; thinking of other services and without a signature is left out."""
    data: JsonObject = thought.data if isinstance(thought.data, dict) else {}
    if data.get("type") == "redacted_thinking":
        return data
    if thought.signature is None or (thought.data is not None and data.get("type") != "thinking"):
        return None  # without any data it is from an imported transcript
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _native_blocks(message: AssistantMessage, calls: list[JsonObject]) -> list[JsonObject] | None:
    """The blocks that were kept with the message, if they still say what it says."""
    kept: Json = message.metadata.get(CONTENT_KEY)
    if not isinstance(kept, list | tuple) or not all(isinstance(block, dict) for block in kept):
        return None
    text = "".join(block.get("text", "") for block in kept if block.get("type") == "text")
    places = sum(block.get("type") == "tool_use" for block in kept)
    if text != message.content or places != len(calls):
        return None
    left = iter(calls)
    blocks = [next(left) if block.get("type") == "tool_use" else block for block in kept]
    return [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
