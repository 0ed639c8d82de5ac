"""The four protocols as a client without a library sees them: where to ask, what to send, what comes back."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

MESSAGES = [{"role": "user", "content": "Hello"}]
PLAIN = "generateContent"
STREAMED = "streamGenerateContent"


class Wire(Struct, frozen=True):
    name: str
    path: str
    body: dict[str, Any]

    def url(self, base: str, *, stream: bool) -> str:
        if self.name != "gemini":
            return base + self.path
        return f"{base}{self.path}:{STREAMED}?alt=sse" if stream else f"{base}{self.path}:{PLAIN}"

    def request(self, *, stream: bool) -> dict[str, Any]:
        return {**self.body, "stream": True} if stream and self.name != "gemini" else self.body

    def text(self, body: str, *, stream: bool) -> str:
        """What the model said."""
        if not stream:
            return _document_text(self.name, json.loads(body))
        return "".join(_event_text(self.name, event) for event in events(body))

    def calls(self, body: str) -> list[dict[str, Any]]:
        """The calls of a document, with `id` (or none) and `arguments` as the protocol has them."""
        document = json.loads(body)
        match self.name:
            case "chat":
                made = document["choices"][0]["message"]["tool_calls"]
                return [{**call, "arguments": call["function"]["arguments"]} for call in made]
            case "responses":
                made = [item for item in document["output"] if item["type"] == "function_call"]
                return [_renamed(item, "call_id", "arguments") for item in made]
            case "messages":
                made = [block for block in document["content"] if block["type"] == "tool_use"]
                return [_renamed(block, "id", "input") for block in made]
        parts = document["candidates"][0]["content"]["parts"]
        return [_renamed(part["functionCall"], "id", "args") for part in parts if "functionCall" in part]


WIRES = (
    Wire("chat", "/v1/chat/completions", {"model": "m", "messages": MESSAGES}),
    Wire("responses", "/v1/responses", {"model": "m", "input": "Hello"}),
    Wire("messages", "/v1/messages", {"model": "m", "max_tokens": 9, "messages": MESSAGES}),
    Wire("gemini", "/v1beta/models/m", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
)


def events(body: str) -> list[dict[str, Any]]:
    """The JSON of the events."""
    lines = [line[6:] for line in body.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def _renamed(call: dict[str, Any], id: str, arguments: str) -> dict[str, Any]:
    return {**({"id": call[id]} if id in call else {}), "arguments": call[arguments]}


def _event_text(name: str, event: dict[str, Any]) -> str:
    match name:
        case "chat":
            return "".join(choice["delta"].get("content") or "" for choice in event.get("choices", ()))
        case "responses":
            return event["delta"] if event["type"] == "response.output_text.delta" else ""
        case "messages":
            return event["delta"].get("text", "") if event["type"] == "content_block_delta" else ""
    return _candidates_text(event)


def _document_text(name: str, document: dict[str, Any]) -> str:
    match name:
        case "chat":
            return document["choices"][0]["message"]["content"]
        case "responses":
            texts = [item["content"][0]["text"] for item in document["output"] if item["type"] == "message"]
            return "".join(texts)
        case "messages":
            return "".join(block.get("text", "") for block in document["content"])
    return _candidates_text(document)


def _candidates_text(reply: dict[str, Any]) -> str:
    parts = [part for made in reply.get("candidates", ()) for part in made["content"]["parts"]]
    return "".join(part.get("text", "") for part in parts)
