"""Requests in the wire form of Chat Completions, joined from fragments that are encoded once.

A fragment is one group of messages as JSON objects with commas between them. What an endpoint cannot take
(images, files) is replaced by a note, so that the model knows that something was there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Json,
    JsonObject,
    Message,
    Part,
    ReasoningBlock,
    TextPart,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ToolSchema
from robota.providers.chat import DETAILS, PLAIN
from robota.providers.encoding import (
    UNANSWERED,
    CallEncoder,
    EncodedTools,
    Encoder,
    encode_groups,
    note_left_out,
    own_fields,
    safe_arguments,
    url_of,
    without_none,
)

MAX_ID_LENGTH = 40
MAX_TOKENS_FIELDS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""Of these two names for one thing, services know either or both."""


class ChatDialect(Struct, frozen=True):
    """How one endpoint wants its messages; the key under which a history keeps their wire form."""

    images: bool = False
    files: bool = False
    output_schema: bool = False
    # the others are explained in `ChatHabits`
    reasoning_field: str | None = None
    reasoning_placeholder: str | None = None
    reasoning_details: bool = False
    max_tokens_field: str = "max_tokens"
    signatures: bool = False
    """Gemini models refuse their own calls without the signatures that came with them."""


class ChatEncoder(Encoder, frozen=True):
    optional = (
        "stream_options", "strict", "response_format", "reasoning_effort", "temperature", "top_p",
        "extra_content", *MAX_TOKENS_FIELDS,
    )  # fmt: skip

    dialect: ChatDialect

    def encode(self, request: ChatRequest, model: str) -> bytes:
        dialect = self.dialect
        if "gemini" in model.lower() and "extra_content" not in self.left_out:
            dialect = replace(dialect, signatures=True)
        turns = _MessageEncoder(request, dialect)
        fragments = encode_groups(request, dialect, turns.encode_group)
        missing = turns.encode_tail()
        if missing:
            fragments = [*fragments, missing]
        head = encode(self._fields(request, model))[:-1] + b',"messages":['
        more = request.settings.extra.get("tools") or ()
        tools = b",".join((*TOOLS.find(request.tools), *map(encode, more)))
        tail = b'],"tools":[%s]}' % tools if tools else b"]}"
        if len(fragments) < 2:
            return b"%s%s%s" % (head, b"".join(fragments), tail)
        # One join: a long history is copied once.
        return b",".join([head + fragments[0], *fragments[1:-1], fragments[-1] + tail])

    def _fields(self, request: ChatRequest, model: str) -> JsonObject:
        """All but messages and tools; the caller's own fields win over ours."""
        settings, limit = request.settings, self.dialect.max_tokens_field
        fields: JsonObject = {
            "model": model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            limit if limit not in self.left_out else MAX_TOKENS_FIELDS[limit]: settings.max_tokens,
            "stop": settings.stop or None,
            "reasoning_effort": settings.effort,
        }
        if request.tools and settings.tool_choice is not None:
            fields["tool_choice"] = _encode_tool_choice(settings.tool_choice)
        if request.output_schema is not None and self.dialect.output_schema:
            fields["response_format"] = _encode_output_schema(
                request.output_schema, plain="strict" in self.left_out
            )
        fields = self.accepted(fields)
        if settings.extra:
            fields.update(own_fields(settings, "messages"))
        return without_none(fields)


def _encode_tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return encode({"type": "function", "function": function})


TOOLS = EncodedTools(_encode_tool)


def _encode_tool_choice(choice: str) -> Json:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _encode_output_schema(schema: JsonObject, *, plain: bool) -> JsonObject:
    form: JsonObject = {"name": "answer", "schema": schema}
    if not plain:  # open schemas are refused when strict is asked for
        form["strict"] = schema.get("additionalProperties") is False
    return {"type": "json_schema", "json_schema": form}


class _MessageEncoder(CallEncoder):
    __slots__ = ("_dialect",)

    def __init__(self, request: ChatRequest, dialect: ChatDialect) -> None:
        super().__init__(request)
        self._dialect = dialect

    # --- calls and their results -------------------------------------------------------------------------

    def takes_id(self, id: str, at: int) -> bool:
        return 0 < len(id) <= MAX_ID_LENGTH

    def results(self, group: Sequence[Message], at: int) -> Iterator[JsonObject]:
        yield from super().results(group, at)
        if self._dialect.images:
            yield from self._result_images(group)

    def call(self, wire_id: str, name: str) -> JsonObject:
        return {"role": "assistant", "content": None, "tool_calls": [_call(wire_id, name, "{}")]}

    def result(self, wire_id: str, message: ToolMessage | None) -> JsonObject:
        text = UNANSWERED if message is None else self._result_text(message)
        return {"role": "tool", "tool_call_id": wire_id, "content": text}

    def _result_text(self, message: ToolMessage) -> str:
        """A result's text; its other parts as notes, because this message can hold nothing but text."""
        notes = []
        for part in message.parts:
            if isinstance(part, FilePart) or (not isinstance(part, TextPart) and not self._dialect.images):
                kind = f"{part.mime_type or 'unknown type'} content"
                notes.append(f"[{kind} left out: this endpoint does not take it in a tool result]")
        return "\n".join(filter(None, (message.content, *notes)))

    def _result_images(self, group: Sequence[Message]) -> list[JsonObject]:
        """The images of a group of tool results, as the user message that has to carry them."""
        content: list[JsonObject] = []
        for message in group:
            if isinstance(message, ToolMessage):
                images = [part for part in message.parts if isinstance(part, ImagePart | ImageUriPart)]
                if images:
                    content.append({"type": "text", "text": f"Images in the result of {message.name}:"})
                    content += map(self._part, images)
        return [{"role": "user", "content": content}] if content else []

    # --- messages ------------------------------------------------------------------------------------

    def say(self, message: Message, at: int) -> Iterator[JsonObject]:
        if isinstance(message, AssistantMessage):
            yield self._assistant(message, at)
        elif isinstance(message, UserMessage) and message.parts:
            yield {"role": "user", "content": [self._part(part) for part in message.parts]}
        else:
            yield {"role": message.role, "content": message.content}

    def _assistant(self, message: AssistantMessage, at: int) -> JsonObject:
        calls, dialect = message.tool_calls, self._dialect
        wire: JsonObject = {"role": "assistant", "content": message.content or (None if calls else "")}
        if calls:
            wire_ids = self.wire_ids(message, at)
            wire["tool_calls"] = [
                _call(wire_id, call.name, call.arguments, call.signature if dialect.signatures else None)
                for call, wire_id in zip(calls, wire_ids, strict=True)
            ]
        if dialect.reasoning_field:
            thinking = _thinking_of(message) or dialect.reasoning_placeholder
            if thinking:
                wire[dialect.reasoning_field] = thinking
        if dialect.reasoning_details and (details := _details_of(message)):
            wire["reasoning_details"] = details
        return wire

    def _part(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return {"type": "text", "text": part.text}
        if isinstance(part, FilePart):
            if not self._dialect.files:
                return {"type": "text", "text": note_left_out(part)}
            return {"type": "file", "file": {"filename": part.name or "file", "file_data": url_of(part)}}
        if not self._dialect.images:
            return {"type": "text", "text": note_left_out(part)}
        return {"type": "image_url", "image_url": {"url": url_of(part)}}


def _call(wire_id: str, name: str, arguments: str, signature: str | None = None) -> JsonObject:
    function = {"name": name, "arguments": safe_arguments(arguments)}
    call: JsonObject = {"id": wire_id, "type": "function", "function": function}
    return {**call, "extra_content": {"google": {"thought_signature": signature}}} if signature else call


def _thinking_of(message: AssistantMessage) -> str:
    """The text of the thinking that this wire can take back."""
    return "".join(block.text for block in message.reasoning if _type_of(block) in (PLAIN, DETAILS))


def _details_of(message: AssistantMessage) -> list[Json]:
    return [
        detail
        for block in message.reasoning
        if _type_of(block) == DETAILS
        for detail in block.data["details"]
    ]


def _type_of(block: ReasoningBlock) -> str:
    """Whose a block is; text without any mark is from a server that has no more to say, or from a script."""
    if block.data is None:
        return PLAIN if block.signature is None else ""
    return str(block.data.get("type")) if isinstance(block.data, dict) else ""
