"""Gemini's generateContent from the server's side: how replies are said, what requests must look like.

Gemini sends calls whole, so `ToolInputChunk` steps are gathered until their text is an object; one that never
is was cut off and is not said. `check` refuses what the vendor refuses, so a history that would fail in
production fails here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from robota.core.messages import Json, JsonObject, ReasoningBlock, StopReason, TokenUsage, ToolCall
from robota.core.provider import StopChunk, ToolInputChunk
from robota.testing.dialect import (
    Conversation,
    Dialect,
    Events,
    ReplyEncoder,
    Said,
    ServerSentEvent,
    Turn,
    read_arguments,
)

FINISH_WORDS: dict[StopReason, str] = {
    "end_turn": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "error": "MALFORMED_FUNCTION_CALL",
}
ERROR_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
CANDIDATE_FACTS = ("groundingMetadata", "urlContextMetadata", "citationMetadata", "finishMessage")
"""Metadata that belongs to the answer, not to the envelope; the last event carries it."""
PATH = re.compile(r"/(?:models|tunedModels)/([^/]+):(stream)?[gG]enerateContent$")
_encode = msgspec.json.encode


class GeminiReply(ReplyEncoder):
    protocol = "Gemini's protocol"

    def __init__(self, model: str) -> None:
        super().__init__()
        self._envelope: JsonObject = {"modelVersion": model, "responseId": "gemini-scripted"}
        self._facts: JsonObject = {}
        self._fragments: dict[int, ToolInputChunk] = {}

    def text(self, text: str) -> Events:
        return (self._part({"text": text}),)

    def think(self, text: str) -> Events:
        return (self._part({"text": text, "thought": True}),)

    def thought(self, block: ReasoningBlock) -> Events:
        return (self._part({"text": block.text, "thought": True, "thoughtSignature": block.signature}),)

    def fragment(self, chunk: ToolInputChunk) -> Events:
        known = self._fragments.get(chunk.index, ToolInputChunk(chunk.index, ""))
        known = ToolInputChunk(
            chunk.index, known.delta + chunk.delta, known.id or chunk.id, known.name or chunk.name
        )
        self._fragments[chunk.index] = known
        whole = known.delta and isinstance(read_arguments(known.delta), dict)
        return self.call(ToolCall(known.id, known.name, known.delta)) if whole else ()

    def call(self, call: ToolCall) -> Events:
        function: JsonObject = {"name": call.name, "args": read_arguments(call.arguments)}
        if call.id:
            function["id"] = call.id
        signature = {"thoughtSignature": call.signature} if call.signature else {}
        return (self._part({"functionCall": function, **signature}),)

    def note(self, facts: JsonObject) -> None:
        for name, value in facts.items():
            (self._facts if name in CANDIDATE_FACTS else self._envelope)[name] = value

    def end(self) -> Iterator[ServerSentEvent]:
        stop = self.stop or StopChunk("end_turn")
        if stop.reason == "refusal":
            feedback = {"promptFeedback": {"blockReason": stop.detail or "PROHIBITED_CONTENT"}}
            yield self._event(feedback, _usage(self.usage))
            return
        word = stop.detail or FINISH_WORDS.get(stop.reason, stop.reason.upper())
        content = {"parts": [{"text": ""}], "role": "model"}
        candidate = {"content": content, "finishReason": word, "index": 0, **self._facts}
        yield self._event({"candidates": [candidate]}, _usage(self.usage))

    def whole(self, said: Sequence[Said]) -> JsonObject:
        replies = list(self.decoded(said))
        last: JsonObject = replies[-1]
        parts = [
            part
            for reply in replies
            for made in reply.get("candidates", ())
            for part in made["content"]["parts"]
        ]
        if "candidates" in last:
            last["candidates"][0]["content"]["parts"] = [part for part in parts if part != {"text": ""}]
        return last

    def _part(self, part: JsonObject) -> ServerSentEvent:
        return self._event(
            {"candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}]}, None
        )

    def _event(self, body: JsonObject, usage: JsonObject | None) -> ServerSentEvent:
        return "", _encode({**body, **({"usageMetadata": usage} if usage else {}), **self._envelope})


def _usage(usage: TokenUsage) -> JsonObject:
    return {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.total_tokens,
        "cachedContentTokenCount": usage.cache_read_tokens,
        "thoughtsTokenCount": usage.reasoning_tokens,
    }


class GenerateContent(Dialect):
    """`…/models/{model}:streamGenerateContent` and `:generateContent` under any prefix."""

    name = "gemini"
    reply = GeminiReply

    def serves(self, path: str) -> bool:
        return PATH.search(path) is not None

    def wants_stream(self, path: str, body: JsonObject) -> bool:
        return path.endswith(":streamGenerateContent")

    def problems(self, body: JsonObject) -> Iterator[str]:
        contents = body.get("contents")
        if not isinstance(contents, list) or not contents:
            yield "contents is not specified"
        yield from _check_contents(contents)
        yield from _check_tools(body)

    def read(self, body: JsonObject) -> Conversation:
        turns: list[Turn] = []
        instructions = body.get("systemInstruction")
        if instructions:
            turns.append(Turn("system", _text(instructions["parts"])))
        for content in body.get("contents", ()):
            turns += _turns(content)
        return Conversation(tuple(turns), tuple(_function_names(body)))

    def variant(self, path: str, body: JsonObject) -> tuple[str]:
        found = PATH.search(path)
        return (found[1] if found else "",)

    def error_event(self, message: str, kind: str) -> ServerSentEvent:
        return "", _encode({"error": {"code": 500, "message": message, "status": kind.upper()}})

    def unknown_event(self, kind: str, fields: JsonObject) -> ServerSentEvent:
        return "", _encode({kind: fields})

    def error_body(self, status: int, message: str) -> JsonObject:
        word = ERROR_STATUS.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": message, "status": word}}


# --- requests ------------------------------------------------------------------------------------------


def _text(parts: list[JsonObject]) -> str:
    return "\n".join(part["text"] for part in parts if "text" in part and not part.get("thought"))


def _turns(content: JsonObject) -> Iterator[Turn]:
    """A content as turns: results are turns of their own."""
    parts = content["parts"]
    if content["role"] == "model":
        calls = tuple(_read_call(part["functionCall"]) for part in parts if "functionCall" in part)
        if calls or parts != [{"text": ""}]:
            yield Turn("assistant", _text(parts), calls)
        return
    for part in parts:
        if "functionResponse" in part:
            answer = part["functionResponse"]
            given = answer["response"]
            said = next((given[name] for name in ("output", "result", "error") if name in given), "")
            yield Turn("tool", str(said), answers=answer.get("id") or "")
    text = [part for part in parts if "functionResponse" not in part]
    if text:
        yield Turn("user", _text(text))


def _read_call(function: JsonObject) -> ToolCall:
    return ToolCall(function.get("id", ""), function["name"], _encode(function.get("args", {})).decode())


def _function_names(body: JsonObject) -> Iterator[str]:
    for tool in body.get("tools") or ():
        for function in tool.get("functionDeclarations", ()):
            yield function["name"]


def _check_contents(contents: Json) -> Iterator[str]:
    waiting: list[JsonObject] = []
    before: str | None = ""
    for at, content in enumerate(contents):
        role = content.get("role") if isinstance(content, dict) else None
        if role not in ("user", "model"):
            yield f"contents[{at}]: please use a valid role: user, model; it is {role!r}"
        parts = content.get("parts")
        answers = () if role == before == "model" else _check_answers(parts, waiting)
        for problem in chain(_check_parts(parts, role), answers):
            yield f"contents[{at}]: {problem}"
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        if calls and before != "user" and not (role == before and waiting):
            yield "function call turn must come immediately after a user turn or a function response turn"
        goes_on = role == before == "model"  # as a client puts a stream into its history, piece by piece
        waiting, before = ([*waiting, *calls] if goes_on else calls), role
    if before == "model":
        yield "multiturn requests must end with a user turn or a function response"


def _check_parts(parts: Json, role: str | None) -> Iterator[str]:
    if not isinstance(parts, list) or not parts:
        yield "parts must not be empty"
    for part in parts:
        kinds = [
            kind
            for kind in ("text", "inlineData", "fileData", "functionCall", "functionResponse", "toolCall",
                         "toolResponse", "executableCode", "codeExecutionResult")
            if kind in part
        ]  # fmt: skip
        if len(kinds) != 1 or (part.get("text") == "" and role != "model"):
            yield f"a part must have exactly one content and no empty text: {part}"
        if kinds == ["functionCall"] and not isinstance(part["functionCall"].get("args", {}), dict):
            yield "the args of a function call must be an object"


def _check_answers(parts: list[JsonObject], waiting: list[JsonObject]) -> Iterator[str]:
    answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if len(answers) != len(waiting):
        yield (
            f"the number of function response parts ({len(answers)}) must equal the number of function call "
            f"parts of the turn before ({len(waiting)})"
        )
    for call, answer in zip(waiting, answers, strict=True):
        # Google's own tool loop leaves the id out, and the order tells what is meant.
        if call["name"] != answer.get("name") or answer.get("id") not in (None, "", call.get("id")):
            yield f"the response {answer.get('name')!r} does not belong to the call {call['name']!r}"
        if not isinstance(answer.get("response"), dict):
            yield "the response of a function must be an object"


def _check_tools(body: JsonObject) -> Iterator[str]:
    names = list(_function_names(body))
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", name):
            yield f"{name!r} is not a valid function name"
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    unknown = set(config.get("allowedFunctionNames", ())) - set(names)
    if unknown:
        yield f"allowed_function_names has functions that are not declared: {unknown}"
