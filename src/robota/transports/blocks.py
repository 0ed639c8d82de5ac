"""Messages as the blocks of the Messages API, and the blocks of a prompt as ours."""

from __future__ import annotations

from collections.abc import Iterable

from robota.core.errors import ValidationError
from robota.core.jsontext import decode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Json,
    JsonObject,
    Part,
    Prompt,
    TextPart,
    TokenUsage,
    ToolMessage,
)


def assistant_blocks(message: AssistantMessage) -> list[JsonObject]:
    """What a model said, in the order in which it says it: thinking, words, calls."""
    blocks: list[JsonObject] = [
        {"type": "thinking", "thinking": block.text, "signature": block.signature or ""}
        for block in message.reasoning
        if block.text
    ]
    if message.content:
        blocks.append({"type": "text", "text": message.content})
    blocks += (
        {"type": "tool_use", "id": call.id, "name": call.name, "input": read_arguments(call.arguments)}
        for call in message.tool_calls
    )
    return blocks


def read_arguments(text: str) -> JsonObject:
    """The arguments of a call; what is no object is shown as it is."""
    try:
        value = decode(text or "{}")
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": text}


def result_block(message: ToolMessage) -> JsonObject:
    content: Json = message.content
    if message.parts:
        content = part_blocks(message.parts)
        if message.content and not any(isinstance(part, TextPart) for part in message.parts):
            content.insert(0, {"type": "text", "text": message.content})
    return {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": content,
        "is_error": message.metadata.get("success") is False,
    }


def part_blocks(parts: Iterable[Part]) -> list[JsonObject]:
    return [_part_block(part) for part in parts]


def _part_block(part: Part) -> JsonObject:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text}
        case ImagePart(data=data, mime_type=kind):
            return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
        case ImageUriPart(uri=uri):
            return {"type": "image", "source": {"type": "url", "url": uri}}
        case FilePart(data=data, mime_type=kind):
            return {"type": "document", "source": {"type": "base64", "media_type": kind, "data": data}}


def read_prompt(content: Json) -> Prompt:
    """A prompt from the content of a `user` frame."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        raise ValidationError("A user message needs `content`: text, or a list of blocks.")
    return tuple(_read_part(block) for block in content)


def _read_part(block: Json) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return ImagePart(data, kind)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return ImageUriPart(url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return FilePart(data, kind, str(block.get("title") or ""))
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return TextPart(text)
    what = block.get("type") if isinstance(block, dict) else type(block).__name__
    raise ValidationError(
        f"A prompt may have blocks of the types text, image and document; {what!r} is not one of them, or it "
        "lacks a field."
    )


def usage_fields(usage: TokenUsage) -> JsonObject:
    """Tokens as the Messages API counts them: what a cache gave or took is not part of the input."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - cached),
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
