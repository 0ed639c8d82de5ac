"""OpenAI's Responses API from the server's side: how replies are said, what requests must look like.

Texts, thinking and calls become output items that are opened, streamed and closed as the vendor does it; a
call that is said in `ToolInputChunk` steps stays open until the reply ends. The rules that `check` keeps are
those that histories break: calls and outputs that have lost each other, reasoning that nothing follows, ids
that are too long or used twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, cast

import msgspec

from robota.core.messages import Json, JsonObject, ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import ServerToolChunk, StopChunk, ToolInputChunk
from robota.testing.dialect import (
    Conversation,
    Dialect,
    ReplyEncoder,
    Said,
    ServerSentEvent,
    Turn,
    pieces_of,
    read_arguments,
)
from robota.testing.wire_chat import openai_error

Role: TypeAlias = Literal["system", "user", "assistant"]
INCOMPLETE_WORDS = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
FOREIGN_FIELDS = ("messages", "max_tokens", "stop", "response_format", "stream_options", "reasoning_effort")
"""Fields of Chat Completions, which this API does not know."""
CONTENT_TYPES = {
    "user": ("input_text", "input_image", "input_file"),
    "developer": ("input_text",),
    "system": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
MAX_CALL_ID = 64
NOT_REASONING = ("gpt-3", "gpt-4", "chatgpt", "gpt-5-chat")
ENCRYPTED = "reasoning.encrypted_content"
_encode = msgspec.json.encode


class ResponsesReply(ReplyEncoder):
    protocol = "the Responses API"

    def __init__(self, model: str) -> None:
        super().__init__()
        self._response: JsonObject = {
            "id": "resp_scripted", "object": "response", "created_at": 1_700_000_000, "status": "in_progress",
            "error": None, "incomplete_details": None, "model": model, "output": [], "usage": None,
        }  # fmt: skip
        self._sequence = 0
        self._items: list[JsonObject] = []
        self._speaking: int | None = None
        """The place of the message or reasoning item that is being said."""
        self._calls: dict[int, int] = {}
        """Places of the calls that are open, by the index of their fragments."""
        self._opening = b""

    def begin(self, first: Said | None) -> Iterator[ServerSentEvent]:
        yield self._event("response.created", response=self._response)
        yield self._event("response.in_progress", response=self._response)

    def end(self) -> Iterator[ServerSentEvent]:
        stop = self.stop or StopChunk("end_turn")
        if stop.reason == "refusal":
            yield from self._refusal(stop.detail or "I cannot help with that.")
        whole = stop.reason in ("end_turn", "tool_use", "refusal")
        yield from self._close_speech("completed" if whole else "incomplete")
        for place in self._calls.values():
            yield from self._close_call(place, "completed" if whole else "incomplete")
        self._response["output"] = self._items
        self._response["usage"] = _usage(self.usage)
        self._response["status"] = "completed" if whole else "incomplete"
        if not whole:
            word = stop.detail or INCOMPLETE_WORDS.get(stop.reason, stop.reason)
            self._response["incomplete_details"] = {"reason": word}
        yield self._event(f"response.{self._response['status']}", response=self._response)

    def whole(self, said: Sequence[Said]) -> JsonObject:
        *_, last = self.decoded(said)
        response: JsonObject = last["response"]
        return response

    # --- texts -----------------------------------------------------------------------------------------

    def text(self, text: str) -> Iterator[ServerSentEvent]:
        yield from self._speak({"type": "message", "role": "assistant", "content": []})
        item = self._items[-1]
        if not item["content"]:
            item["content"].append({"type": "output_text", "text": "", "annotations": []})
            yield self._part("response.content_part.added", item["content"][0])
            self._opening = _encode(
                {"type": "response.output_text.delta", "item_id": item["id"],
                 "output_index": len(self._items) - 1, "content_index": 0, "logprobs": []}
            )[:-1]  # fmt: skip
        item["content"][0]["text"] += text
        self._sequence += 1
        delta = b'%b,"delta":%b,"sequence_number":%d}' % (self._opening, _encode(text), self._sequence)
        yield "response.output_text.delta", delta

    def _refusal(self, text: str) -> Iterator[ServerSentEvent]:
        yield from self._close_speech()
        yield from self._speak({"type": "message", "role": "assistant", "content": []})
        part = {"type": "refusal", "refusal": text}
        self._items[-1]["content"].append(part)
        yield self._part("response.content_part.added", {"type": "refusal", "refusal": ""})
        yield self._piece("response.refusal.delta", content_index=0, delta=text)

    def think(self, text: str) -> Iterator[ServerSentEvent]:
        yield from self._speak({"type": "reasoning", "summary": [], "encrypted_content": "scripted"})
        summary = self._items[-1]["summary"]
        if not summary:
            summary.append({"type": "summary_text", "text": ""})
            yield self._piece("response.reasoning_summary_part.added", summary_index=0, part=summary[0])
        summary[0]["text"] += text
        yield self._piece("response.reasoning_summary_text.delta", summary_index=0, delta=text)

    def thought(self, block: ReasoningBlock) -> Iterator[ServerSentEvent]:
        """Thinking as a whole; its `data` are fields of the item."""
        yield from self._close_speech()
        summary = [{"type": "summary_text", "text": block.text}] if block.text else []
        fields = block.data if isinstance(block.data, dict) else {}
        yield from self._speak(
            {"type": "reasoning", "summary": summary, "encrypted_content": "scripted", **fields}
        )
        yield from self._close_speech()

    def _speak(self, item: JsonObject) -> Iterator[ServerSentEvent]:
        """Go on with the item that is open if it is of this type; else open this one."""
        if self._speaking is not None and self._items[-1]["type"] == item["type"]:
            return
        yield from self._close_speech()
        yield self._open(item)
        self._speaking = len(self._items) - 1

    def _close_speech(self, status: str = "completed") -> Iterator[ServerSentEvent]:
        if self._speaking is None:
            return
        item = self._items[self._speaking]
        for part in item.get("content", ()):
            done = "output_text" if part["type"] == "output_text" else "refusal"
            said = {"text": part["text"]} if done == "output_text" else {"refusal": part["refusal"]}
            yield self._piece(f"response.{done}.done", content_index=0, **said)
            yield self._part("response.content_part.done", part)
        place, self._speaking = self._speaking, None
        yield self._done(place, status)

    # --- tools -----------------------------------------------------------------------------------------

    def call(self, call: ToolCall) -> Iterator[ServerSentEvent]:
        yield from self._close_speech()
        yield self._open_call(call.id, call.name)
        place = len(self._items) - 1
        for piece in pieces_of(call, 0):
            if piece.delta:
                yield self._arguments(place, piece.delta)
        yield from self._close_call(place, "completed")

    def fragment(self, chunk: ToolInputChunk) -> Iterator[ServerSentEvent]:
        if chunk.index not in self._calls:
            yield from self._close_speech()
            yield self._open_call(chunk.id, chunk.name)
            self._calls[chunk.index] = len(self._items) - 1
        if chunk.delta:
            yield self._arguments(self._calls[chunk.index], chunk.delta)

    def _open_call(self, id: str, name: str) -> ServerSentEvent:
        call_id = {"call_id": id} if id else {}
        return self._open({"type": "function_call", **call_id, "name": name, "arguments": ""})

    def _arguments(self, place: int, delta: str) -> ServerSentEvent:
        item = self._items[place]
        item["arguments"] += delta
        return self._event(
            "response.function_call_arguments.delta", item_id=item["id"], output_index=place, delta=delta
        )

    def _close_call(self, place: int, status: str) -> Iterator[ServerSentEvent]:
        item = self._items[place]
        facts = {"item_id": item["id"], "output_index": place, "arguments": item["arguments"]}
        yield self._event("response.function_call_arguments.done", **facts)
        yield self._done(place, status)

    def hosted(self, tool: ServerToolChunk) -> Iterator[ServerSentEvent]:
        yield from self._close_speech()
        yield self._open({"type": f"{tool.name}_call"})
        place = len(self._items) - 1
        facts = tool.input if isinstance(tool.input, dict) else {}
        self._items[place]["action"] = {"type": "search", **facts}
        yield self._done(place, "completed")

    # --- events ----------------------------------------------------------------------------------------

    def note(self, facts: JsonObject) -> None:
        self._response.update(facts)

    def _open(self, item: JsonObject) -> ServerSentEvent:
        self._items.append({"id": f"item_{len(self._items)}", "status": "in_progress", **item})
        return self._event(
            "response.output_item.added", output_index=len(self._items) - 1, item=self._items[-1]
        )

    def _done(self, place: int, status: str) -> ServerSentEvent:
        self._items[place]["status"] = status
        return self._event("response.output_item.done", output_index=place, item=self._items[place])

    def _part(self, kind: str, part: JsonObject) -> ServerSentEvent:
        return self._piece(kind, content_index=0, part=part)

    def _piece(self, kind: str, **facts: Json) -> ServerSentEvent:
        """An event about the item that was opened last."""
        place = len(self._items) - 1
        return self._event(kind, item_id=self._items[place]["id"], output_index=place, **facts)

    def _event(self, kind: str, **facts: Json) -> ServerSentEvent:
        self._sequence += 1
        return kind, _encode({"type": kind, "sequence_number": self._sequence, **facts})


def _usage(usage: TokenUsage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


class Responses(Dialect):
    name = "responses"
    reply = ResponsesReply
    path = "/responses"
    base_path = "/v1"
    delta_name = "response.output_text.delta"

    def problems(self, body: JsonObject) -> Iterator[str]:
        model = body.get("model")
        if not isinstance(model, str) or not model:
            yield "you must provide a model parameter"
        yield from (f"unsupported parameter: {name!r}" for name in FOREIGN_FIELDS if name in body)
        if ENCRYPTED in (body.get("include") or ()) and str(model).startswith(NOT_REASONING):
            yield "encrypted content is not supported with this model"
        given = body.get("input")
        if not isinstance(given, str | list) or given == []:
            yield "input must be a text or a list with at least one item"
        if isinstance(given, list):
            yield from _check_items(given)
        yield from _check_tools(body.get("tools"))

    def read(self, body: JsonObject) -> Conversation:
        turns = [Turn("system", body["instructions"])] if body.get("instructions") else []
        given = body.get("input", ())
        for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
            _add_turn(turns, item)
        names = (tool.get("name", tool["type"]) for tool in body.get("tools") or ())
        return Conversation(tuple(turns), tuple(names))

    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        return "error", _encode({"type": "error", "code": kind, "message": message, "param": None})

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        return kind, _encode({"type": kind, **fields})

    def error_body(self, status: int, message: str) -> JsonObject:
        return openai_error(status, message)


def _add_turn(turns: list[Turn], item: JsonObject) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        role = "system" if item["role"] == "developer" else item["role"]
        turns.append(Turn(cast(Role, role), _text(item["content"])))
    elif kind == "function_call":
        call = ToolCall(item["call_id"], item["name"], item["arguments"])
        if turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", turns[-1].text, (*turns[-1].calls, call))
        else:
            turns.append(Turn("assistant", "", (call,)))
    elif kind == "function_call_output":
        turns.append(Turn("tool", _text(item["output"]), (), item["call_id"]))


def _text(content: Json) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


# --- what the vendor refuses -----------------------------------------------------------------------------


def _check_items(items: list[Json]) -> Iterator[str]:
    called: set[str] = set()
    waiting: set[str] = set()
    for at, item in enumerate(items):
        yield from (
            f"input[{at}] {problem}" for problem in _check_item(item, items[at + 1 :], called, waiting)
        )
    if waiting:
        yield f"no tool output found for function call {', '.join(sorted(waiting))}"


def _check_item(item: Json, rest: list[Json], called: set[str], waiting: set[str]) -> Iterator[str]:
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "message":
        role = item.get("role")
        if role not in CONTENT_TYPES:
            yield f"has the role {role!r}; it must be one of {', '.join(CONTENT_TYPES)}"
        yield from _check_content(item.get("content"), role)
    elif kind == "reasoning":
        yield from _check_reasoning(item, rest)
    elif kind == "function_call":
        yield from _check_call(item, called)
        waiting.add(item["call_id"])
        called.add(item["call_id"])
    elif kind == "function_call_output":
        if item.get("call_id") not in waiting:
            yield "answers no call before it"
        waiting.discard(item["call_id"])
        yield from _check_content(item.get("output"), "user")
    else:
        yield f"has the unknown type {kind!r}"


def _check_content(content: Json, role: str) -> Iterator[str]:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield "has neither a text nor a list of parts"
    allowed = CONTENT_TYPES[role]
    for part in content:
        if part.get("type") not in allowed:
            yield f"has a part of type {part.get('type')!r}; supported are {', '.join(allowed)}"


def _check_reasoning(item: JsonObject, rest: list[Json]) -> Iterator[str]:
    if not isinstance(item.get("summary"), list):
        yield "is reasoning without a summary list"
    if not item.get("encrypted_content"):
        yield "is reasoning that was not stored and has no encrypted content"
    following: JsonObject = next((other for other in rest if other.get("type") != "reasoning"), {})
    if following.get("type") != "function_call" and following.get("role") != "assistant":
        yield "is reasoning without its required following item"


def _check_call(item: JsonObject, called: set[str]) -> Iterator[str]:
    call_id, arguments = item.get("call_id"), item.get("arguments")
    if not isinstance(call_id, str) or not 0 < len(call_id) <= MAX_CALL_ID or call_id in called:
        yield f"needs a call_id of its own with at most {MAX_CALL_ID} characters, not {call_id!r}"
    if not arguments or not isinstance(read_arguments(arguments), dict):
        yield f"has arguments that are not the text of a JSON object: {arguments!r}"


def _check_tools(tools: Json) -> Iterator[str]:
    for at, tool in enumerate(tools or ()):
        if tool.get("type") != "function":
            continue
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(tool.get("name", ""))):
            yield f"tools[{at}] needs a name of at most 64 letters, digits, _ and -"
        parameters = tool.get("parameters") or {}
        if parameters.get("type") != "object":
            yield f"tools[{at}].parameters must be a JSON schema of type object"
        if tool.get("strict", True) and not _is_closed(parameters):
            yield f"tools[{at}].parameters is not strict: close its objects and require all their fields"


def _is_closed(schema: Json) -> bool:
    if isinstance(schema, list):
        return all(map(_is_closed, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema or schema.get("type") == "object":
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(schema.get("properties", ())):
            return False
    return all(map(_is_closed, schema.values()))
