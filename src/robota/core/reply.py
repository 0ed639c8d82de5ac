"""One answer of the model as it comes in: what the chunks add up to besides the text itself; and `chat`, a
whole answer where there is no conversation.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from sys import intern

from msgspec import Struct, field, to_builtins

from robota.core.context import normalize_usage
from robota.core.errors import ProviderError, RobotaError
from robota.core.messages import (
    AssistantMessage,
    Json,
    JsonObject,
    ReasoningBlock,
    StopReason,
    TokenUsage,
    ToolCall,
)
from robota.core.provider import ChatRequest, Chunk, MetadataChunk, Provider, StopChunk, TextChunk

_REPEATED = ("model", "stopDetail")
_ALWAYS_KEPT = ("inputTokens", "outputTokens")


class PendingAssistant(Struct, eq=False):
    """An answer while it is being streamed."""

    text: list[str] = []
    calls: dict[str, ToolCall] = {}
    reasoning: list[ReasoningBlock] = []


class Reply(Struct, eq=False):
    """Collected by the loop during one model call."""

    pending: PendingAssistant = field(default_factory=PendingAssistant)
    deltas: int = 0
    native: int = 0
    """Native payloads seen; numbers those that come without a sequence of their own."""
    usage: TokenUsage | None = None
    stop: StopReason | None = None
    stop_detail: str | None = None
    metadata: JsonObject = {}
    error: RobotaError | None = None
    message: AssistantMessage | None = None
    """The committed message; `None` when an empty answer was discarded."""

    def add_call(self, call: ToolCall, provider: str, spare_id: Callable[[], str]) -> None:
        """Take a finished call; one whose id is missing or used here for another call gets a spare one."""
        texts = isinstance(call.name, str) and isinstance(call.arguments, str)
        if not texts or not call.name or not isinstance(call.id, str | None):
            raise ProviderError(
                f"Provider {provider!r} sent a tool call without a name or without JSON text as arguments.",
                provider=provider,
            )
        calls = self.pending.calls
        known = calls.get(call.id)
        if known == call:
            return  # the same call sent twice
        if known is not None or not call.id:
            call = ToolCall(spare_id(), call.name, call.arguments, call.signature)
        calls[call.id] = call

    def explain_failure(self, *, aloud: bool) -> None:
        """The user always sees why there is no answer; the words that did arrive stay in front.

        Not `aloud`: only mark it, because somebody else answers instead.
        """
        self.stop = "error"
        self.metadata["providerError"] = self.error.code if self.error is not None else ""
        if status := getattr(self.error, "status", None):
            self.metadata["providerStatus"] = status
        text = self.pending.text
        if any(text):
            self.metadata["incomplete"] = True
        if not aloud:
            return
        if any(text):
            text.append("\n\n")
        text.append(f"[The model call failed: {self.error}]")

    def committed_metadata(self) -> JsonObject:
        """What is kept with the message: canonical usage, stop reason, the provider's own facts."""
        kept: JsonObject = dict(self.metadata)
        if self.usage is None:
            self.usage = normalize_usage(kept)
        if self.usage is not None:
            kept.update(usage_metadata(self.usage))
        if self.stop is not None:
            kept["stopReason"] = self.stop
        if self.stop_detail:
            kept["stopDetail"] = self.stop_detail
        for name in _REPEATED:  # in every message of a conversation
            if type(kept.get(name)) is str:
                kept[name] = intern(kept[name])
        return kept


def usage_metadata(usage: TokenUsage) -> dict[str, Json]:
    """The canonical spelling of token counts in a message's metadata."""
    counts: dict[str, int] = to_builtins(usage)
    return {name: count for name, count in counts.items() if count or name in _ALWAYS_KEPT}


def open_stream(provider: Provider, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
    """The provider's stream, or an error that tells its author what `stream` must return."""
    stream = provider.stream(request)
    if hasattr(stream, "__anext__") and hasattr(stream, "aclose"):
        return stream
    if hasattr(stream, "close"):
        stream.close()  # a coroutine that nobody will await
    raise ProviderError(
        f"Provider {provider.name!r} must return an async generator from stream(), not "
        f"{type(stream).__name__}: write it as `async def stream(self, request)` with `yield`.",
        provider=provider.name,
    )


def refuse_chunk(chunk: object, provider: str) -> ProviderError:
    return ProviderError(
        f"Provider {provider!r} yielded {type(chunk).__name__} {chunk!r:.80}, which is not a chunk; "
        "see robota.core.provider for the chunks a stream may have.",
        provider=provider,
    )


class MessageAssembly(Struct, eq=False):
    """Adds the chunks of a reply up to the message they make, where there is no conversation to do it."""

    provider: str
    _reply: Reply = field(default_factory=Reply)

    def take(self, chunk: Chunk) -> None:
        reply, pending = self._reply, self._reply.pending
        if isinstance(chunk, TextChunk):
            pending.text.append(chunk.text)
        elif isinstance(chunk, ToolCall):
            reply.add_call(chunk, self.provider, lambda: f"call_{len(pending.calls) + 1}")
        elif isinstance(chunk, ReasoningBlock):
            pending.reasoning.append(chunk)
        elif isinstance(chunk, TokenUsage):
            reply.usage = chunk
        elif isinstance(chunk, StopChunk):
            reply.stop, reply.stop_detail = chunk.reason, chunk.detail
        elif isinstance(chunk, MetadataChunk):
            reply.metadata.update(chunk.values)
        elif not isinstance(chunk, Chunk):
            raise refuse_chunk(chunk, self.provider)

    def message(self) -> AssistantMessage:
        pending, metadata = self._reply.pending, self._reply.committed_metadata()
        text, calls, thoughts = "".join(pending.text), tuple(pending.calls.values()), tuple(pending.reasoning)
        return AssistantMessage(text, calls, "complete", thoughts, metadata=metadata)


async def chat(provider: Provider, request: ChatRequest) -> AssistantMessage:
    """One model call without a conversation: drain the stream into a message."""
    assembly = MessageAssembly(provider.name)
    async with aclosing(open_stream(provider, request)) as chunks:
        async for chunk in chunks:
            assembly.take(chunk)
    return assembly.message()
