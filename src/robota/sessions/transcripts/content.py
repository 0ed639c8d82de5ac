"""The records of a transcript as messages: content blocks, tool results, usage, compaction summaries.

Nothing here knows files or the tree. A kind of content that has no place in our messages is named, and a
text stands in for it so that the reader sees that something was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from robota.core.jsontext import encode, object_of, objects_of, text_of
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Json,
    JsonObject,
    Part,
    ReasoningBlock,
    TextPart,
    TokenUsage,
    ToolCall,
)
from robota.core.reply import usage_metadata
from robota.sessions.transcripts.lines import Problems

FIELD_LIMIT = 32 << 10
"""Bytes; a longer field of a tool's own result is left out, the model was not sent it anyway."""
START_OF_TIME = datetime.fromtimestamp(0, UTC)
_STOPS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context_overflow",
}


def content_blocks(record: Mapping[str, Json]) -> list[JsonObject]:
    """The content of a line's message as blocks; plain text is one block of text."""
    return blocks_of(object_of(record.get("message")).get("content"))


def blocks_of(content: Json) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects_of(content)


def read_parts(blocks: Sequence[JsonObject], line: int, problems: Problems) -> tuple[str, tuple[Part, ...]]:
    """The text of some blocks, and all of them as parts when they are more than text."""
    parts = tuple(_read_part(block, line, problems) for block in blocks)
    text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return text, () if all(isinstance(part, TextPart) for part in parts) else parts


def _read_part(block: JsonObject, line: int, problems: Problems) -> Part:
    kind, source = text_of(block.get("type")), object_of(block.get("source"))
    data, form = text_of(source.get("data")), text_of(source.get("media_type"))
    url, encoded = text_of(source.get("url")), source.get("type") == "base64"
    if kind == "text":
        return TextPart(text_of(block.get("text")))
    if kind == "image" and encoded:
        return ImagePart(data, form or "image/png")
    if kind == "image" and url:
        return ImageUriPart(url)
    if kind == "document" and encoded:
        return FilePart(data, form or "application/pdf", text_of(block.get("title")))
    if kind == "document" and (url or data):
        return TextPart(data or f"[Document: {url}]")
    if kind == "tool_reference":
        return TextPart(f"[Tool: {text_of(block.get('tool_name'))}]")
    problems.add(f"Line {line} has content of the kind {kind or 'unknown'!r}, which is not imported.")
    return TextPart(f"[Content of the kind {kind or 'unknown'!r} was not imported]")


class ReplyPieces:
    """One reply of the model, written in several lines that share its id."""

    def __init__(self, record: JsonObject, line: int, time: datetime) -> None:
        self.id = text_of(record.get("uuid"))
        self.line = line
        self.time = time
        self.model: str | None = None
        self.calls: dict[str, ToolCall] = {}
        self.reasoning: list[ReasoningBlock] = []
        self._texts: list[str] = []
        self._server: list[JsonObject] = []
        self._final = record
        """The latest piece with usage: its counts and stop reason are the final ones."""
        self._seen: set[int] = set()
        self._last_kind = ""

    def add(self, record: JsonObject, line: int, problems: Problems) -> None:
        message = object_of(record.get("message"))
        if message.get("usage") is not None:
            self._final = record
        model = text_of(message.get("model"))
        if model and not model.startswith("<"):  # "<synthetic>": the program's own words, not a model's
            self.model = model
        for block in content_blocks(record):
            digest = hash(encode(block))
            if digest not in self._seen:  # a resumed session may repeat its last lines
                self._seen.add(digest)
                self._add_block(block, line, problems)
                self._last_kind = text_of(block.get("type"))

    @property
    def is_empty(self) -> bool:
        return not (self.calls or self.reasoning or any(self._texts))

    def message(self) -> AssistantMessage:
        return AssistantMessage(
            "".join(self._texts),
            tuple(self.calls.values()),
            reasoning=tuple(self.reasoning),
            id=self.id,
            timestamp=self.time,
            metadata=self._metadata(),
        )

    def _add_block(self, block: JsonObject, line: int, problems: Problems) -> None:
        kind = text_of(block.get("type"))
        if kind == "text":
            apart = "\n\n" if self._texts and self._last_kind != "text" else ""
            self._texts.append(apart + text_of(block.get("text")))
        elif kind == "thinking":
            signature = text_of(block.get("signature")) or None
            self.reasoning.append(ReasoningBlock(text_of(block.get("thinking")), signature))
        elif kind == "redacted_thinking":
            self.reasoning.append(ReasoningBlock(data=block))
        elif kind == "tool_use":
            self._add_call(block, line, problems)
        elif kind.endswith(("_tool_use", "_tool_result")):  # the provider ran it within the reply
            self._server.append(block)
        else:
            problems.add(f"Line {line} has content of the kind {kind!r}, which is not imported.")

    def _add_call(self, block: JsonObject, line: int, problems: Problems) -> None:
        id, name = text_of(block.get("id")), text_of(block.get("name"))
        if not id or not name or id in self.calls:
            problems.add(f"Line {line} has a tool call without a name or an id of its own; it was left out.")
            return
        self.calls[id] = ToolCall(id, name, encode(block.get("input") or {}).decode())

    def _metadata(self) -> JsonObject:
        message = object_of(self._final.get("message"))
        stop = text_of(message.get("stop_reason"))
        kept: JsonObject = {"model": self.model, "responseId": text_of(message.get("id"))}
        if self._final.get("isApiErrorMessage"):
            kept["providerError"] = text_of(self._final.get("error")) or "PROVIDER_ERROR"
        if stop:
            kept["stopReason"] = _STOPS.get(stop, "other")
            kept["stopDetail"] = stop if kept["stopReason"] != stop else ""
        kept["serverTools"] = self._server
        return {name: value for name, value in kept.items() if value} | read_usage(message.get("usage"))


def read_usage(usage: Json) -> JsonObject:
    """Token counts in our spelling: what was read from and written to the cache is part of the input."""
    counts = object_of(usage)
    fresh, read, written = (
        _count(counts, name)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    known = TokenUsage(fresh + read + written, _count(counts, "output_tokens"), read, written)
    return usage_metadata(known) if known.total_tokens else {}


def _count(counts: JsonObject, name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tool_metadata(block: JsonObject, outcome: Json) -> JsonObject:
    """What is kept with a tool result beside its text: success, and the tool's own result."""
    kept: JsonObject = {"success": block.get("is_error") is not True}
    if outcome is None or outcome == block.get("content"):
        return kept
    fields = outcome if isinstance(outcome, dict) else {"value": outcome}
    large = [name for name, value in fields.items() if len(encode(value)) > FIELD_LIMIT]
    kept["toolUseResult"] = {name: value for name, value in fields.items() if name not in large}
    return kept | ({"toolUseResultLeftOut": large} if large else {})
