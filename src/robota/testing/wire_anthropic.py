"""Anthropic's Messages API from the server's side: how replies are said, what requests must look like.

A call is a block that opens with its id and name and sends its input in fragments, as the vendor does;
scripts that want other fragments or half a call write `ToolInputChunk` steps. `ReasoningChunk` steps are
thinking that streams, and the `ReasoningBlock` after them signs it. `check` refuses what the vendor refuses,
so that a history that would fail in production fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import MetadataChunk, ServerToolChunk, StopChunk, ToolInputChunk
from robota.testing.dialect import (
    DEFAULT_USAGE,
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

SIGNATURE = "c2NyaXB0ZWQ="
"""What thinking is signed with whose script does not say."""
STOP_WORDS: dict[StopReason, str] = {
    "pause": "pause_turn",
    "context_overflow": "model_context_window_exceeded",
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
SAMPLING = ("temperature", "top_p", "top_k")
MAX_MARKS = 4
CHOICES = ("auto", "any", "none", "tool")
BLOCKS = {
    "user": ("text", "image", "document", "tool_result", "search_result"),
    "assistant": (
        "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result",
    ),
}  # fmt: skip
_ID = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_encode = msgspec.json.encode


class MessagesReply(ReplyEncoder):
    """Blocks open when something is said that needs them and close when something else is."""

    protocol = "the Messages API"
    end_mark = ("message_stop", b'{"type":"message_stop"}')

    def __init__(self, model: str) -> None:
        super().__init__()
        self._message: JsonObject = {
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": None, "stop_sequence": None,
        }  # fmt: skip
        self._count = 0
        self._open: dict[str, int] = {}
        """Open blocks by what they are: `text`, `thinking`, or the number of a call."""
        self._calls = 0

    def begin(self, first: Said | None) -> Iterator[ServerSentEvent]:
        if isinstance(first, MetadataChunk):
            self.note(dict(first.values))
        usage = {**_usage(DEFAULT_USAGE), "output_tokens": 1}
        yield _event("message_start", message={**self._message, "usage": usage})
        yield _event("ping")

    def text(self, text: str) -> Events:
        return self._delta("text", {"type": "text", "text": ""}, {"type": "text_delta", "text": text})

    def end(self) -> Iterator[ServerSentEvent]:
        yield from self._close()
        stop = self.stop or StopChunk("tool_use" if self._calls else "end_turn")
        delta: JsonObject = {"stop_reason": STOP_WORDS.get(stop.reason, stop.reason), "stop_sequence": None}
        if stop.detail:
            delta["stop_details"] = {"type": stop.reason, "category": None, "explanation": stop.detail}
        yield _event("message_delta", delta=delta, usage=_usage(self.usage))

    def whole(self, said: Sequence[Said]) -> JsonObject:
        message: JsonObject = {}
        for event in self.decoded(said):
            message = _merge(message, event)
        return message

    # --- blocks ------------------------------------------------------------------------------------------

    def _start(self, key: str, block: JsonObject) -> Iterator[ServerSentEvent]:
        """Open a block; calls may be open side by side, everything else closes what is open."""
        if not (key.isdigit() and all(known.isdigit() for known in self._open)):
            yield from self._close()
        self._open[key] = self._count
        self._count += 1
        yield _event("content_block_start", index=self._open[key], content_block=block)

    def _close(self) -> Iterator[ServerSentEvent]:
        for index in self._open.values():
            yield _event("content_block_stop", index=index)
        self._open.clear()

    def _delta(self, key: str, block: JsonObject, delta: JsonObject) -> Iterator[ServerSentEvent]:
        if key not in self._open:
            yield from self._start(key, block)
        yield _event("content_block_delta", index=self._open[key], delta=delta)

    def think(self, text: str) -> Iterator[ServerSentEvent]:
        block = {"type": "thinking", "thinking": "", "signature": ""}
        return self._delta("thinking", block, {"type": "thinking_delta", "thinking": text})

    def thought(self, block: ReasoningBlock) -> Iterator[ServerSentEvent]:
        if isinstance(block.data, dict):
            yield from self._start("redacted", block.data)
        else:
            if "thinking" not in self._open:
                yield from self.think(block.text)
            delta = {"type": "signature_delta", "signature": block.signature or SIGNATURE}
            yield _event("content_block_delta", index=self._open["thinking"], delta=delta)
        yield from self._close()

    def fragment(self, chunk: ToolInputChunk) -> Iterator[ServerSentEvent]:
        self._calls = max(self._calls, chunk.index + 1)
        id = {"id": chunk.id} if chunk.id else {}
        block = {"type": "tool_use", **id, "name": chunk.name, "input": {}}
        return self._delta(str(chunk.index), block, {"type": "input_json_delta", "partial_json": chunk.delta})

    def call(self, call: ToolCall) -> Iterator[ServerSentEvent]:
        index = self._calls
        for piece in pieces_of(call, index):
            yield from self.fragment(piece)
        yield _event("content_block_stop", index=self._open.pop(str(index)))

    def hosted(self, tool: ServerToolChunk) -> Iterator[ServerSentEvent]:
        """A hosted tool with its result, which has nothing in it."""
        id = f"srvtoolu_{self._count}"
        block = {"type": "server_tool_use", "id": id, "name": tool.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": _encode(tool.input or {}).decode()}
        yield from self._delta("hosted", block, delta)
        result = {"type": f"{tool.name}_tool_result", "tool_use_id": id, "content": []}
        yield from self._start("result", result)
        yield from self._close()

    def note(self, facts: JsonObject) -> None:
        self._message.update({"id": facts.pop("responseId", self._message["id"]), **facts})


def _event(name: str, **fields: Json) -> ServerSentEvent:
    return name, _encode({"type": name, **fields})


def _usage(usage: TokenUsage) -> JsonObject:
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": usage.input_tokens - cached,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


def _merge(message: JsonObject, event: JsonObject) -> JsonObject:
    """The message as it is after one more event."""
    if event["type"] == "message_start":
        return dict(event["message"])
    if event["type"] == "message_delta":
        return {**message, **event["delta"], "usage": event["usage"]}
    if event["type"] == "content_block_start":
        message["content"].append(event["content_block"])
    elif event["type"] == "content_block_delta":
        block, delta = message["content"][event["index"]], event["delta"]
        for key in ("text", "thinking", "signature", "partial_json"):
            if key in delta:
                block[key] = block.get(key, "") + delta[key]
    elif event["type"] == "content_block_stop":
        block = message["content"][event["index"]]
        if "partial_json" in block:
            block["input"] = read_arguments(block.pop("partial_json"))
    return message


class Messages(Dialect):
    name = "messages"
    reply = MessagesReply
    path = "/v1/messages"
    delta_name = "content_block_delta"

    def problems(self, body: JsonObject) -> Iterator[str]:
        yield from _check_fields(body)
        system = body.get("system")
        for block in () if system is None or isinstance(system, str) else system:
            if block.get("type") != "text" or not block.get("text", "").strip():
                yield "system: text content blocks must be non-empty"
        yield from _check_tools(body.get("tools"))
        yield from _check_turns(body["messages"])
        marks = sum(1 for _ in _marks(body))
        if marks > MAX_MARKS:
            yield f"a maximum of {MAX_MARKS} blocks with cache_control may be provided; found {marks}"

    def read(self, body: JsonObject) -> Conversation:
        turns = [Turn("system", text) for text in _texts(body.get("system"))]
        for message in body.get("messages", ()):
            turns += _turns(message)
        return Conversation(tuple(turns), tuple(tool["name"] for tool in body.get("tools") or ()))

    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        return _event("error", error={"type": kind, "message": message})

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        return _event(kind, **fields)

    def error_body(self, status: int, message: str) -> JsonObject:
        kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}


def _texts(content: Json) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block.get("type") == "text"]


def _turns(message: JsonObject) -> Iterator[Turn]:
    """A message as turns: each tool result is one of its own, before what else the user says."""
    content = message["content"]
    blocks: list[JsonObject] = content if isinstance(content, list) else []
    text = "".join(_texts(content))
    if message["role"] == "assistant":
        calls = tuple(
            ToolCall(block["id"], block["name"], _encode(block["input"]).decode())
            for block in blocks
            if block["type"] == "tool_use"
        )
        yield Turn("assistant", text, calls)
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield Turn("tool", "".join(_texts(block.get("content"))), answers=block["tool_use_id"])
    if text or not any(block["type"] == "tool_result" for block in blocks):
        yield Turn("user", text)


# --- what the vendor refuses -----------------------------------------------------------------------------


def _check_fields(body: JsonObject) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: Field required"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Input should be greater than or equal to 1"
    yield from (
        f"{name}: this parameter was removed in version 2026-10-21" for name in SAMPLING if name in body
    )
    choice = body.get("tool_choice")
    if choice is not None and choice.get("type") not in CHOICES:
        yield f"tool_choice.type must be one of {', '.join(CHOICES)}"
    if choice is not None and not body.get("tools"):
        yield "tool_choice may only be specified while providing tools"
    if body.get("thinking") and choice is not None and choice["type"] in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        yield "messages: at least one message is required"


def _check_tools(tools: Json) -> Iterator[str]:
    names: set[str] = set()
    for at, tool in enumerate(tools or ()):
        name = tool.get("name", "")
        if not _NAME.fullmatch(name):
            yield f"tools.{at}.name: {name!r} does not match ^[a-zA-Z0-9_-]{{1,128}}$"
        if name in names:
            yield f"tools: Tool names must be unique; {name!r} is there twice"
        names.add(name)
        if "type" not in tool and tool.get("input_schema", {}).get("type") != "object":
            yield f"tools.{at}.input_schema must be a JSON schema of type object"


def _check_turns(messages: list[JsonObject]) -> Iterator[str]:
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in BLOCKS:
            yield f"messages.{at}.role must be user or assistant"
        else:
            yield from (f"messages.{at}: {problem}" for problem in _check_blocks(message, role))
    turns = _join_turns(messages)
    role, last = turns[-1]
    if turns[0][0] != "user":
        yield "messages: first message must use the user role"
    if role == "assistant" and not any(block["type"] == "server_tool_use" for block in last):
        yield "the conversation must end with a user message; assistant prefill is not supported"
    yield from (f"messages: {problem}" for problem in _check_calls(turns))


def _join_turns(messages: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Consecutive messages of one role are one turn to the API."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], [*blocks]))
    return turns


def _check_calls(turns: list[tuple[str, list[JsonObject]]]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for _, blocks in turns:
        yield from _check_answers(blocks, waiting)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        for id in waiting:
            if id in seen or not _ID.fullmatch(id):
                yield f"`tool_use` ids must be unique and match ^[a-zA-Z0-9_-]+$; got {id!r}"
            seen.add(id)


def _check_blocks(message: JsonObject, role: str) -> Iterator[str]:
    content = message.get("content")
    if not content or not isinstance(content, (str, list)):
        yield "content must be non-empty"
    elif isinstance(content, str) and not content.strip():
        yield "text content must be non-empty"
    for block in content if isinstance(content, list) else ():
        kind = block.get("type")
        if kind not in BLOCKS[role]:
            yield f"a block of type {kind!r} cannot stand in a message of the {role}"
        if kind == "text" and not block["text"].strip():
            yield "text content blocks must contain non-whitespace text"
        if kind == "thinking" and not block.get("signature"):
            yield "thinking.signature: Field required"
        if kind == "tool_use" and not isinstance(block.get("input"), dict):
            yield "tool_use.input: Input should be a valid dictionary"
        if role == "user" and block.get("citations"):
            yield "text blocks in user messages cannot have citations"


def _check_answers(blocks: list[JsonObject], waiting: list[str]) -> Iterator[str]:
    """Whether the results are those of the calls before, all of them, and in front."""
    answered = [block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"]
    for id in answered:
        if id not in waiting or answered.count(id) > 1:
            yield f"unexpected `tool_use_id` {id!r} in a tool_result: no call in the message before has it"
    missing = [id for id in waiting if id not in answered]
    if missing:
        yield f"`tool_use` ids were found without `tool_result` blocks right after: {', '.join(missing)}"
    if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
        yield "tool_result blocks must come first"


def _marks(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        if value.get("cache_control"):
            yield value
        for item in value.values():
            yield from _marks(item)
    elif isinstance(value, list):
        for item in value:
            yield from _marks(item)
