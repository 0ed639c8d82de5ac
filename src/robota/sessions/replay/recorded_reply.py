"""A reply of the model as the journal has it, ready to be given again chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import convert

from robota.core.context import normalize_usage
from robota.core.errors import RobotaError
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, StopReason
from robota.core.provider import (
    Chunk,
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    TextChunk,
    ToolInputChunk,
)
from robota.sessions.session_log import NATIVE_KINDS
from robota.sessions.stream_run import INPUT, TEXT, TEXT_WITH_BYTES, THOUGHT

_USAGE_KEYS = {
    *("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
    *("stopReason", "stopDetail", "providerError", "incomplete"),
}
"""What the engine itself adds to a message's metadata."""


class RecordedReply:
    __slots__ = ("_surface", "chunks", "closed", "error", "interrupted")

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.error: JsonObject | None = None
        self.interrupted = False
        """The user stopped it, after the last of the chunks."""
        self.closed = False
        self._surface: str | None = None

    # --- taking it from the journal -----------------------------------------------------------------------

    def add_text(self, text: str) -> None:
        if text:
            self.chunks.append(TextChunk(text))

    def add_pieces(self, fields: Mapping[str, Json]) -> None:
        """The pieces of one `stream` record."""
        texts, natives, inputs = (iter(fields.get(name) or ()) for name in ("texts", "native", "inputs"))
        self._surface = fields.get("surface", self._surface)
        for kind in fields.get("kinds") or TEXT_WITH_BYTES * len(fields.get("texts") or ()):
            if kind == TEXT:
                self.chunks.append(TextChunk(next(texts)))
            elif kind == TEXT_WITH_BYTES:
                self.chunks.append(TextChunk(next(texts), encode(next(natives))))
            elif kind == THOUGHT:
                self.chunks.append(ReasoningChunk(next(texts)))
            elif kind == INPUT:
                at, call_id, name = next(inputs)
                self.chunks.append(ToolInputChunk(at, next(texts), call_id, name))
            else:
                payload = encode(next(natives))
                native = NativePayload(kind=NATIVE_KINDS[kind], payload=payload, api_surface=self._surface)
                self.chunks.append(native)

    def add_retry(self, fields: Mapping[str, Json]) -> None:
        attempt, of = int(fields["attempt"]), int(fields["maxAttempts"])
        delay, message = float(fields["delay"]), str(fields["message"])
        self.chunks.append(RetryNotice(attempt=attempt, max_attempts=of, delay=delay, message=message))

    def add_server_tool(self, fields: Mapping[str, Json]) -> None:
        self.chunks.append(ServerToolChunk(str(fields["toolName"]), fields.get("input")))

    def close_with(self, message: Message, error: JsonObject | None) -> None:
        assert isinstance(message, AssistantMessage)
        self.closed = True
        self.interrupted = message.state == "interrupted"
        self.error = None if error is None else dict(error)
        # What the reply has besides its text comes at its end, where the engine only collects it.
        self.chunks += [*message.reasoning, *message.tool_calls]
        self._add_facts(message.metadata)

    def close(self, said: Mapping[str, Json], error: JsonObject | None) -> None:
        """The reply left no message in the conversation."""
        self.closed = True
        self.error = None if error is None else dict(error)
        self._add_facts(said.get("metadata") or {})

    def _add_facts(self, metadata: Mapping[str, Json]) -> None:
        usage = normalize_usage(metadata)
        own = {name: value for name, value in metadata.items() if name not in _USAGE_KEYS}
        if usage is not None:
            self.chunks.append(usage)
        if own:
            self.chunks.append(MetadataChunk(own))
        reason = metadata.get("stopReason")
        if reason is not None and not self.interrupted and self.error is None:
            self.chunks.append(StopChunk(convert(reason, StopReason), metadata.get("stopDetail")))

    # --- giving it again --------------------------------------------------------------------------------

    def failure(self) -> RobotaError | None:
        """The error that ended the call, with its code and its words."""
        if self.error is None:
            return None
        facts = {"code": self.error["code"], "recoverable": bool(self.error.get("recoverable", False))}
        failure: RobotaError = type("RecordedError", (RobotaError,), facts)(self.error["message"])
        return failure
