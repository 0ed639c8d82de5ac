"""What the objects of a Chat Completions reply say, as chunks: text, thinking, calls, usage, why it stopped.

Whole messages and deltas are read alike. What is certain only at the end is kept and told by `close`.
"""

from __future__ import annotations

from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage
from robota.core.provider import Chunk, MetadataChunk, ReasoningChunk, StopChunk, TextChunk
from robota.providers.chat.calls import CallAssembly

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
    "error": "error",
}


class ReplyContent:
    def __init__(self) -> None:
        self.finish_reason = ""
        """The server's own word for why it stopped; empty until it has said so."""
        self._announced = False
        self._calls = CallAssembly()
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._usage: TokenUsage | None = None

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        """Add the object's chunks. The raw bytes go with its text; if it has none, they are returned."""
        if not self._announced:
            self._announce(reply, chunks)
        usage = reply.get("usage")
        if usage:
            self._read_usage(usage)
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return raw
        choice = choices[0]
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = delta.get("content")
            if text and isinstance(text, str):
                chunks.append(TextChunk(text, raw))
                raw = None
                if len(delta) > 1:
                    self._read_rest(delta, chunks)
            else:
                self._read_rest(delta, chunks)
        elif isinstance(choice.get("message"), dict):
            self._read_message(choice["message"], chunks)
        reason = choice.get("finish_reason")
        if reason:
            self.finish_reason = str(reason)
            self._read_usage(choice.get("usage"))  # where some servers put it
        return raw

    def close(self) -> list[Chunk]:
        """The chunks of a reply that is over and whole."""
        word = self.finish_reason
        reason = _STOP_REASONS.get(word, "other" if word else "end_turn")
        ended_well = reason in ("end_turn", "tool_use")
        calls = self._calls.finished(trusted=ended_well and bool(word))
        if ended_well:
            reason = "tool_use" if calls else "end_turn"
        detail = word or None
        if self._refusal:
            reason, detail = "refusal", "".join(self._refusal)
        chunks: list[Chunk] = [ReasoningBlock("".join(self._reasoning))] if self._reasoning else []
        chunks += calls
        if self._usage is not None:
            chunks.append(self._usage)
        chunks.append(StopChunk(reason, detail))
        return chunks

    def _read_rest(self, delta: JsonObject, chunks: list[Chunk]) -> None:
        """All of a delta except plain text."""
        if isinstance(delta.get("content"), list):
            self._read_parts(delta["content"], chunks)
        self._read_reasoning(delta.get("reasoning_content") or delta.get("reasoning"), chunks)
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refusal.append(refusal)
            chunks.append(TextChunk(refusal))
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            chunks += [self._calls.add(call) for call in calls if isinstance(call, dict)]
        if isinstance(delta.get("function_call"), dict):
            chunks.append(self._calls.add({"index": 0, "function": delta["function_call"]}))

    def _read_message(self, message: JsonObject, chunks: list[Chunk]) -> None:
        """A message that is whole: the same fields, but text and calls are not pieces."""
        text = message.get("content")
        if text and isinstance(text, str):
            chunks.append(TextChunk(text))
        self._read_rest({**message, "tool_calls": None}, chunks)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            whole = [call for call in calls if isinstance(call, dict)]
            chunks += [self._calls.add(call, position) for position, call in enumerate(whole)]

    def _read_parts(self, parts: list[Json], chunks: list[Chunk]) -> None:
        """Content as a list, as Mistral sends it: text, or thinking that is itself a list of texts."""
        for part in parts:
            if isinstance(part, dict):
                thinking = part.get("thinking")
                if isinstance(thinking, list):
                    thinking = "".join(
                        str(piece.get("text", "")) for piece in thinking if isinstance(piece, dict)
                    )
                self._read_reasoning(thinking, chunks)
                if isinstance(part.get("text"), str):
                    chunks.append(TextChunk(part["text"]))

    def _read_reasoning(self, text: Json, chunks: list[Chunk]) -> None:
        if text and isinstance(text, str):
            self._reasoning.append(text)
            chunks.append(ReasoningChunk(text))

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it. The last report stands."""
        if isinstance(usage, dict):
            prompt = usage.get("prompt_tokens_details")
            output = usage.get("completion_tokens_details")
            self._usage = TokenUsage(
                _count(usage, "prompt_tokens"),
                _count(usage, "completion_tokens"),
                _count(prompt, "cached_tokens") or _count(usage, "prompt_cache_hit_tokens"),
                _count(prompt, "cache_write_tokens"),
                _count(output, "reasoning_tokens"),
            )

    def _announce(self, reply: JsonObject, chunks: list[Chunk]) -> None:
        values = {"model": reply.get("model"), "responseId": reply.get("id")}
        values = {name: value for name, value in values.items() if value and isinstance(value, str)}
        if values:
            self._announced = True
            chunks.append(MetadataChunk(values))


def _count(record: Json, name: str) -> int:
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, int) else 0
