"""Events of a Messages stream, for tests that write one."""

from __future__ import annotations

import json
from typing import Any


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind}\ndata: {data}\n\n".encode()


def start(**message: Any) -> bytes:
    usage = {"input_tokens": 3, "output_tokens": 1}
    return event("message_start", message={"id": "msg_1", "model": "served", "usage": usage, **message})


def opened(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: int, **fields: Any) -> bytes:
    return event("content_block_delta", index=index, delta=fields)


def closed(index: int) -> bytes:
    return event("content_block_stop", index=index)


def text(index: int, *pieces: str) -> list[bytes]:
    deltas = [delta(index, type="text_delta", text=piece) for piece in pieces]
    return [opened(index, type="text", text=""), *deltas, closed(index)]


def call(index: int, id: str, name: str, *pieces: str) -> list[bytes]:
    deltas = [delta(index, type="input_json_delta", partial_json=piece) for piece in pieces]
    return [opened(index, type="tool_use", id=id, name=name, input={}), *deltas, closed(index)]


def stop(reason: str | None = "end_turn", **fields: Any) -> bytes:
    usage = {"output_tokens": 5}
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None, **fields}, usage=usage)


END = event("message_stop")
PING = event("ping")
