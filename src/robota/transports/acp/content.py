"""Prompts as editors send them, and messages as editors show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from robota.core.errors import ValidationError
from robota.core.messages import FilePart, ImagePart, Part, Prompt, TextPart

ContentBlock: TypeAlias = (
    TextContentBlock
    | ImageContentBlock
    | AudioContentBlock
    | ResourceContentBlock
    | EmbeddedResourceContentBlock
)


def read_blocks(blocks: Sequence[ContentBlock]) -> Prompt:
    """A prompt. One that is only text stays a text, so that it may call a command."""
    if not blocks:
        raise ValidationError("A prompt has at least one block of content.")
    parts = [_read(block) for block in blocks]
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(_join_texts(parts))


def _join_texts(parts: Iterable[Part]) -> Iterator[Part]:
    """Editors cut a text at each file that it names; for the model it is one."""
    text = ""
    for part in parts:
        if isinstance(part, TextPart):
            text += part.text
            continue
        if text:
            yield TextPart(text)
        text = ""
        yield part
    if text:
        yield TextPart(text)


def _read(block: ContentBlock) -> Part:
    match block:
        case TextContentBlock(text=text):
            return TextPart(text)
        case ImageContentBlock(data=data, mime_type=kind):
            return ImagePart(data, kind)
        case ResourceContentBlock(name=name, uri=uri):
            return TextPart(f"[{name}]({uri})")
        case EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=data, mime_type=kind)):
            name = uri.rsplit("/", 1)[-1]
            if kind is not None and kind.startswith("image/"):
                return ImagePart(data, kind)
            return FilePart(data, kind or "application/octet-stream", name)
        case EmbeddedResourceContentBlock(resource=resource):
            name = resource.uri.rsplit("/", 1)[-1]
            return TextPart(
                f'[{name}]({resource.uri})\n<context ref="{resource.uri}">\n{resource.text}\n</context>\n'
            )
        case _:
            raise ValidationError("Audio cannot be part of a prompt here: send its words as text.")


def text_block(text: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=text)


def part_block(part: Part) -> ContentBlock:
    """A part of a prompt, as it was sent."""
    match part:
        case TextPart(text=text):
            return text_block(text)
        case ImagePart(data=data, mime_type=kind):
            return ImageContentBlock(type="image", data=data, mime_type=kind)
        case FilePart(name=name):
            return text_block(f"[{name or 'a file'}]")
        case _:
            return text_block(f"[image: {part.uri}]")
