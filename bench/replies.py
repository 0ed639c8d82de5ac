"""What the benchmark's service answers on each wire, as bytes: made once, written many times."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

LETTERS = "the quick brown fox jumps over the lazy dog "
MODEL = "bench-model"


class Scenario(NamedTuple):
    rounds: int = 0
    """Answers that ask for tools before the last one, which is text."""
    calls: int = 1
    tool: str = "add"
    deltas: int = 1
    letters: int = 20
    """Length of one delta."""
    wait: int = 0
    """Milliseconds before the answer begins."""
    trickle: int = 0
    """Milliseconds between two events; 0 sends everything at once."""
    plain: int = 0
    """1 answers with one JSON object instead of a stream (Chat Completions only)."""


@lru_cache
def read_scenario(text: str) -> Scenario:
    words = dict(word.split("-") for word in text.split(".") if word)
    tool = words.pop("tool", "add")
    return Scenario(tool=tool, **{name: int(value) for name, value in words.items()})


def arguments_of(scenario: Scenario, number: int, call: int) -> dict[str, int]:
    if scenario.tool == "nap":
        return {"ms": 50}
    return {"number": number} if scenario.tool == "stamp" else {"a": number, "b": call}


def texts_of(scenario: Scenario) -> list[str]:
    """The pieces of the last answer."""
    endless = LETTERS * (scenario.letters // len(LETTERS) + 2)
    cycle = [endless[start : start + scenario.letters] for start in range(len(LETTERS))]
    return [cycle[at % len(cycle)] for at in range(scenario.deltas)]


def pack(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def named(kind: str, **fields: object) -> bytes:
    """An event with a name, as two of the services send them."""
    return f"event: {kind}\ndata: {pack({'type': kind, **fields})}\n\n".encode()


# --- Chat Completions ----------------------------------------------------------------------------------

CHAT_USAGE = {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18}
CHAT_ENVELOPE = {"id": "chatcmpl-bench", "created": 1_700_000_000, "model": MODEL}


def chat_calls(scenario: Scenario, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": scenario.tool, "arguments": pack(arguments_of(scenario, number, at))},
        }
        for at in range(scenario.calls)
    ]


def chat_event(delta: dict[str, object] | None, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    rest = {"choices": [], "usage": CHAT_USAGE} if delta is None else {"choices": [choice]}
    return f"data: {pack({**CHAT_ENVELOPE, 'object': 'chat.completion.chunk', **rest})}\n\n".encode()


def chat_events(scenario: Scenario, number: int) -> list[bytes]:
    """A role, the pieces, a reason, the usage, the end mark."""
    if number < scenario.rounds:
        events = [chat_event({"role": "assistant", "content": None})]
        for at, call in enumerate(chat_calls(scenario, number)):
            function = call["function"]
            start = {"index": at, **call, "function": {"name": function["name"], "arguments": ""}}
            events.append(chat_event({"tool_calls": [start]}))
            rest = {"index": at, "function": {"arguments": function["arguments"]}}
            events.append(chat_event({"tool_calls": [rest]}))
        events.append(chat_event({}, "tool_calls"))
    else:
        events = [chat_event({"role": "assistant", "content": ""})]
        events += [chat_event({"content": text}) for text in texts_of(scenario)]
        events.append(chat_event({}, "stop"))
    return [*events, chat_event(None), b"data: [DONE]\n\n"]


def chat_body(scenario: Scenario, number: int) -> bytes:
    """The same answer as one JSON object."""
    wants_tools = number < scenario.rounds
    message: dict[str, object] = {"role": "assistant", "content": None}
    if wants_tools:
        message["tool_calls"] = chat_calls(scenario, number)
    else:
        message["content"] = "".join(texts_of(scenario))
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if wants_tools else "stop"}
    reply = {**CHAT_ENVELOPE, "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}
    return pack(reply).encode()


# --- Messages ------------------------------------------------------------------------------------------


def messages_events(scenario: Scenario, number: int) -> list[bytes]:
    usage = {"input_tokens": 12, "output_tokens": 1}
    message = {"id": "msg_bench", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    events = [named("message_start", message={**message, "stop_reason": None, "usage": usage})]
    if number < scenario.rounds:
        for at in range(scenario.calls):
            block = {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": scenario.tool, "input": {}}
            events.append(named("content_block_start", index=at, content_block=block))
            for text in ("", pack(arguments_of(scenario, number, at))):
                delta = {"type": "input_json_delta", "partial_json": text}
                events.append(named("content_block_delta", index=at, delta=delta))
            events.append(named("content_block_stop", index=at))
        reason = "tool_use"
    else:
        events.append(named("content_block_start", index=0, content_block={"type": "text", "text": ""}))
        deltas = ({"type": "text_delta", "text": text} for text in texts_of(scenario))
        events += [named("content_block_delta", index=0, delta=delta) for delta in deltas]
        events.append(named("content_block_stop", index=0))
        reason = "end_turn"
    ending = {"stop_reason": reason, "stop_sequence": None}
    return [*events, named("message_delta", delta=ending, usage={"output_tokens": 6}), named("message_stop")]


# --- Responses -----------------------------------------------------------------------------------------


def responses_events(scenario: Scenario, number: int) -> list[bytes]:
    response: dict[str, Any] = {"id": "resp_bench", "object": "response", "model": MODEL, "error": None}
    events = [
        named("response.created", response={**response, "status": "in_progress", "output": []}),
        named("response.in_progress", response={**response, "status": "in_progress", "output": []}),
    ]
    output: list[dict[str, Any]] = []
    if number < scenario.rounds:
        for at in range(scenario.calls):
            text = pack(arguments_of(scenario, number, at))
            about: dict[str, Any] = {
                "id": f"fc_{number}_{at}",
                "type": "function_call",
                "name": scenario.tool,
            }
            about |= {"call_id": f"call_{number}_{at}"}
            place = {"item_id": about["id"], "output_index": at}
            begun = {**about, "status": "in_progress", "arguments": ""}
            done = {**about, "status": "completed", "arguments": text}
            events += [
                named("response.output_item.added", output_index=at, item=begun),
                named("response.function_call_arguments.delta", **place, delta=text),
                named("response.function_call_arguments.done", **place, arguments=text),
                named("response.output_item.done", output_index=at, item=done),
            ]
            output.append(done)
    else:
        events += responses_text(scenario, output)
    usage = {"input_tokens": 12, "output_tokens": 6, "total_tokens": 18}
    end = {**response, "status": "completed", "output": output, "usage": usage}
    return [*events, named("response.completed", response=end)]


def responses_text(scenario: Scenario, output: list[dict[str, Any]]) -> list[bytes]:
    texts = texts_of(scenario)
    part = {"type": "output_text", "text": "", "annotations": []}
    whole = {**part, "text": "".join(texts)}
    item = {"id": "msg_bench", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    done = {**item, "status": "completed", "content": [whole]}
    output.append(done)
    place = {"item_id": "msg_bench", "output_index": 0, "content_index": 0}
    return [
        named("response.output_item.added", output_index=0, item=item),
        named("response.content_part.added", **place, part=part),
        *(named("response.output_text.delta", **place, delta=text) for text in texts),
        named("response.output_text.done", **place, text=whole["text"]),
        named("response.content_part.done", **place, part=whole),
        named("response.output_item.done", output_index=0, item=done),
    ]


# --- Gemini --------------------------------------------------------------------------------------------


def gemini_events(scenario: Scenario, number: int) -> list[bytes]:
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 6, "totalTokenCount": 18}
    about = {"usageMetadata": usage, "modelVersion": MODEL, "responseId": "resp-bench"}

    def event(parts: list[dict[str, Any]], reason: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if reason is not None:
            candidate["finishReason"] = reason
        return f"data: {pack({'candidates': [candidate], **about})}\r\n\r\n".encode()

    if number < scenario.rounds:
        calls = [
            {"functionCall": {"name": scenario.tool, "args": arguments_of(scenario, number, at)}}
            for at in range(scenario.calls)
        ]
        return [*(event([call]) for call in calls), event([{"text": ""}], "STOP")]
    return [*(event([{"text": text}]) for text in texts_of(scenario)), event([{"text": ""}], "STOP")]


class Wire(NamedTuple):
    path: str
    """How the address of a request ends."""
    result_mark: bytes
    """What stands once in a request for each tool result."""
    events: Callable[[Scenario, int], list[bytes]]


WIRES = {
    "chat": Wire("/chat/completions", b'"tool_call_id"', chat_events),
    "messages": Wire("/messages", b'"tool_use_id"', messages_events),
    "responses": Wire("/responses", b'"function_call_output"', responses_events),
    "gemini": Wire(":streamgeneratecontent?alt=sse", b'"functionResponse"', gemini_events),
}


def find_wire(path: str) -> Wire:
    return next(wire for wire in WIRES.values() if path.endswith(wire.path))
