"""What the events of a Messages stream say, as chunks: text, thinking, calls, usage, why it stopped.

Thinking and hosted tools are told when their block is whole, calls when the reply is. A reply whose blocks
cannot be rebuilt from its text and its calls (hosted tools, citations, thinking in between) leaves them in
the message's metadata, because the API wants them back as they were.
"""

from __future__ import annotations

from robota.core.context import USAGE_IS_SUM
from robota.core.jsontext import decode, encode, list_of, object_of, objects_of
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    ReasoningChunk,
    ServerToolChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.anthropic.blocks import CONTENT_KEY
from robota.providers.wire.reply import ReplyContent, count_of, text_of

_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "pause_turn": "pause",
    "refusal": "refusal",
    "content_filter": "content_filter",
    "model_context_window_exceeded": "context_overflow",
}
_HOSTED = ("server_tool_use", "mcp_tool_use")
_ORDER = {"thinking": 0, "redacted_thinking": 0, "text": 1, "tool_use": 2}
"""The order in which blocks are put together from a message; see `assistant_blocks`."""


class _Block:
    """One block as it comes in."""

    __slots__ = ("citations", "data", "kind", "number", "pieces", "signature", "whole")

    def __init__(self, data: JsonObject, number: int) -> None:
        self.data = data
        self.kind = str(data.get("type", ""))
        self.number = number
        """Place among the calls of the reply."""
        self.pieces: list[str] = []
        self.signature = text_of(data, "signature")
        self.citations = [*list_of(data.get("citations"))]
        self.whole = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def input(self) -> Json:
        """What a tool was given; an object that came with the block's beginning counts if no pieces came."""
        if not self.text.strip():
            return self.data.get("input") or {}
        try:
            return decode(self.text)
        except ValueError:
            return None

    def restored(self) -> JsonObject:
        """The block as the API wants it back."""
        if self.kind == "text":
            cited = {"citations": self.citations} if self.citations else {}
            return {"type": "text", "text": self.text, **cited}
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": self.text, "signature": self.signature}
        if self.kind == "tool_use":
            return {"type": "tool_use"}  # the call is in the message
        if "input" not in self.data:
            return self.data
        return {**self.data, "input": self.input if isinstance(self.input, dict) else {}}


class BlockContent(ReplyContent):
    """The content of one reply, which is whole once its stop reason has come."""

    surface = "anthropic-messages"
    format = "Messages"
    plain_key = "delta"

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[_Block] = []
        self._open: dict[int | None, _Block] = {}
        self._begun_calls = 0
        self._counts: JsonObject = {}
        self._explanation = ""
        self._id: Json = None

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        kind = reply.get("type")
        if kind == "content_block_delta":
            delta = reply.get("delta")
            if not isinstance(delta, dict):
                return raw
            text = delta.get("text")
            if text and isinstance(text, str):
                index = _index(reply)
                block = self._open.get(index) or self._start(index, {"type": "text"})
                block.pieces.append(text)
                chunks.append(TextChunk(text, raw))
                return None
            block_or_none = self._open.get(_index(reply))
            if block_or_none is not None:
                self._read_delta(block_or_none, delta, chunks)
        elif kind == "content_block_start":
            if isinstance(reply.get("content_block"), dict):
                self._begin(self._start(_index(reply), reply["content_block"]), chunks)
        elif kind == "content_block_stop":
            self._finish(self._open.pop(_index(reply), None), chunks)
        elif kind in ("message_start", "message_delta", "message"):
            self._read_message(reply, chunks)
        elif kind == "message_stop":
            self.done = True
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        if not isinstance(reply.get("content"), list):
            return False
        self._read_message(reply, chunks)
        self.done = True
        return True

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        kind = reply.get("type")
        if kind is None or kind == "error" or named:
            return super().find_error(reply, named=kind == "error" or named)
        return None

    def close(self) -> list[Chunk]:
        word = self.finish_reason
        reason = _STOP_REASONS.get(word, "other" if word else "end_turn")
        calls = self._calls_of(trusted=reason in ("end_turn", "tool_use", "pause"))
        if reason in ("end_turn", "tool_use"):
            reason = "tool_use" if calls else "end_turn"
        self.usage = self._usage_sum()
        facts = self._facts(len(calls))
        facts[USAGE_IS_SUM] = any(block.kind in _HOSTED for block in self._blocks)
        return self.conclude(calls, facts, reason, self._explanation or word)

    # --- blocks ------------------------------------------------------------------------------------------

    def _start(self, index: int | None, data: JsonObject) -> _Block:
        block = _Block(data, self._begun_calls)
        self._begun_calls += block.kind == "tool_use"
        self._blocks.append(block)
        self._open[index] = block
        return block

    def _begin(self, block: _Block, chunks: list[Chunk]) -> None:
        """What a block says at once: all of it in a message that was not streamed."""
        data = block.data
        if block.kind == "tool_use":
            chunks.append(ToolInputChunk(block.number, "", text_of(data, "id"), text_of(data, "name")))
        elif block.kind == "text" and text_of(data, "text"):
            block.pieces.append(data["text"])
            chunks.append(TextChunk(data["text"]))
        elif block.kind == "thinking" and text_of(data, "thinking"):
            block.pieces.append(data["thinking"])
            chunks.append(ReasoningChunk(data["thinking"]))

    def _read_delta(self, block: _Block, delta: JsonObject, chunks: list[Chunk]) -> None:
        """All deltas except text."""
        if text_of(delta, "thinking"):
            block.pieces.append(delta["thinking"])
            chunks.append(ReasoningChunk(delta["thinking"]))
        elif text_of(delta, "partial_json"):
            block.pieces.append(delta["partial_json"])
            if block.kind == "tool_use":
                id, name = text_of(block.data, "id"), text_of(block.data, "name")
                chunks.append(ToolInputChunk(block.number, delta["partial_json"], id, name))
        elif text_of(delta, "signature"):
            block.signature += delta["signature"]
        elif delta.get("citation"):
            block.citations.append(delta["citation"])

    def _finish(self, block: _Block | None, chunks: list[Chunk]) -> None:
        if block is None:
            return
        block.whole = True
        if block.kind == "thinking":
            chunks.append(ReasoningBlock(block.text, block.signature or None, {"type": "thinking"}))
        elif block.kind == "redacted_thinking":
            chunks.append(ReasoningBlock(data=block.data))
        elif block.kind in _HOSTED:
            chunks.append(ServerToolChunk(text_of(block.data, "name"), block.input))

    def _calls_of(self, *, trusted: bool) -> list[ToolCall]:
        """The calls. If the model did not end by itself, only those whose arguments are a whole object."""
        return [
            ToolCall(text_of(block.data, "id"), text_of(block.data, "name"), _arguments(block))
            for block in self._blocks
            if block.kind == "tool_use" and (trusted or (block.pieces and isinstance(block.input, dict)))
        ]

    # --- the message around them ---------------------------------------------------------------------------

    def _read_message(self, reply: JsonObject, chunks: list[Chunk]) -> None:
        message = object_of(reply.get("message") or reply.get("delta") or reply)
        if reply.get("type") == "message_start":
            before, self._id = self._id, message.get("id")
            if self._blocks and before != self._id:  # a gateway began anew; the calls of both would be made
                self.error, self.finish_reason = "another message began before this one had ended", "error"
                self.done = True
                return
        if not self.announced:
            self.announce(message.get("model"), message.get("id"), chunks)
        for usage in (message.get("usage"), reply.get("usage")):
            if isinstance(usage, dict):  # counts are sums so far, and a later event may leave some out
                self._counts.update({name: count for name, count in usage.items() if count is not None})
        for index, block in enumerate(objects_of(message.get("content"))):
            self._begin(self._start(index, block), chunks)
            self._finish(self._open.pop(index), chunks)
        self.finish_reason = text_of(message, "stop_reason") or self.finish_reason
        if isinstance(message.get("stop_details"), dict):
            self._explanation = text_of(message["stop_details"], "explanation")

    def _facts(self, calls: int) -> JsonObject:
        """What has to be kept with the message besides text, thinking and calls."""
        blocks = [block for block in self._blocks if block.text or block.kind != "text"]
        places = [
            _ORDER.get(block.kind, -1) for block in blocks if block.text.strip() or block.kind != "text"
        ]
        plain = -1 not in places and places == sorted(places)
        cited = any(block.citations for block in blocks)
        kept = sum(block.kind == "tool_use" for block in blocks) == calls
        if (plain and not cited) or not kept or not all(block.whole for block in blocks):
            return {}
        facts: JsonObject = {CONTENT_KEY: [block.restored() for block in blocks]}
        sources = [source for block in blocks for source in _sources(block)]
        if sources:
            facts["webSources"] = sources
        return facts

    def _usage_sum(self) -> TokenUsage | None:
        """Input includes what was read from and written to the cache, which this API counts apart."""
        if not self._counts:
            return None
        counts = self._counts
        read = count_of(counts, "cache_read_input_tokens")
        written = count_of(counts, "cache_creation_input_tokens")
        return TokenUsage(
            count_of(counts, "input_tokens") + read + written,
            count_of(counts, "output_tokens"),
            read,
            written,
            count_of(counts.get("output_tokens_details"), "thinking_tokens"),
        )


def _index(event: JsonObject) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _arguments(block: _Block) -> str:
    """The arguments as the model wrote them; a call without any has an empty object."""
    if block.text.strip():
        return block.text
    return encode(block.data.get("input") or {}).decode()


def _sources(block: _Block) -> list[JsonObject]:
    results = objects_of(block.data.get("content")) if block.kind == "web_search_tool_result" else []
    return [
        {"title": result.get("title"), "url": result["url"]}
        for result in results
        if isinstance(result.get("url"), str)
    ]
