"""Chat completions: an agent's answer in the shape of a model's."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from robota.core.events import ReasoningDelta, TextDelta
from robota.core.jsontext import encode
from robota.core.messages import JsonObject, TokenUsage

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.transports.http.openai_requests import Task
    from robota.transports.http.openai_turn import AgentTurn

DONE = b"data: [DONE]\n\n"
_FINISHES = {
    "max_tokens": "length",
    "max_rounds": "length",
    "context_overflow": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


def describe_chat(turn: AgentTurn, result: ExecutionResult[Any]) -> JsonObject:
    message = {"role": "assistant", "content": result.text, "refusal": None}
    finish = _FINISHES.get(result.stop_reason, "stop")
    return {
        **_head(turn, "chat.completion"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": describe_usage(result.usage),
        "robota": turn.describe(),
    }


async def stream_chat(turn: AgentTurn, task: Task) -> AsyncIterator[bytes]:
    """The chunks of an answer. Calls of tools are the agent's own business and not told."""
    head = _head(turn, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    said = False
    async for piece in turn.pieces():
        match piece:
            case TextDelta(text=text):
                said = True
                yield _chunk(head, {"content": text})
            case ReasoningDelta(text=text):
                yield _chunk(head, {"reasoning_content": text})
            case result:
                if not said and result.text:
                    yield _chunk(head, {"content": result.text})
                finish = "stop" if result.interrupted else _FINISHES.get(result.stop_reason, "stop")
                yield _chunk({**head, "robota": turn.describe()}, {}, finish)
                if task.include_usage:
                    usage = {**head, "choices": [], "usage": describe_usage(result.usage)}
                    yield b"data: %b\n\n" % encode(usage)
    yield DONE


def _head(turn: AgentTurn, kind: str) -> JsonObject:
    return {
        "id": f"chatcmpl-{turn.session.session_id}",
        "object": kind,
        "created": int(time.time()),
        "model": turn.model,
    }


def _chunk(head: JsonObject, delta: JsonObject, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: %b\n\n" % encode({**head, "choices": [choice]})


def describe_usage(usage: TokenUsage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
