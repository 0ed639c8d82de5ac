"""Single parts of a Gemini conversation: text, thinking, calls, results, images, files.

What only Gemini understands travels through our history in reasoning blocks whose `data` carries the key
`gemini`: thinking, the signature of a text, parts of tools that ran on Google's side. Blocks without that key
belong to another vendor and are not sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImageUriPart,
    JsonObject,
    Part,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.providers.encoding import UNANSWERED, note_left_out, read_arguments

MARK = "gemini"
"""Key of `ReasoningBlock.data`: `thought`, `text` (a signature) or a whole part, sent back as it came."""
UNSIGNED = "skip_thought_signature_validator"
"""The documented signature for calls that Gemini did not make itself, after a change of model."""


def encode_assistant(message: AssistantMessage, *, sign_calls: bool) -> list[JsonObject]:
    """The parts of a model's turn; none if the API would refuse it as empty."""
    parts: list[JsonObject] = []
    text_signature = None
    for block in message.reasoning:
        kept = block.data.get(MARK) if isinstance(block.data, dict) else None
        if kept == "text":
            text_signature = block.signature
        elif kept == "thought":
            parts.append(_signed({"text": block.text, "thought": True}, block.signature))
        elif isinstance(kept, dict):
            parts.append(kept)
    if message.content:
        parts.append(_signed({"text": message.content}, text_signature))
    images = message.metadata.get("images")
    parts += [
        _signed(_inline(image["mimeType"], image["data"]), image.get("signature"))
        for image in (images if isinstance(images, list | tuple) else ())
        if isinstance(image, dict) and image.get("type") == "image_inline"
    ]
    return parts + _encode_calls(message.tool_calls, sign_calls=sign_calls)


def encode_results(calls: Sequence[ToolCall], results: Sequence[ToolMessage]) -> list[JsonObject]:
    """One response for each call, in their order, as the API demands; what fits no call becomes text.

    A result belongs to the call with its id, else to one with its name.
    """
    waiting = list(results)
    found = [_take(waiting, call.id, None) for call in calls]
    found = [result or _take(waiting, None, call.name) for call, result in zip(calls, found, strict=True)]
    named = _has_own_ids(calls)
    parts: list[JsonObject] = []
    for call, result in zip(calls, found, strict=True):
        response: JsonObject = {"id": call.id} if named else {}
        response["name"] = call.name
        response["response"] = _encode_outcome(result)
        parts.append({"functionResponse": response})
    return parts + [
        {"text": f"[Result of an earlier call of {result.name}] {result.content}"} for result in waiting
    ]


def _encode_outcome(result: ToolMessage | None) -> JsonObject:
    if result is None:
        return {"error": UNANSWERED}
    return {"error" if result.metadata.get("success") is False else "output": result.content}


def encode_user(message: UserMessage, *, images: bool, files: bool) -> list[JsonObject]:
    if message.parts:
        return encode_media(message.parts, images=images, files=files)
    return [{"text": message.content}] if message.content else []


def encode_media(parts: Iterable[Part], *, images: bool, files: bool) -> list[JsonObject]:
    """Parts of a prompt or of a tool's result; what the model does not take becomes a note."""
    return [
        wire
        for part in parts
        if (wire := _encode_part(part, allowed=files if isinstance(part, FilePart) else images)) is not None
    ]


def _encode_part(part: Part, *, allowed: bool) -> JsonObject | None:
    if isinstance(part, TextPart):
        return {"text": part.text} if part.text else None
    if not allowed:
        return {"text": note_left_out(part)}
    if not isinstance(part, ImageUriPart):
        return _inline(part.mime_type, part.data)
    scheme, _, rest = part.uri.partition(":")
    if scheme == "data" and ";base64," in rest:
        mime_type, _, data = rest.partition(";base64,")
        return _inline(part.mime_type or mime_type, data)
    place: JsonObject = {"mimeType": part.mime_type} if part.mime_type else {}
    return {"fileData": {**place, "fileUri": part.uri}}


def _inline(mime_type: str, data: str) -> JsonObject:
    return {"inlineData": {"mimeType": mime_type, "data": data}}


def _encode_calls(calls: Sequence[ToolCall], *, sign_calls: bool) -> list[JsonObject]:
    named = _has_own_ids(calls)
    parts = []
    for call in calls:
        function: JsonObject = {"id": call.id} if named else {}
        function |= {"name": call.name, "args": read_arguments(call.arguments) or {}}
        parts.append(_signed({"functionCall": function}, call.signature))
    if parts and sign_calls and not any(call.signature for call in calls):
        parts[0]["thoughtSignature"] = UNSIGNED  # the first of parallel calls is the one that is checked
    return parts


def _has_own_ids(calls: Sequence[ToolCall]) -> bool:
    """Whether ids tell the calls of a turn apart; without ids the order does."""
    ids = {call.id for call in calls}
    return len(ids) == len(calls) and "" not in ids


def _take(results: list[ToolMessage], call_id: str | None, name: str | None) -> ToolMessage | None:
    for at, result in enumerate(results):
        if call_id == result.tool_call_id or name == result.name:
            return results.pop(at)
    return None


def _signed(part: JsonObject, signature: str | None) -> JsonObject:
    if signature:
        part["thoughtSignature"] = signature
    return part
