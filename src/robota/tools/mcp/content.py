"""What a server gives back, as parts of a conversation: text, images, files, and values in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from robota.core.jsontext import encode
from robota.core.messages import FilePart, ImagePart, Part, TextPart
from robota.core.plain_text import shorten
from robota.core.tool import ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from robota.tools.mcp.connection import ServerConnection

MAX_TEXT = 100_000
"""Characters of one result, as many tokens as anybody would want to pay for it; the middle is left out."""
MAX_MEDIA = 8 * 1024 * 1024
"""Characters of one image or file in base64."""
MAX_PARTS = 20
_IMAGES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))


def make_result(name: str, answer: CallToolResult) -> ToolResult:
    """The result of a call, bounded."""
    texts, parts = split_content(answer.content)
    said = "\n".join(texts)
    structured = answer.structured_content
    if structured is not None and not texts:
        said = encode(structured).decode()
    said = shorten(said, MAX_TEXT)
    if answer.is_error:
        return ToolResult.failure(said or f"{name} failed without saying why.", "mcp_error")
    metadata = {} if structured is None or len(said) >= MAX_TEXT else {"structuredContent": structured}
    return ToolResult(content=said or _count(parts), parts=tuple(parts), metadata=metadata)


async def get_prompt(
    connection: ServerConnection, name: str, arguments: Mapping[str, str]
) -> tuple[Part, ...]:
    """A prompt with its arguments filled in."""
    answer = await connection.ask(lambda client: client.get_prompt(name, dict(arguments)))
    return as_parts(*split_content(message.content for message in answer.messages))


async def fetch_resource(connection: ServerConnection, uri: str) -> tuple[Part, ...]:
    """The content of a resource."""
    answer = await connection.ask(lambda client: client.read_resource(uri))
    read = [read_resource(each) for each in answer.contents]
    texts = [each for each in read if isinstance(each, str)]
    return as_parts(texts, [each for each in read if not isinstance(each, str)])


def split_content(blocks: Iterable[Any]) -> tuple[list[str], list[Part]]:
    """The words of some blocks, and what is no words; what cannot be carried is named in its place."""
    texts: list[str] = []
    parts: list[Part] = []
    for block in blocks:
        read = _read_block(block)
        if isinstance(read, str):
            texts.append(read)
        elif len(parts) < MAX_PARTS:
            parts.append(read)
        else:
            texts.append("[one more image or file, left out]")
    return texts, parts


def _read_block(block: Any) -> str | Part:
    match block.type:
        case "text":
            return str(block.text)
        case "image":
            return _media(block.data, block.mime_type)
        case "audio":
            return f"[audio, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes: not shown]"
        case "resource":
            return read_resource(block.resource)
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.uri} ({block.name}){about}]"
        case _:
            return f"[content of the kind {block.type}, which is not known here]"


def read_resource(resource: Any) -> str | Part:
    """The content of a resource: its text, or a part for what is none."""
    uri = str(resource.uri)
    if (text := getattr(resource, "text", None)) is not None:
        return f"[resource {uri}]\n{text}"
    return _media(resource.blob, resource.mime_type or "application/octet-stream", uri)


def _media(data: str, media_type: str, name: str = "") -> str | Part:
    if len(data) > MAX_MEDIA:
        return f"[{name or media_type}: {len(data) * 3 // 4:,} bytes are too many, left out]"
    if media_type in _IMAGES:
        return ImagePart(data, media_type)
    if media_type == "application/pdf":
        return FilePart(data, media_type, name or "document.pdf")
    return f"[{name or 'data'} of the type {media_type}, {len(data) * 3 // 4:,} bytes: not shown]"


def as_parts(texts: Iterable[str], parts: Iterable[Part]) -> tuple[Part, ...]:
    """Words and the rest, as a prompt has them."""
    words = shorten("\n".join(texts), MAX_TEXT)
    return (*([TextPart(words)] if words else ()), *parts)


def _count(parts: list[Part]) -> str:
    if not parts:
        return "(no output)"
    images = sum(isinstance(part, ImagePart) for part in parts)
    counts = (images, "image"), (len(parts) - images, "file")
    told = (f"{count} {what}" + "s" * (count > 1) for count, what in counts if count)
    return f"({', '.join(told)})"
