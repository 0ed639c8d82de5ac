"""What one model request uses: estimated before it is sent, read off its reply afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from robota.core.context import BYTES_PER_TOKEN, normalize_usage, read_context_size, serialized_size
from robota.core.jsontext import encode
from robota.core.messages import Json, Message, TokenUsage, ToolCall
from robota.core.provider import (
    ChatRequest,
    Chunk,
    MetadataChunk,
    ReasoningChunk,
    ToolInputChunk,
    ToolSchema,
)
from robota.sessions.usage.ledger import text_size


class Meter(Struct, eq=False):
    """Reads off one reply what it used."""

    sent: int | None = None
    """Estimated tokens of the request, if they were estimated before."""
    received: int = 0
    """Bytes of text, thinking and arguments so far."""
    model: Json = None
    """The model that says it answered."""
    ended: bool = False
    failed: bool = False
    reported: TokenUsage | None = None
    in_metadata: TokenUsage | None = None
    streams_input: bool = False

    def note(self, chunk: Chunk) -> None:
        """A chunk that is not text. Foreign code made it: the malformed is left to the engine to refuse."""
        match chunk:
            case TokenUsage():
                if all(isinstance(getattr(chunk, name), int) for name in TokenUsage.__struct_fields__):
                    self.reported = chunk
            case MetadataChunk(values=Mapping() as values):
                self.in_metadata = normalize_usage(values) or self.in_metadata
                self.model = values.get("model", self.model)
            case ReasoningChunk(text=str() as text):
                self.received += text_size(text)
            case ToolInputChunk(delta=str() as delta):
                self.received += text_size(delta)
                self.streams_input = True
            case ToolCall(arguments=str() as arguments) if not self.streams_input:
                self.received += text_size(arguments)
            case _:
                return

    def read(self, estimate_input: Callable[[], int]) -> tuple[TokenUsage, int]:
        """The usage to count, and how many of its tokens are estimated.

        A reply that was cut is billed for what was written by then, which a report from its beginning does
        not know. A request that failed before the first word is taken as not billed: counting estimates for
        a service that cannot be reached would use up a budget of which nothing was spent. One that *we*
        stopped before the first word was being worked on, so its input counts.
        """
        reported = self.reported or self.in_metadata
        written = math.ceil(self.received / BYTES_PER_TOKEN)
        if reported is not None:
            more = 0 if self.ended else max(0, written - reported.output_tokens)
            return (
                replace(reported, output_tokens=reported.output_tokens + more) if more else reported
            ), more
        if self.failed and not self.received:
            return TokenUsage(), 0
        sent = estimate_input() if self.sent is None else self.sent
        return TokenUsage(sent, written), sent + written


class InputSize(Struct, eq=False):
    """Estimates the input tokens of an agent's requests, looking only at what was added since the last one.

    The reply before it knows how long the conversation was by then; the rest is the shared estimator's.
    """

    _last: Message | None = None
    _tokens: int = 0
    _tools: tuple[ToolSchema, ...] = ()
    _tools_tokens: int = 0

    def estimate(self, request: ChatRequest) -> int:
        messages = request.messages
        size, known = 0, 0
        for at in range(len(messages) - 1, -1, -1):
            message = messages[at]
            counted = self._count_up_to(message)
            if counted is not None:
                known = counted
                break
            size += serialized_size(message)
        else:
            known = self._count_tools(request.tools)
        tokens = max(1, known + math.ceil(size / BYTES_PER_TOKEN))
        if messages:
            self._last, self._tokens = messages[-1], tokens
        return tokens

    def _count_up_to(self, message: Message) -> int | None:
        """The tokens of the conversation up to this message, where they are known."""
        if message is self._last:
            return self._tokens
        return read_context_size(message)

    def _count_tools(self, tools: tuple[ToolSchema, ...]) -> int:
        if tools is not self._tools:
            self._tools, self._tools_tokens = tools, math.ceil(len(encode(tools)) / BYTES_PER_TOKEN)
        return self._tools_tokens


def find_default_model(provider: object) -> str:
    """The model a provider uses when a request names none, looked for through its wrappers."""
    while provider is not None:
        model = getattr(provider, "model", None)
        if isinstance(model, str) and model:
            return model
        provider = getattr(provider, "inner", None)
    return ""
