"""OpenAI Chat Completions from the server's side: how replies are said, what requests must look like.

A tool call opens with its id and name and sends its arguments in fragments, as the vendor does; scripts that
want other fragments, no id or the same id twice write `ToolInputChunk` steps. `check` refuses what the
vendor or llama.cpp refuses, so a history that would fail in production fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, cast

import msgspec

from robota.core.messages import Json, JsonObject, StopReason, TokenUsage, ToolCall
from robota.core.provider import StopChunk, TextChunk, ToolInputChunk
from robota.testing.dialect import (
    Conversation,
    Dialect,
    Events,
    ReplyEncoder,
    Said,
    ServerSentEvent,
    Turn,
    pieces_of,
    read_arguments,
)

ENVELOPE = {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1_700_000_000}
FINISH_WORDS: dict[StopReason, str] = {
    "end_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "stop",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_exceeded",
    529: "overloaded_error",
}
ROLES = ("system", "developer", "user", "assistant", "tool")
_encode = msgspec.json.encode


class ChatReply(ReplyEncoder):
    protocol = "Chat Completions"
    end_mark = ("", b"[DONE]")

    def __init__(self, model: str, include_usage: bool) -> None:
        super().__init__()
        self._envelope: JsonObject = {**ENVELOPE, "model": model}
        self._include_usage = include_usage
        self._calls = 0
        self._opening = b""
        self._closing = b',"usage":null}' if include_usage else b"}"
        self.note({})

    def begin(self, first: Said | None) -> Iterator[ServerSentEvent]:
        text_first = first is None or isinstance(first, (str, TextChunk))
        yield self._delta({"role": "assistant", "content": "" if text_first else None})

    def text(self, text: str) -> Events:
        delta = b'%b{"content":%b},"logprobs":null,"finish_reason":null}]%b' % (
            self._opening, _encode(text), self._closing,
        )  # fmt: skip
        return (("", delta),)

    def think(self, text: str) -> Events:
        return (self._delta({"reasoning_content": text}),)

    def fragment(self, chunk: ToolInputChunk) -> Events:
        self._calls = max(self._calls, chunk.index + 1)
        function: JsonObject = {"arguments": chunk.delta}
        call: JsonObject = {"index": chunk.index}
        if chunk.id:
            call["id"] = chunk.id
        if chunk.name:
            call["type"] = "function"
            function = {"name": chunk.name, **function}
        return (self._delta({"tool_calls": [{**call, "function": function}]}),)

    def call(self, call: ToolCall) -> Events:
        return [event for piece in pieces_of(call, self._calls) for event in self.fragment(piece)]

    def note(self, facts: JsonObject) -> None:
        """Prepare the bytes around every delta; a long stream then costs one short encoding per delta."""
        self._envelope.update(facts)
        self._opening = _encode(self._envelope)[:-1] + b',"choices":[{"index":0,"delta":'

    def end(self) -> Iterator[ServerSentEvent]:
        stop = self.stop or StopChunk("tool_use" if self._calls else "end_turn")
        if stop.reason == "refusal":
            yield self._delta({"refusal": stop.detail or "I cannot help with that."})
            word = FINISH_WORDS["refusal"]
        else:
            word = stop.detail or FINISH_WORDS.get(stop.reason, stop.reason)
        yield self._delta({}, finish=word)
        if self._include_usage:
            yield "", _encode({**self._envelope, "choices": [], "usage": _usage(self.usage)})

    def whole(self, said: Sequence[Said]) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": "", "refusal": None}
        calls: dict[int, JsonObject] = {}
        finish = None
        for event in self.decoded(said):
            for choice in event["choices"]:
                finish = choice["finish_reason"] or finish
                _merge(message, calls, choice["delta"])
        if calls:
            message["tool_calls"] = list(calls.values())
            message["content"] = message["content"] or None
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        whole = {**self._envelope, "object": "chat.completion", "choices": [choice]}
        return {**whole, "usage": _usage(self.usage)}

    def _delta(self, delta: JsonObject, *, finish: str | None = None) -> ServerSentEvent:
        rest = b',"logprobs":null,"finish_reason":%b}]%b' % (_encode(finish), self._closing)
        return "", self._opening + _encode(delta) + rest


def _merge(message: JsonObject, calls: dict[int, JsonObject], delta: JsonObject) -> None:
    for key in ("content", "reasoning_content", "refusal"):
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    for part in delta.get("tool_calls", ()):
        call = calls.setdefault(
            part["index"], {"type": "function", "function": {"name": "", "arguments": ""}}
        )
        if "id" in part:
            call["id"] = part["id"]
        call["function"]["name"] += part["function"].get("name", "")
        call["function"]["arguments"] += part["function"]["arguments"]


def _usage(usage: TokenUsage) -> JsonObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


class ChatCompletions(Dialect):
    name = "chat"
    reply = ChatReply
    path = "/chat/completions"
    base_path = "/v1"

    def problems(self, body: JsonObject) -> Iterator[str]:
        if not isinstance(body.get("model"), str) or not body["model"]:
            yield "you must provide a model parameter"
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            yield "messages must be a list with at least one message"
        yield from _check_messages(messages)
        yield from _check_tools(body.get("tools"))

    def read(self, body: JsonObject) -> Conversation:
        turns = tuple(_turn(message) for message in body.get("messages", ()))
        return Conversation(turns, tuple(tool["function"]["name"] for tool in body.get("tools") or ()))

    def variant(self, path: str, body: JsonObject) -> tuple[str, bool]:
        options = body.get("stream_options")
        return str(body.get("model", "")), isinstance(options, dict) and options.get("include_usage") is True

    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        return "", _encode({"error": {"message": message, "type": kind, "param": None, "code": kind}})

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        return "", _encode({**ENVELOPE, "object": kind, "choices": [], **fields})

    def error_body(self, status: int, message: str) -> JsonObject:
        return openai_error(status, message)


def openai_error(status: int, message: str) -> JsonObject:
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": kind}}


def _text(content: Json) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if part.get("type") in ("text", "refusal"))
    return content or ""


def _turn(message: JsonObject) -> Turn:
    role = "system" if message["role"] == "developer" else message["role"]
    calls = tuple(
        ToolCall(call.get("id", ""), call["function"]["name"], call["function"].get("arguments", ""))
        for call in message.get("tool_calls") or ()
    )
    known = cast(Literal["system", "user", "assistant", "tool"], role)
    return Turn(known, _text(message.get("content")), calls, message.get("tool_call_id", ""))


def _check_messages(messages: Json) -> Iterator[str]:
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in ROLES:
            yield f"messages[{at}].role is {role!r}; it must be one of {', '.join(ROLES)}"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"messages[{at}] has role 'tool' but answers no call of the assistant message before it"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"messages[{at}] comes before the answers to these tool calls: {', '.join(waiting)}"
        if role == "assistant":
            yield from (f"messages[{at}] {problem}" for problem in _check_assistant(message))
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
        elif not isinstance(message.get("content"), (str, list)):
            yield f"messages[{at}].content must be a string or a list of parts"
    if waiting:
        yield f"these tool calls have no answer: {', '.join(waiting)}"


def _check_assistant(message: JsonObject) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is None:
        if not isinstance(message.get("content"), (str, list)):
            yield "has neither content nor tool calls"
        return
    if not calls:
        yield "has an empty list of tool calls; leave the field out"
    ids = [call.get("id") for call in calls]
    if not all(ids) or len(set(ids)) < len(ids):
        yield f"has tool calls without ids of their own: {ids}"
    for call in calls:
        arguments = call.get("function", {}).get("arguments")
        if not arguments or not isinstance(read_arguments(arguments), dict):
            yield f"has a tool call whose arguments are not the text of a JSON object: {arguments!r}"


def _check_tools(tools: Json) -> Iterator[str]:
    if tools is not None and not tools:
        yield "tools is an empty list; leave the field out"
    for at, tool in enumerate(tools or ()):
        function = tool.get("function", {})
        name = str(function.get("name", ""))
        if tool.get("type") != "function" or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            yield f"tools[{at}] is not a function with a name of at most 64 letters, digits, _ and -"
        if function.get("parameters", {"type": "object"}).get("type") != "object":
            yield f"tools[{at}].function.parameters must be a JSON schema of type object"
