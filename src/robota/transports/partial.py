"""An answer while it streams, told as stream events of the Messages API whoever the provider is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from uuid import uuid4

from robota.core.messages import AssistantMessage, JsonObject, TokenUsage
from robota.transports.blocks import usage_fields

SendEvent: TypeAlias = Callable[[JsonObject], None]

STOP_REASONS: dict[str, str | None] = {
    "aborted": None,
    "error": None,
    "content_filter": "refusal",
    "context_overflow": "model_context_window_exceeded",
    "pause": "pause_turn",
    "max_rounds": "tool_use",
}


def stop_reason(reason: str | None) -> str | None:
    """Our reason in the words of that API; what it has no word for stays ours."""
    return None if reason is None else STOP_REASONS.get(reason, reason)


class PartialMessage:
    """One answer: a start, blocks one after another, an end. Nothing is sent before its first piece."""

    __slots__ = ("_block", "_calls", "_index", "_kinds", "_send", "_started", "id", "model")

    def __init__(self, send: SendEvent, model: str) -> None:
        self._send = send
        self.model = model
        self.id = f"msg_{uuid4().hex}"
        self._started = False
        self._index = -1
        self._block: object = None
        """What the open block is of: `text`, `thinking`, or the number of a call."""
        self._kinds: set[str] = set()
        self._calls: set[str] = set()
        """Calls whose arguments were streamed."""

    def add_text(self, text: str) -> None:
        self._enter("text", {"type": "text", "text": ""})
        self._delta({"type": "text_delta", "text": text})

    def add_thinking(self, text: str) -> None:
        self._enter("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        self._delta({"type": "thinking_delta", "thinking": text})

    def add_input(self, index: int, call_id: str, name: str, text: str) -> None:
        """A piece of the arguments of the call with that number; its first one names it."""
        if self._block != index:
            if call_id in self._calls or not name:
                return  # a block that is closed cannot be opened again
            self._calls.add(call_id)
            self._enter(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
        if text:
            self._delta({"type": "input_json_delta", "partial_json": text})

    def finish(
        self, message: AssistantMessage, usage: TokenUsage, tell: Callable[[], None] = lambda: None
    ) -> None:
        """The rest of the answer; `tell` sends the whole of it, before its last block ends."""
        if "thinking" not in self._kinds and any(block.text for block in message.reasoning):
            self.add_thinking("\n\n".join(block.text for block in message.reasoning if block.text))
        signed = next((block.signature for block in reversed(message.reasoning) if block.signature), None)
        if signed and self._block == "thinking":
            self._delta({"type": "signature_delta", "signature": signed})
        if "text" not in self._kinds and message.content:
            self.add_text(message.content)
        for place, call in enumerate(message.tool_calls):
            if call.id not in self._calls:
                self.add_input(-1 - place, call.id, call.name, call.arguments)
        self._start()
        tell()
        self._close()
        reason = stop_reason(message.metadata.get("stopReason"))
        self._send(
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": usage_fields(usage),
            }
        )
        self._send({"type": "message_stop"})

    def abandon(self) -> None:
        """Nothing more comes, and nothing of it is kept."""
        if self._started:
            self._close()
            self._send({"type": "message_stop"})

    def _start(self) -> None:
        if not self._started:
            self._started = True
            message: JsonObject = {"id": self.id, "type": "message", "role": "assistant", "model": self.model}
            message |= {"content": [], "stop_reason": None, "stop_sequence": None}
            self._send({"type": "message_start", "message": message | {"usage": usage_fields(TokenUsage())}})

    def _enter(self, kind: object, block: JsonObject) -> None:
        self._start()
        if self._block == kind:
            return
        self._close()
        self._block = kind
        self._kinds.add(block["type"])
        self._index += 1
        self._send({"type": "content_block_start", "index": self._index, "content_block": block})

    def _delta(self, delta: JsonObject) -> None:
        self._send({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self) -> None:
        if self._block is not None:
            self._send({"type": "content_block_stop", "index": self._index})
            self._block = None
