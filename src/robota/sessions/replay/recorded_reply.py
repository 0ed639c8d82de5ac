"""A reply of the model as the journal has it, ready to be given again chunk by chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, convert

from robota.core.context import normalize_usage
from robota.core.errors import (
    AuthenticationError,
    NetworkError,
    ProviderError,
    RateLimitError,
    RobotaError,
)
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json, JsonObject, StopReason
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
from robota.sessions.journal.entries import NATIVE_KINDS
from robota.sessions.journal.records import (
    INPUT,
    PROGRESS,
    TEXT,
    TEXT_WITH_BYTES,
    THOUGHT,
    Pieces,
    Record,
    RetryRecord,
    ServerToolRecord,
    read_list,
)

_ENGINE_KEYS = {
    *("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
    *("stopReason", "stopDetail", "providerError", "incomplete"),
}
"""What the engine itself adds to a message's metadata."""
_SERVICE_ERRORS = {
    kind.code: kind for kind in (ProviderError, AuthenticationError, RateLimitError, NetworkError)
}
_TOO_LARGE = 413


class Meanwhile(Struct, frozen=True):
    """Something that was done to the session at this point of the reply."""

    record: Record


RecordedPiece: TypeAlias = Chunk | Meanwhile


class RecordedReply:
    __slots__ = ("_surface", "closed", "error", "interrupted", "pieces")

    def __init__(self) -> None:
        self.pieces: list[RecordedPiece] = []
        self.error: JsonObject | None = None
        """Code and message of the failure that ended it."""
        self.interrupted = False
        """The user stopped it, after the last of the pieces."""
        self.closed = False
        """Its end is on record."""
        self._surface: str | None = None

    # --- taking it from the journal -----------------------------------------------------------------------

    def add_text(self, text: str) -> None:
        if text:
            self.pieces.append(TextChunk(text))

    def add_pieces(self, pieces: Pieces) -> None:
        texts, natives = iter(pieces.list_texts()), iter(read_list(pieces.native))
        inputs = iter(read_list(pieces.inputs))
        self._surface = pieces.surface or self._surface
        for kind in pieces.list_kinds():
            if kind == TEXT:
                self.pieces.append(TextChunk(next(texts)))
            elif kind == TEXT_WITH_BYTES:
                self.pieces.append(TextChunk(next(texts), encode(next(natives))))
            elif kind == THOUGHT:
                self.pieces.append(ReasoningChunk(next(texts)))
            elif kind == INPUT:
                at, call_id, name = next(inputs)
                self.pieces.append(ToolInputChunk(at, next(texts), call_id, name))
            elif kind != PROGRESS:
                payload = encode(next(natives))
                native = NativePayload(kind=NATIVE_KINDS[kind], payload=payload, api_surface=self._surface)
                self.pieces.append(native)

    def add_retry(self, record: RetryRecord) -> None:
        known = ("attempt", "max_attempts", "delay", "message")
        self.pieces.append(RetryNotice(**{name: getattr(record, name) for name in known}))

    def add_server_tool(self, record: ServerToolRecord) -> None:
        self.pieces.append(ServerToolChunk(record.tool_name, record.input))

    def add_aside(self, record: Record) -> None:
        self.pieces.append(Meanwhile(record))

    def close(self, message: AssistantMessage, error: Mapping[str, Json] | None) -> None:
        """The message that became of it. What a reply has besides its text comes at its end, where the
        engine only collects it."""
        self.closed = True
        self.interrupted = message.state == "interrupted"
        self.error = None if error is None else dict(error)
        self.pieces += [*message.reasoning, *message.tool_calls]
        metadata = message.metadata
        own = {name: value for name, value in metadata.items() if name not in _ENGINE_KEYS}
        usage = normalize_usage(metadata)
        if usage is not None:
            self.pieces.append(usage)
        if own:
            self.pieces.append(MetadataChunk(own))
        reason, detail = metadata.get("stopReason"), metadata.get("stopDetail")
        if self.interrupted or self.error is not None:
            reason = "other" if detail else None  # the engine gives the reason, the provider its words
        if reason is not None:
            self.pieces.append(StopChunk(convert(reason, StopReason), detail))

    # --- giving it again --------------------------------------------------------------------------------

    def failure(self) -> RobotaError | None:
        """The error that ended the call, with its code and its words."""
        if self.error is None:
            return None
        code = str(self.error["code"])
        kind: type[RobotaError] = _SERVICE_ERRORS.get(code, RobotaError)
        facts: JsonObject = {"code": code, "recoverable": bool(self.error.get("recoverable", False))}
        if self.error.get("overflow"):
            facts["status"] = _TOO_LARGE
        failure = kind(str(self.error["message"]))
        for name, value in facts.items():
            setattr(failure, name, value)
        return failure
