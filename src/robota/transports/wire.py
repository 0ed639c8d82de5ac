"""Frames as lines: one JSON object each, short enough for whoever reads them."""

from __future__ import annotations

from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject

LINE_LIMIT = 1_048_576
"""Characters of one line that clients read; a longer one ends their session."""
_ROOM = 1024
_FIRST_CUT = 256 * 1024
_NOTE = "[... {:,} characters left out ...]"


def encode_line(frame: JsonObject) -> bytes:
    """The frame as a line. In one that would be too long, the longest texts are cut, as little as needed."""
    line = encode(frame)
    kept = _FIRST_CUT
    while _is_too_long(line):
        line = encode(_cut(frame, kept))
        kept //= 2
    return line + b"\n"


def _is_too_long(line: bytes) -> bool:
    """Counted in characters, where bytes do not settle it."""
    limit = LINE_LIMIT - _ROOM
    return len(line) > limit and len(line.decode()) > limit


def _cut(value: Json, kept: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= kept else _cut_text(value, kept)
    if isinstance(value, dict):
        if _is_large_image(value, kept):
            return {"type": "text", "text": f"[image left out: {len(value['source']['data']):,} characters]"}
        return {key: _cut(item, kept) for key, item in value.items()}
    if isinstance(value, list | tuple):
        most = max(1, kept // 8)  # a list of many small things is long too
        return [_cut(item, kept) for item in value[:most]]
    return value


def _cut_text(text: str, kept: int) -> str:
    half = kept // 2
    return f"{text[:half]}\n{_NOTE.format(len(text) - 2 * half)}\n{text[len(text) - half :]}"


def _is_large_image(value: JsonObject, kept: int) -> bool:
    source = value.get("source")
    data = (
        source.get("data") if value.get("type") in ("image", "document") and isinstance(source, dict) else ""
    )
    return isinstance(data, str) and len(data) > kept
