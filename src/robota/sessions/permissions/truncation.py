"""Tool results cut to a length a conversation can carry: head and tail, and between them what is missing.

A cut text is never longer than the limit, so cutting it again changes nothing.
"""

from __future__ import annotations

import msgspec

from robota.core.tool import ToolResult

MAX_TOOL_OUTPUT_CHARACTERS = 30_000
_NOTE_NEEDS = 128
"""Below this there is no room for head, note and tail."""


def truncate_text(text: str, limit: int = MAX_TOOL_OUTPUT_CHARACTERS) -> str:
    """Head and tail of a text longer than `limit`, and how many characters were left out between them."""
    if len(text) <= limit:
        return text
    if limit < _NOTE_NEEDS:
        return text[: max(limit, 0)]
    from robota.core.plain_text import shorten  # noqa: PLC0415 - most texts are short

    return shorten(text, limit, dropped=_left_out_before(text, limit // 2))


def _left_out_before(text: str, half: int) -> int:
    """What a tool's own cut left out: its note lies in the middle, where this cut removes it."""
    import re  # noqa: PLC0415 - see above

    middle = text[half - _NOTE_NEEDS : len(text) - half + _NOTE_NEEDS]
    note = re.search(r"\n\[\.\.\. (\d[\d,]{,19}) characters left out \.\.\.\]\n", middle)
    return int(note[1].replace(",", "")) - len(note[0]) if note else 0


def truncate_result(result: ToolResult, limit: int = MAX_TOOL_OUTPUT_CHARACTERS) -> ToolResult:
    """The result with a `text` within the limit; images and files stay, and the metadata tells of the cut."""
    length = len(result.text)
    if length <= limit:
        return result
    content, error = result.content, result.error
    if result.ok:
        content = truncate_text(content, limit)
    else:  # the error matters most: it gets what the content leaves, and at least half
        words = error or ""
        room = limit - (length - len(content) - len(words))
        error = truncate_text(words, max(room - len(content), room // 2)) or None
        content = truncate_text(content, room - len(error or ""))
    metadata = {**result.metadata, "truncated": True, "originalLength": length}
    return msgspec.structs.replace(result, content=content, error=error, metadata=metadata)
