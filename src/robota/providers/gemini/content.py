"""What the objects of a Gemini reply say, as chunks: text, thinking, calls, usage, sources, why it stopped.

Calls come whole, but are given out by `close` alone: a reply that was cut must not act. The protocol has no
end mark: a reply is whole when a reason to stop was given and the connection ended.
"""

from __future__ import annotations

from robota.core.errors import RobotaError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    ReasoningChunk,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.providers.gemini.errors import describe_status
from robota.providers.gemini.parts import foreign_part_block, text_signature_block, thought_block
from robota.providers.gemini.sources import WebSources
from robota.providers.wire.content import Peer, ReplyContent, count_of, text_of

_FILTERS = (
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION",
    "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
)  # fmt: skip
_FAILURES = (
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE",
    "MALFORMED_RESPONSE",
)  # fmt: skip
_STOP_REASONS: dict[str, StopReason] = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "CONTINUATION": "max_tokens",
    **dict.fromkeys(_FILTERS, "content_filter"),
    **dict.fromkeys(_FAILURES, "error"),
}
_KNOWN = ("candidates", "promptFeedback", "usageMetadata")
_PLAIN = frozenset(("content", "index"))
"""All that a candidate has in the middle of a stream."""
_SERVER_PARTS = ("toolCall", "toolResponse", "executableCode", "codeExecutionResult")
"""Parts of tools that ran on Google's side; they are wanted back."""


class GeminiContent(ReplyContent):
    surface = "gemini-generate-content"
    format = "Gemini"
    plain_key = "candidates"

    def __init__(self) -> None:
        super().__init__()
        self._detail = ""
        self._blocked = False
        """The prompt was refused, so there is no candidate."""
        self._thoughts: list[str] = []
        self._thought_signature: str | None = None
        self._text_signature: str | None = None
        self._server_parts: list[ReasoningBlock] = []
        self._whole_calls: list[ToolCall] = []
        self._sources = WebSources()
        self._last_usage: Json = None
        """Every event counts anew what came so far; the last count stands."""

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        if not self.announced:
            self.announce(reply.get("modelVersion"), reply.get("responseId"), chunks)
        self._last_usage = reply.get("usageMetadata") or self._last_usage
        candidates = reply.get("candidates")
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            self._read_feedback(reply.get("promptFeedback"))
            return raw
        candidate = candidates[0]
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if isinstance(parts, list):
            for part in parts:
                if isinstance(part, dict):
                    raw = self._read_part(part, raw, chunks)
        if candidate.keys() - _PLAIN:
            self._sources.read(candidate, chunks)
            self._read_finish(candidate)
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        """A reply without event stream, as a proxy makes it or the service without `alt=sse`."""
        if not any(name in reply for name in _KNOWN):
            return False
        self.read(reply, None, chunks)
        return True

    def describe_error(self, error: Json, peer: Peer) -> RobotaError:
        known = describe_status(error, peer.provider, peer.secrets)
        return known or super().describe_error(error, peer)

    def close(self) -> list[Chunk]:
        word = self.finish_reason
        reason = "refusal" if self._blocked else _STOP_REASONS.get(word, "other")
        if reason == "end_turn" and self._whole_calls:
            reason = "tool_use"
        chunks: list[Chunk] = []
        if self._thoughts or self._thought_signature:
            chunks.append(thought_block("".join(self._thoughts), self._thought_signature))
        chunks += self._server_parts
        if self._text_signature:
            chunks.append(text_signature_block(self._text_signature))
        chunks += self._whole_calls
        provenance = self._sources.provenance
        if provenance:
            chunks.append(MetadataChunk({"provenance": provenance}))
        if isinstance(self._last_usage, dict):
            chunks.append(_read_usage(self._last_usage))
        chunks.append(StopChunk(reason, f"{word}: {self._detail}" if self._detail else word))
        return chunks

    # --- parts ---------------------------------------------------------------------------------------

    def _read_part(self, part: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        text = part.get("text")
        if isinstance(text, str):
            if part.get("thought"):
                self._read_thought(text, part, chunks)
                return raw
            self._text_signature = text_of(part, "thoughtSignature") or self._text_signature
            if text:
                chunks.append(TextChunk(text, raw))
                return None
        elif isinstance(part.get("functionCall"), dict):
            self._read_call(part["functionCall"], text_of(part, "thoughtSignature"), chunks)
        else:
            self._read_server_part(part, chunks)
        return raw

    def _read_thought(self, text: str, part: JsonObject, chunks: list[Chunk]) -> None:
        self._thought_signature = text_of(part, "thoughtSignature") or self._thought_signature
        if text:
            self._thoughts.append(text)
            chunks.append(ReasoningChunk(text))

    def _read_call(self, function: JsonObject, signature: str, chunks: list[Chunk]) -> None:
        arguments = encode(function.get("args") or {}).decode()
        call_id, name = str(function.get("id") or ""), str(function.get("name") or "")
        chunks.append(ToolInputChunk(len(self._whole_calls), arguments, call_id, name))
        self._whole_calls.append(ToolCall(call_id, name, arguments, signature or None))

    def _read_server_part(self, part: JsonObject, chunks: list[Chunk]) -> None:
        kind = next((known for known in _SERVER_PARTS if known in part), None)
        if kind is None:
            return  # a part from the future
        self._server_parts.append(foreign_part_block(part))
        content = part[kind]
        if kind == "toolCall" and isinstance(content, dict):
            self._sources.announce(content, chunks)
        elif kind == "executableCode":
            chunks.append(ServerToolChunk("code_execution", content))

    # --- besides the parts -----------------------------------------------------------------------------

    def _read_finish(self, candidate: JsonObject) -> None:
        reason = candidate.get("finishReason")
        if reason:
            self.finish_reason = str(reason)
            self._detail = str(candidate.get("finishMessage") or "")

    def _read_feedback(self, feedback: Json) -> None:
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self._blocked = True
            self.finish_reason = str(feedback["blockReason"])
            self._detail = str(feedback.get("blockReasonMessage") or "")


def _read_usage(usage: JsonObject) -> TokenUsage:
    """Thinking, and what hosted tools read, are counted apart by this API."""
    thoughts = count_of(usage, "thoughtsTokenCount")
    return TokenUsage(
        count_of(usage, "promptTokenCount") + count_of(usage, "toolUsePromptTokenCount"),
        count_of(usage, "candidatesTokenCount") + thoughts,
        count_of(usage, "cachedContentTokenCount"),
        0,
        thoughts,
    )
