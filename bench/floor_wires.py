"""The yardstick on the other wires: the same hand-written loop, in the words of each service."""

from __future__ import annotations

import json
from typing import Any

from floor import Call, Floor, Message
from workload import MODEL, PROMPT, SYSTEM, TOOLS_ON_THE_WIRE

FUNCTIONS_ON_THE_WIRE: list[dict[str, Any]] = [tool["function"] for tool in TOOLS_ON_THE_WIRE]  # type: ignore[misc]


class MessagesFloor(Floor):
    path = "/messages"
    tools = [  # noqa: RUF012 - never changed
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in FUNCTIONS_ON_THE_WIRE
    ]

    def new_agent(self) -> list[Message]:
        return [{"role": "user", "content": PROMPT}]

    async def ask_streaming(self, messages: list[Message], pieces: list[str]) -> list[Call]:
        body = {"model": MODEL, "max_tokens": 4096, "system": SYSTEM, "messages": messages}
        text: list[str] = []
        blocks: dict[int, Message] = {}
        async for event in self.events({**body, "tools": self.tools, "stream": True}):
            kind = event["type"]
            if kind == "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    text.append(delta["text"])
                else:
                    blocks[event["index"]]["input"] += delta["partial_json"]
            elif kind == "content_block_start" and event["content_block"]["type"] == "tool_use":
                blocks[event["index"]] = {**event["content_block"], "input": ""}
        pieces += text
        calls = [Call(block["id"], block["name"], block["input"]) for block in blocks.values()]
        for block in blocks.values():
            block["input"] = json.loads(block["input"])
        content: list[Message] = [{"type": "text", "text": "".join(text)}] if text else []
        messages.append({"role": "assistant", "content": [*content, *blocks.values()]})
        return calls

    def add_results(self, messages: list[Message], results: list[tuple[Call, str]]) -> None:
        content = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in results]
        messages.append({"role": "user", "content": content})


class ResponsesFloor(Floor):
    path = "/responses"
    tools = [{"type": "function", "strict": False, **tool} for tool in FUNCTIONS_ON_THE_WIRE]  # noqa: RUF012

    def new_agent(self) -> list[Message]:
        return [{"role": "user", "content": PROMPT}]

    async def ask_streaming(self, messages: list[Message], pieces: list[str]) -> list[Call]:
        body = {"model": MODEL, "instructions": SYSTEM, "input": messages, "tools": self.tools}
        text: list[str] = []
        calls: list[Call] = []
        async for event in self.events({**body, "stream": True, "store": False}):
            kind = event["type"]
            if kind == "response.output_text.delta":
                text.append(event["delta"])
            elif kind == "response.output_item.done":
                item = event["item"]
                messages.append(item)
                if item["type"] == "function_call":
                    calls.append(Call(item["call_id"], item["name"], item["arguments"]))
        pieces += text
        return calls

    def add_results(self, messages: list[Message], results: list[tuple[Call, str]]) -> None:
        for call, text in results:
            messages.append({"type": "function_call_output", "call_id": call.id, "output": text})


class GeminiFloor(Floor):
    path = f"/models/{MODEL}:streamGenerateContent?alt=sse"
    tools = [{"functionDeclarations": FUNCTIONS_ON_THE_WIRE}]  # noqa: RUF012 - never changed

    def new_agent(self) -> list[Message]:
        return [{"role": "user", "parts": [{"text": PROMPT}]}]

    async def ask_streaming(self, messages: list[Message], pieces: list[str]) -> list[Call]:
        system = {"parts": [{"text": SYSTEM}]}
        text: list[str] = []
        parts: list[Message] = []
        body = {"contents": messages, "systemInstruction": system, "tools": self.tools}
        async for event in self.events(body):
            for part in event["candidates"][0]["content"]["parts"]:
                if "functionCall" in part:
                    parts.append(part)
                elif part["text"]:
                    text.append(part["text"])
        pieces += text
        if text:
            parts.append({"text": "".join(text)})
        messages.append({"role": "model", "parts": parts})
        wanted = [part["functionCall"] for part in parts if "functionCall" in part]
        return [Call("", call["name"], json.dumps(call["args"])) for call in wanted]

    def add_results(self, messages: list[Message], results: list[tuple[Call, str]]) -> None:
        parts = [
            {"functionResponse": {"name": call.name, "response": {"result": text}}} for call, text in results
        ]
        messages.append({"role": "user", "parts": parts})


FLOORS: dict[str, type[Floor]] = {
    "chat": Floor,
    "messages": MessagesFloor,
    "responses": ResponsesFloor,
    "gemini": GeminiFloor,
}
