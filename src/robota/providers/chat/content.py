"""What the objects of a Chat Completions reply say, as chunks: text, thinking, calls, usage, why it stopped.

Whole messages and deltas are read alike. What is certain only at the end is kept and told by `close`.
"""

from __future__ import annotations

from robota.core.messages import Json, JsonObject, StopReason, TokenUsage
from robota.core.provider import Chunk, ReasoningChunk, StopChunk, TextChunk
from robota.providers.chat.calls import CallAssembly
from robota.providers.chat.thoughts import ThoughtAssembly
from robota.providers.wire.content import ReplyContent, count_of

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "end_turn",
    "eos": "end_turn",
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "content_filter",
    "refusal": "refusal",
}


class ChatContent(ReplyContent):
    surface = "openai-chat-completions"
    format = "Chat Completions"
    plain_key = "choices"

    def __init__(self) -> None:
        super().__init__()
        self._calls = CallAssembly()
        self._thoughts = ThoughtAssembly()
        self._refusal: list[str] = []

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        if not self.announced:
            self.announce(reply.get("model"), reply.get("id"), chunks)
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
            if reason == "error":
                self.error = choice.get("error") or "no reason given"
            self._read_usage(choice.get("usage"))  # where some servers put it
        return raw

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        if not isinstance(reply.get("choices"), list):
            return False
        self.read(reply, None, chunks)
        self.done = True
        return True

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        return super().find_error(reply, named=named or reply.get("object") == "error")

    def close(self) -> list[Chunk]:
        word = self.finish_reason
        reason = _STOP_REASONS.get(word, "other" if word else "end_turn")
        ended_well = reason in ("end_turn", "tool_use")
        calls = self._calls.finished(trusted=ended_well and bool(word))
        if ended_well:
            reason = "tool_use" if calls else "end_turn"
        detail = word or None
        if self._refusal:
            reason, detail = "refusal", "".join(self._refusal)
        chunks: list[Chunk] = [*self._thoughts.block(), *calls]
        if self.usage is not None:
            chunks.append(self.usage)
        chunks.append(StopChunk(reason, detail))
        return chunks

    def _read_rest(self, delta: JsonObject, chunks: list[Chunk]) -> None:
        """All of a delta except plain text."""
        if isinstance(delta.get("content"), list):
            self._read_parts(delta["content"], chunks)
        self._read_reasoning(delta.get("reasoning_content") or delta.get("reasoning"), chunks)
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._thoughts.add_details(details)
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
            self._thoughts.add_text(text)
            chunks.append(ReasoningChunk(text))

    def _read_usage(self, usage: Json) -> None:
        """Input includes what was read from the cache, as this API counts it. The last report stands."""
        if isinstance(usage, dict):
            prompt = usage.get("prompt_tokens_details")
            output = usage.get("completion_tokens_details")
            self.usage = TokenUsage(
                count_of(usage, "prompt_tokens"),
                count_of(usage, "completion_tokens"),
                count_of(prompt, "cached_tokens") or count_of(usage, "prompt_cache_hit_tokens"),
                count_of(prompt, "cache_write_tokens"),
                count_of(output, "reasoning_tokens"),
            )
