"""Requests in the wire form of Gemini's generateContent, joined from fragments that are encoded once.

The API wants the first and the last turn from the user, calls right after a user's turn, and for each call
one response right after it. So a group is encoded with a look at the message before it. A fragment either
opens a turn, which closes the one before, or adds parts to it. Placeholders stand in for what a shortened
history lacks; the history itself is never changed.

What only Gemini understands travels through our history in reasoning blocks whose `data` carries the key
`gemini`: thinking, the signature of a text, parts of tools that ran on Google's side. Blocks without that key
belong to another vendor and are not sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode, object_of
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImageUriPart,
    Json,
    JsonObject,
    Message,
    Part,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, NativeWebTools, ToolSchema
from robota.providers.encoding import (
    UNANSWERED,
    EncodedTools,
    Encoder,
    GroupEncoder,
    encode_groups,
    note_left_out,
    own_fields,
    read_arguments,
    without_none,
)

MARK = "gemini"
"""Key of `ReasoningBlock.data`: `thought`, `text` (a signature) or a whole part, sent back as it came."""
UNSIGNED = "skip_thought_signature_validator"
"""The documented signature for calls that Gemini did not make itself, after a change of model."""
BEGINNING_LOST = "[The beginning of this conversation was left out.]"
GO_ON = "[Please go on.]"
_CLOSE = b"]},"
_GENERATION = re.compile(r"gemini-(\d+)")
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_LEVELS = {"none": "MINIMAL", "off": "MINIMAL", "xhigh": "HIGH", "max": "HIGH"}
"""Efforts that these models know under another name; the others are sent as they are."""
_BUDGETS = {"none": 0, "off": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}
"""Tokens of thinking for the second generation, which has no levels; others choose for themselves."""
_OWN_CHOICE = -1


def _is_old(model: str) -> bool:
    """Before Gemini 3: thinks by budget, signs nothing, takes either functions or what excludes them.

    A name that says nothing stands for a current model.
    """
    found = _GENERATION.search(model)
    return found is not None and int(found[1]) < 3


class TurnDialect(Struct, frozen=True):
    """What the wire form of messages depends on; the key under which a history keeps it."""

    images: bool = True
    files: bool = True
    sign_calls: bool = False
    """The model refuses calls without a signature, so those of other models get the one for strangers."""


class GeminiEncoder(Encoder, frozen=True, kw_only=True):
    optional = ("thinkingConfig", "responseJsonSchema", "temperature", "topP")

    images: bool = True
    files: bool = True
    output_schema: bool = True

    def encode(self, request: ChatRequest, model: str) -> bytes:
        signs_calls = "gemini" in model and not _is_old(model)
        dialect = TurnDialect(self.images, self.files, signs_calls)
        turns = _TurnEncoder(request, dialect)
        fields = self._fields(request, model, turns.instructions())
        tools = self._encode_tools(request)
        pieces = [b'{"contents":[', *turns.encode(request), b"]"]
        if fields:
            pieces += (b",", encode(fields)[1:-1])
        if tools:
            pieces += (b',"tools":[', tools, b"]")
        pieces.append(b"}")
        return b"".join(pieces)

    def _fields(self, request: ChatRequest, model: str, instructions: list[JsonObject]) -> JsonObject:
        """All but turns and tools; the caller's own fields win over ours."""
        own = own_fields(request.settings, "contents")
        config = self._generation_config(request, model) | (own.get("generationConfig") or {})
        fields: JsonObject = {
            "systemInstruction": {"parts": instructions, "role": "user"} if instructions else None,
            "toolConfig": _encode_tool_config(request, model),
            **own,
            "generationConfig": config or None,
        }
        return without_none(fields)

    def _generation_config(self, request: ChatRequest, model: str) -> JsonObject:
        settings = request.settings
        config: JsonObject = {
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "maxOutputTokens": settings.max_tokens,
            "stopSequences": settings.stop or None,
            "thinkingConfig": _encode_thinking(settings, model),
        }
        if (
            request.output_schema is not None
            and self.output_schema
            and not (request.tools and _is_old(model))
        ):
            config["responseMimeType"] = "application/json"
            config["responseJsonSchema"] = request.output_schema
        return without_none(self.accepted(config))

    def _encode_tools(self, request: ChatRequest) -> bytes:
        functions = b",".join(FUNCTIONS.find(request.tools))
        web = request.native_web_tools or NativeWebTools()
        more: list[Json] = [{"googleSearch": {}}] if web.web_search else []
        more += [{"urlContext": {}}] if web.web_fetch else []
        more += request.settings.extra.get("tools") or ()
        declared = (b'{"functionDeclarations":[%b]}' % functions,) if functions else ()
        return b",".join((*map(encode, more), *declared))


def _encode_function(tool: ToolSchema) -> bytes:
    return encode(
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
    )


FUNCTIONS = EncodedTools(_encode_function)


def _encode_tool_config(request: ChatRequest, model: str) -> JsonObject | None:
    if not request.tools:
        return None
    config: JsonObject = {}
    web = request.native_web_tools
    if web is not None and (web.web_search or web.web_fetch):
        if _is_old(model):
            raise ConfigurationError(
                f"Model {model!r} cannot have hosted web tools beside other tools; "
                "use a Gemini 3 model or leave one kind out."
            )
        config["includeServerSideToolInvocations"] = True
    choice = request.settings.tool_choice
    if choice is not None:
        calling: JsonObject = {"mode": _MODES.get(choice, "ANY")}
        if choice not in _MODES:
            calling["allowedFunctionNames"] = [choice]
        config["functionCallingConfig"] = calling
    return config or None


def _encode_thinking(settings: ModelSettings, model: str) -> JsonObject | None:
    """Asking for an effort asks for the thoughts as well."""
    effort = (settings.effort or "").lower()
    if not effort:
        return None
    if not _is_old(model):
        return {"includeThoughts": True, "thinkingLevel": _LEVELS.get(effort, effort.upper())}
    budget = _BUDGETS.get(effort, _OWN_CHOICE)
    return {"includeThoughts": budget != 0, "thinkingBudget": budget}


class _TurnEncoder(GroupEncoder):
    __slots__ = ("_dialect",)

    def __init__(self, request: ChatRequest, dialect: TurnDialect) -> None:
        super().__init__(request)
        self._dialect = dialect

    def encode(self, request: ChatRequest) -> list[bytes]:
        """The contents of the request in pieces, without the brackets around them."""
        pieces = [*encode_groups(request, self._dialect, self.encode_group), self._ending(), b"]}"]
        first = next(at for at, piece in enumerate(pieces) if piece)
        pieces[first] = pieces[first][len(_CLOSE) :]
        return pieces

    def instructions(self) -> list[JsonObject]:
        """The system messages before the first turn."""
        parts: list[JsonObject] = []
        for message in self.messages:
            if isinstance(message, SystemMessage):
                parts += [{"text": message.content}] if message.content else []
            elif self._is_sent(message):
                break
        return parts

    def encode_group(self, group: Sequence[Message]) -> bytes:
        before = self._last_sent(self.enter(group))
        first = group[0]
        if isinstance(first, ToolMessage):
            results = [message for message in group if isinstance(message, ToolMessage)]
            return self._encode_results(results, before)
        if isinstance(first, AssistantMessage):
            parts = encode_assistant(first, sign_calls=self._dialect.sign_calls)
            return _write_model(parts, before) if parts else b""
        if isinstance(first, UserMessage):
            said = first.parts or (TextPart(first.content),)
            parts = encode_media(said, images=self._dialect.images, files=self._dialect.files)
        elif before is None:
            return b""  # it is among the instructions
        else:
            parts = [{"text": f"[System message] {first.content}"}] if first.content else []
        return _write_user(parts, before) if parts else b""

    def _encode_results(self, results: Sequence[ToolMessage], before: Message | None) -> bytes:
        calls = before.tool_calls if isinstance(before, AssistantMessage) else ()
        parts = encode_results(calls, results)
        for result in results:
            others = [part for part in result.parts if not isinstance(part, TextPart)]
            media = encode_media(others, images=self._dialect.images, files=self._dialect.files)
            parts += [{"text": f"Content of the result of {result.name}:"}, *media] if media else []
        if calls:
            return _open("user", parts)
        return _write_user(parts, before)

    def _ending(self) -> bytes:
        """What has to follow a history that does not end with the user."""
        last = self._last_sent(len(self.messages))
        if last is None or (isinstance(last, AssistantMessage) and not last.tool_calls):
            return _open("user", [{"text": GO_ON}])
        return _answer_calls(last)

    # --- what was before -----------------------------------------------------------------------------

    def _last_sent(self, end: int) -> Message | None:
        """The last message before `end` that became part of a turn."""
        for at in range(end - 1, -1, -1):
            message = self.messages[at]
            if isinstance(message, SystemMessage):
                if message.content and self._last_sent(at) is not None:
                    return message
            elif self._is_sent(message):
                return message
        return None

    def _is_sent(self, message: Message) -> bool:
        if isinstance(message, AssistantMessage):
            return bool(message.content or message.tool_calls or encode_assistant(message, sign_calls=False))
        if isinstance(message, UserMessage):
            return bool(message.content or message.parts)
        return True


def _write_model(parts: list[JsonObject], before: Message | None) -> bytes:
    if before is None:
        return _open("user", [{"text": BEGINNING_LOST}]) + _open("model", parts)
    if isinstance(before, AssistantMessage) and not before.tool_calls:
        return _add(parts)
    return _answer_calls(before) + _open("model", parts)


def _write_user(parts: list[JsonObject], before: Message | None) -> bytes:
    if isinstance(before, UserMessage | SystemMessage):
        return _add(parts)
    return _answer_calls(before) + _open("user", parts)


def _answer_calls(message: Message | None) -> bytes:
    """Responses for calls that nothing answers."""
    if isinstance(message, AssistantMessage) and message.tool_calls:
        return _open("user", encode_results(message.tool_calls, ()))
    return b""


def _open(role: str, parts: list[JsonObject]) -> bytes:
    return b'%b{"role":"%b","parts":[%b' % (_CLOSE, role.encode(), encode(parts)[1:-1])


def _add(parts: list[JsonObject]) -> bytes:
    return b"," + encode(parts)[1:-1]


# --- parts -------------------------------------------------------------------------------------------------


def encode_assistant(message: AssistantMessage, *, sign_calls: bool) -> list[JsonObject]:
    """The parts of a model's turn; none if the API would refuse it as empty."""
    parts: list[JsonObject] = []
    text_signature = None
    for block in message.reasoning:
        kept = object_of(block.data).get(MARK)
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
        failed = result is None or result.metadata.get("success") is False
        outcome = {"error" if failed else "output": UNANSWERED if result is None else result.content}
        answered = {"id": call.id} if named else {}
        parts.append({"functionResponse": {**answered, "name": call.name, "response": outcome}})
    return parts + [
        {"text": f"[Result of an earlier call of {result.name}] {result.content}"} for result in waiting
    ]


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
