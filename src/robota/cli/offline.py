"""The scripted offline model: a real HTTP server on loopback that plays a fixed part.

It looks at one file of the working directory and says so, which makes a first turn show streaming, a tool
call and an answer without a key, a network or a download.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from robota.core.messages import Json, TokenUsage
from robota.core.provider import Chunk
from robota.testing import call
from robota.testing.http_server import ReceivedRequest
from robota.testing.model_server import ModelServer

MODEL = "scripted-offline"
CONTEXT_WINDOW = 100_000
LOOKED_AT = ("README.md", "README.rst", "README", "pyproject.toml", "package.json")


@asynccontextmanager
async def offline_model() -> AsyncIterator[str]:
    """The base URL of the offline model, served while the block runs."""
    async with ModelServer(play, repeat=True, models=(MODEL,)) as server:
        yield f"{server.url}/v1"


def count_tokens(request: ReceivedRequest, reply: list[str | Chunk]) -> TokenUsage:
    """What a real model would count, by the rule of thumb of four bytes each: the context that is shown fits
    the parts that are listed."""
    written = sum(len(str(each)) for each in reply)
    return TokenUsage(len(request.raw) // 4, max(1, written // 4))


def play(request: ReceivedRequest) -> list[str | Chunk]:
    reply = _reply(request)
    return [*reply, count_tokens(request, reply)]


def _reply(request: ReceivedRequest) -> list[str | Chunk]:
    """Read a file first if there is one, then answer."""
    messages: list[Json] = request.body["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    results = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
    if results:
        return _answer(str(messages[asked]["content"]), len(results[0].splitlines()))
    found = next((name for name in LOOKED_AT if os.path.isfile(name)), None)
    if found is None:
        return _answer(str(messages[asked]["content"]), None)
    return [f"I will look at {found} ", "first.", call("Read", file_path=found, limit=20)]


def _answer(prompt: str, lines: int | None) -> list[str | Chunk]:
    saw = "There was no file to look at" if lines is None else f"The tool gave me {lines} lines"
    return [
        "I am the scripted offline model, ",
        f"so I can only repeat: you said {prompt!r}. ",
        f"{saw}. ",
        "With a real model the same turn would go on from here.",
    ]
