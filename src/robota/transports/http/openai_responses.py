"""The Responses API: an agent's answer as one message, whole or event by event."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from robota.core.events import ReasoningDelta, TextDelta
from robota.core.jsontext import encode
from robota.core.messages import JsonObject, TokenUsage

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.transports.http.openai_turn import AgentTurn

_CUT = {
    "max_tokens": "max_output_tokens",
    "max_rounds": "max_output_tokens",
    "content_filter": "content_filter",
}


def describe_response(turn: AgentTurn, result: ExecutionResult[Any], created: int) -> JsonObject:
    reason = _CUT.get(result.stop_reason)
    return {
        **_head(turn, turn.response_id, created),
        "status": "completed" if reason is None else "incomplete",
        "incomplete_details": None if reason is None else {"reason": reason},
        "output": [_message(turn, result.text, "completed")],
        "usage": describe_usage(result.usage),
        "robota": turn.describe(),
    }


async def stream_response(turn: AgentTurn, created: int) -> AsyncIterator[bytes]:
    """Each event with its number, as the protocol counts them."""
    events = _Events()
    begun = {**_head(turn, turn.response_id, created), "status": "in_progress", "output": [], "usage": None}
    yield events.write("response.created", response=begun)
    yield events.write("response.in_progress", response=begun)
    item = _message(turn, "", "in_progress")
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    yield events.write("response.output_item.added", output_index=0, item={**item, "content": []})
    yield events.write("response.content_part.added", **place, part=_part(""))
    text = ""
    async for piece in turn.pieces():
        match piece:
            case TextDelta(text=delta):
                text += delta
                yield events.write("response.output_text.delta", **place, delta=delta, logprobs=[])
            case ReasoningDelta():
                continue
            case result:
                whole = text or result.text
                yield events.write("response.output_text.done", **place, text=whole, logprobs=[])
                yield events.write("response.content_part.done", **place, part=_part(whole))
                done = _message(turn, whole, "completed")
                yield events.write("response.output_item.done", output_index=0, item=done)
                final = {**describe_response(turn, result, created), "output": [done]}
                yield events.write("response.completed", response=final)


class _Events:
    def __init__(self) -> None:
        self._number = -1

    def write(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        data = encode({"type": kind, "sequence_number": self._number, **fields})
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def write_failure(message: str, code: str) -> bytes:
    """What ends a stream that cannot go on."""
    data = encode({"type": "error", "sequence_number": 0, "message": message, "code": code, "param": None})
    return b"event: error\ndata: %b\n\n" % data


def _head(turn: AgentTurn, id: str, created: int) -> JsonObject:
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "model": turn.model,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": None,
        "top_p": None,
        "tool_choice": "auto",
        "tools": [],
    }


def _message(turn: AgentTurn, text: str, status: str) -> JsonObject:
    return {
        "type": "message",
        "id": f"msg_{turn.session.session_id}",
        "status": status,
        "role": "assistant",
        "content": [_part(text)],
    }


def _part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def describe_usage(usage: TokenUsage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def now() -> int:
    return int(time.time())
