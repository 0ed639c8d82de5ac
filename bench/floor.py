"""The yardstick: the same agent written by hand on httpx2 and the standard library's JSON, nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
from workload import FUNCTIONS, MODEL, PROMPT, SYSTEM, TOOLS_ON_THE_WIRE

HEADERS = {"authorization": "Bearer none", "content-type": "application/json"}
Message = dict[str, Any]


class Call(NamedTuple):
    id: str
    name: str
    arguments: str


class Floor:
    """Chat Completions. `plain` asks for whole answers instead of streams."""

    path = "/chat/completions"

    def __init__(self, base_url: str, *, plain: bool = False) -> None:
        self.url = f"{base_url}{self.path}"
        self.plain = plain
        limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)
        self.client = httpx2.AsyncClient(headers=HEADERS, timeout=60, limits=limits)

    def new_agent(self) -> list[Message]:
        return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]

    async def run(self, messages: list[Message]) -> tuple[int, int]:
        """To the last answer; returns how many pieces of text came and how long they were together."""
        pieces: list[str] = []
        ask = self.ask if self.plain else self.ask_streaming
        while True:
            calls = await ask(messages, pieces)
            if not calls:
                return len(pieces), sum(map(len, pieces))
            if len(calls) == 1:
                results = [await self.call_tool(calls[0])]
            else:
                results = await asyncio.gather(*map(self.call_tool, calls))
            self.add_results(messages, results)

    async def call_tool(self, call: Call) -> tuple[Call, str]:
        return call, str(await FUNCTIONS[call.name](**json.loads(call.arguments)))

    def add_results(self, messages: list[Message], results: list[tuple[Call, str]]) -> None:
        for call, text in results:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

    async def ask(self, messages: list[Message], pieces: list[str]) -> list[Call]:
        body = {"model": MODEL, "messages": messages, "tools": TOOLS_ON_THE_WIRE}
        response = await self.client.post(self.url, content=json.dumps(body))
        response.raise_for_status()
        answer: Message = json.loads(response.content)["choices"][0]["message"]
        if answer["content"]:
            pieces.append(answer["content"])
        messages.append(answer)
        return read_calls(answer)

    async def ask_streaming(self, messages: list[Message], pieces: list[str]) -> list[Call]:
        body = {
            "model": MODEL,
            "messages": messages,
            "tools": TOOLS_ON_THE_WIRE,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        text: list[str] = []
        calls: list[Message] = []
        async for event in self.events(body):
            if not event["choices"]:
                continue
            delta = event["choices"][0]["delta"]
            piece = delta.get("content")
            if piece:
                text.append(piece)
            for part in delta.get("tool_calls") or ():
                if "id" in part:
                    calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
                else:
                    calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
        pieces += text
        answer: Message = {"role": "assistant", "content": "".join(text) or None}
        if calls:
            answer["tool_calls"] = calls
        messages.append(answer)
        return read_calls(answer)

    async def events(self, body: Message) -> AsyncIterator[Message]:
        async with self.client.stream("POST", self.url, content=json.dumps(body)) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    yield json.loads(line[6:])

    async def close(self) -> None:
        await self.client.aclose()


def read_calls(answer: Message) -> list[Call]:
    return [
        Call(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in answer.get("tool_calls") or ()
    ]
