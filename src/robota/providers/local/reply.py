"""llama.cpp's events as chunks."""

from __future__ import annotations

from robota.core.errors import ProviderError
from robota.core.jsontext import decode
from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage
from robota.core.provider import Chunk, MetadataChunk, ReasoningChunk, StopChunk, TextChunk
from robota.providers.local.choice_reader import ChoiceReader


class LocalReply:
    """Reads the events of one reply; in choice form its text is JSON that becomes an answer or a call."""

    def __init__(self, provider: str, context_size: int, *, in_choice_form: bool) -> None:
        self._provider = provider
        self._context_size = context_size
        self._choice = ChoiceReader() if in_choice_form else None
        self._announced = False
        self._thoughts: list[str] = []
        self._usage: TokenUsage | None = None
        self._finish = ""

    def read(self, event: bytes) -> list[Chunk]:
        reply = decode(event)
        if "error" in reply:
            raise self._error(reply["error"])
        chunks: list[Chunk] = []
        if not self._announced:
            self._announced = True
            chunks.append(MetadataChunk({"model": reply.get("model"), "responseId": reply.get("id")}))
        usage = reply.get("usage")
        if usage:
            cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
            self._usage = TokenUsage(usage["prompt_tokens"], usage["completion_tokens"], cached)
        for choice in reply.get("choices", ()):
            self._read_delta(choice.get("delta") or {}, chunks)
            self._finish = choice.get("finish_reason") or self._finish
        return chunks

    def close(self) -> list[Chunk]:
        """The chunks that are certain only at the end."""
        if not self._finish:
            raise ProviderError(
                f"{self._provider} ended its reply without a reason; try again.", provider=self._provider
            )
        chunks: list[Chunk] = [ReasoningBlock("".join(self._thoughts))] if self._thoughts else []
        call = None if self._choice is None else self._choice.call()
        reason: StopReason = "max_tokens" if self._finish == "length" else "end_turn"
        if call is not None:
            chunks.append(call)
            reason = "tool_use"
        if self._usage is not None:
            chunks.append(self._usage)
        return [*chunks, StopChunk(reason, self._finish)]

    def _read_delta(self, delta: JsonObject, chunks: list[Chunk]) -> None:
        thought = delta.get("reasoning_content")
        if thought:
            self._thoughts.append(thought)
            chunks.append(ReasoningChunk(thought))
        text = delta.get("content")
        if text:
            chunks += [TextChunk(text)] if self._choice is None else self._choice.feed(text)

    def _error(self, error: Json) -> ProviderError:
        status = error.get("code")
        if error.get("type") == "exceed_context_size_error":
            text = (
                f"A conversation of {error.get('n_prompt_tokens')} tokens exceeds the context window of the "
                f"local model ({self._context_size}); compact it or set a larger context_size."
            )
        else:
            said = " ".join(str(error.get("message", "no reason given")).split()).rstrip(".")
            text = f"{self._provider} could not answer ({said}); change the request or use another model."
        return ProviderError(text, provider=self._provider, status=status)
