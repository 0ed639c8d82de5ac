"""Requests in the wire form of Chat Completions, joined from fragments that are encoded once.

A fragment is one group of messages as JSON objects with commas between them. What an endpoint cannot take
(images, files) is replaced by a note, so that the model knows that something was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from robota.core.errors import ConfigurationError
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
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.providers.chat.thoughts import details_of, thinking_of
from robota.providers.wire.conversation import ToolSets, encode_groups, read_arguments


class ChatDialect(Struct, frozen=True):
    """How one endpoint wants its messages; the key under which a history keeps their wire form."""

    images: bool = False
    files: bool = False
    reasoning_field: str | None = None
    """Where past thinking is sent back; `None` leaves it out, which most endpoints expect."""
    reasoning_placeholder: str | None = None
    """Stands there for answers without thinking of this wire, for endpoints that insist on some."""
    reasoning_details: bool = False
    """Whether the endpoint wants back the details of its thinking."""
    max_tokens_field: str = "max_tokens"
    output_schema: bool = False


class ChatEncoder:
    """Turns requests into bodies. The JSON of a tool set is kept as long as the same tuple is used."""

    __slots__ = ("_dialect", "_tool_sets")

    def __init__(self, dialect: ChatDialect) -> None:
        self._dialect = dialect
        self._tool_sets = ToolSets()

    def encode(self, request: ChatRequest, model: str) -> bytes:
        fragments = encode_groups(request, self._dialect, self.encode_group)
        head = encode(self._fields(request, model))[:-1] + b',"messages":['
        tools = self._encode_tools(request)
        tail = b'],"tools":[%s]}' % tools if tools else b"]}"
        if len(fragments) < 2:
            return b"%s%s%s" % (head, b"".join(fragments), tail)
        # One join: a long history is copied once.
        return b",".join([head + fragments[0], *fragments[1:-1], fragments[-1] + tail])

    def encode_group(self, group: Sequence[Message]) -> bytes:
        wire = [encode(self._encode_message(message)) for message in group]
        if self._dialect.images:
            wire += self._encode_result_images(group)
        return b",".join(wire)

    # --- the fields besides messages and tools ---------------------------------------------------------

    def _fields(self, request: ChatRequest, model: str) -> JsonObject:
        settings = request.settings
        fields: JsonObject = {
            "model": model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            self._dialect.max_tokens_field: settings.max_tokens,
            "stop": settings.stop or None,
            "reasoning_effort": settings.effort,
        }
        if request.tools and settings.tool_choice is not None:
            fields["tool_choice"] = _encode_tool_choice(settings.tool_choice)
        if request.output_schema is not None and self._dialect.output_schema:
            fields["response_format"] = _encode_output_schema(request.output_schema)
        if settings.extra:
            fields.update(_checked_extra(settings))
        return {name: value for name, value in fields.items() if value is not None}

    def _encode_tools(self, request: ChatRequest) -> bytes:
        wire = self._tool_sets.find(request.tools, _encode_tools)
        more = request.settings.extra.get("tools") or ()
        return b",".join(filter(None, (wire, *map(encode, more)))) if more else wire

    # --- messages ------------------------------------------------------------------------------------

    def _encode_message(self, message: Message) -> JsonObject:
        if isinstance(message, AssistantMessage):
            return self._encode_assistant(message)
        if isinstance(message, ToolMessage):
            return {
                "role": "tool",
                "tool_call_id": message.tool_call_id,
                "content": self._result_text(message),
            }
        if isinstance(message, UserMessage) and message.parts:
            return {"role": "user", "content": [self._encode_part(part) for part in message.parts]}
        return {"role": message.role, "content": message.content}

    def _encode_assistant(self, message: AssistantMessage) -> JsonObject:
        calls = message.tool_calls
        wire: JsonObject = {"role": "assistant", "content": message.content or (None if calls else "")}
        if calls:
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": _safe_arguments(call)},
                }
                for call in calls
            ]
        self._add_thinking(message, wire)
        return wire

    def _add_thinking(self, message: AssistantMessage, wire: JsonObject) -> None:
        dialect = self._dialect
        if dialect.reasoning_field:
            thinking = thinking_of(message.reasoning) or dialect.reasoning_placeholder
            if thinking:
                wire[dialect.reasoning_field] = thinking
        if dialect.reasoning_details and (details := details_of(message.reasoning)):
            wire["reasoning_details"] = details

    def _encode_part(self, part: Part) -> JsonObject:
        if isinstance(part, TextPart):
            return {"type": "text", "text": part.text}
        if isinstance(part, FilePart):
            if not self._dialect.files:
                return _note(f"file {part.name or 'without a name'} ({part.mime_type})", "files")
            data = f"data:{part.mime_type};base64,{part.data}"
            return {"type": "file", "file": {"filename": part.name or "file", "file_data": data}}
        if not self._dialect.images:
            return _note(f"image ({part.mime_type or 'unknown type'})", "images")
        uri = part.uri if isinstance(part, ImageUriPart) else f"data:{part.mime_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": uri}}

    def _result_text(self, message: ToolMessage) -> str:
        """A result's text; its other parts as notes, because this message can hold nothing but text."""
        notes = []
        for part in message.parts:
            if isinstance(part, FilePart) or (not isinstance(part, TextPart) and not self._dialect.images):
                note = _note(f"{part.mime_type or 'unknown type'} content", "it in a tool result")
                notes.append(note["text"])
        return "\n".join(filter(None, (message.content, *notes)))

    def _encode_result_images(self, group: Sequence[Message]) -> list[bytes]:
        """The images of a group of tool results, as the user message that has to carry them."""
        content: list[JsonObject] = []
        for message in group:
            if isinstance(message, ToolMessage):
                images = [part for part in message.parts if isinstance(part, ImagePart | ImageUriPart)]
                if images:
                    content.append({"type": "text", "text": f"Images in the result of {message.name}:"})
                    content += map(self._encode_part, images)
        return [encode({"role": "user", "content": content})] if content else []


def _safe_arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them; `{}` when they are no JSON object, which makes servers fail."""
    return "{}" if read_arguments(call.arguments) is None else call.arguments


def _encode_tools(tools: tuple[ToolSchema, ...]) -> bytes:
    return b",".join(map(_encode_tool, tools))


def _encode_tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return encode({"type": "function", "function": function})


def _encode_tool_choice(choice: str) -> Json:
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def _encode_output_schema(schema: JsonObject) -> JsonObject:
    strict = schema.get("additionalProperties") is False  # open schemas are refused when strict is asked for
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": strict}}


def _checked_extra(settings: ModelSettings) -> Mapping[str, Json]:
    """The caller's own fields. They win over ours, `None` leaves a field out, `tools` are added to ours."""
    if "messages" in settings.extra:
        raise ConfigurationError(
            "ModelSettings.extra cannot hold 'messages'; pass them in ChatRequest.messages."
        )
    return {name: value for name, value in settings.extra.items() if name != "tools"}


def _note(what: str, kind: str) -> JsonObject:
    return {"type": "text", "text": f"[{what} left out: this endpoint does not take {kind}]"}
