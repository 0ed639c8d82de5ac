"""Messages as the blocks of the Messages API, and the blocks of a prompt as ours."""

from __future__ import annotations

from base64 import b64decode
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

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What models can look at."""


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
    """A prompt from the content of a `user` frame. What no service takes is refused: it would stay in the
    conversation, and spoil every request after it."""
    if not isinstance(content, str | list) or content == []:
        raise ValidationError("A user message needs `content`: text, or a list of blocks.")
    prompt = content if isinstance(content, str) else tuple(_read_part(block) for block in content)
    parts = (TextPart(prompt),) if isinstance(prompt, str) else prompt
    if not any(not isinstance(part, TextPart) or part.text.strip() for part in parts):
        raise ValidationError("The prompt is empty: a model can only be asked something.")
    match parts:
        case (TextPart(text=text),):  # most hosts write a text like this, and it may be a command
            return text
    return prompt


def _read_part(block: Json) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            if kind not in IMAGES:
                raise ValidationError(f"An image is of the type {', '.join(IMAGES)}, not {kind!r}.")
            return ImagePart(_check_base64(data), kind)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return ImageUriPart(url)
        case {"type": "document", "source": {"type": "base64", "media_type": str(kind), "data": str(data)}}:
            return FilePart(_check_base64(data), kind, str(block.get("title") or ""))
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return TextPart(text)
    what = block.get("type") if isinstance(block, dict) else type(block).__name__
    raise ValidationError(
        f"A prompt may have blocks of the types text, image and document; {what!r} is not one of them, or it "
        "lacks a field."
    )


def _check_base64(data: str) -> str:
    try:
        if b64decode(data, validate=True):
            return data
    except ValueError as error:
        raise ValidationError(f"The data of an image or a document is not base64: {error}.") from error
    raise ValidationError("The data of an image or a document is empty.")


def usage_fields(usage: TokenUsage) -> JsonObject:
    """Tokens as the Messages API counts them: what a cache gave or took is not part of the input."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": max(0, usage.input_tokens - cached),
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
