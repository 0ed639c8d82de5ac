"""What a function returned, as the result of its call: text, JSON, or parts such as an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from robota.core.messages import FilePart, ImagePart, ImageUriPart, Json, Part, TextPart
from robota.core.tool import ToolResult

_ATTACHED = (ImagePart, ImageUriPart, FilePart)
_PARTS = (TextPart, *_ATTACHED)
_PLAIN = (int, float, bool)
_BYTES = (bytes, bytearray, memoryview)


def wrap(tool_name: str, value: Json) -> ToolResult:
    """The value as a result; a failure if a conversation cannot carry it."""
    if type(value) in _PLAIN:
        return ToolResult(content=msgspec.json.encode(value).decode())
    if value is None or isinstance(value, ToolResult):
        return value or ToolResult()
    pieces: Sequence[Json] = value if _has_parts(value) else [value]
    try:
        parts = [_part(piece) for piece in pieces]
    except (TypeError, ValueError, RecursionError) as error:
        return ToolResult.failure(
            f"Tool {tool_name!r} ran, but its result ({type(value).__name__}) is not JSON: {error}. "
            "It should return text, JSON values or message parts."
        )
    attached = tuple(part for part in parts if isinstance(part, _ATTACHED))
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return ToolResult(content=text or (_describe(attached) if attached else ""), parts=attached)


def _has_parts(value: Json) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(one, (*_PARTS, *_BYTES)) for one in value)


def _part(value: Json) -> Part:
    if isinstance(value, _PARTS):
        return value
    if isinstance(value, str):
        return TextPart(str.__str__(value))
    if isinstance(value, _BYTES):
        return _recognise(bytes(value))
    return TextPart(msgspec.json.encode(value, enc_hook=_to_json).decode())


def _recognise(data: bytes) -> Part:
    """A picture or a PDF by how it begins, else text; of other bytes a model can make nothing."""
    from robota.tools.files.reading import recognise  # noqa: PLC0415 - few functions return bytes

    medium = recognise(data, len(data))
    if medium is not None and not medium.problem:
        return medium.carry(data)
    try:
        return TextPart(data.decode())
    except UnicodeDecodeError:
        reason = medium.problem if medium is not None else "they are not text, an image or a PDF"
        return TextPart(f"[{len(data):,} bytes that cannot be shown: {reason}]")


def _describe(parts: Sequence[Part]) -> str:
    """A few words for models and services that cannot take the parts."""
    kinds = ["File" if isinstance(part, FilePart) else "Image" for part in parts]
    return f"[{', '.join(kinds)} attached]"


def _to_json(value: Any) -> Json:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    raise TypeError(f"{type(value).__name__} is not a JSON value")
