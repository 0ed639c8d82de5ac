"""Requests in the wire form of Chat Completions, joined from fragments that are encoded once."""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import ChatRequest, ModelSettings, ToolSchema
from robota.providers.chat.turns import ChatDialect, TurnEncoder
from robota.providers.encoding import EncodedTools, encode_groups


class ChatEncoder:
    """Turns requests into bodies."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: ChatDialect) -> None:
        self._dialect = dialect

    def encode(self, request: ChatRequest, model: str) -> bytes:
        turns = TurnEncoder(request.messages, self._dialect)
        fragments = encode_groups(request, self._dialect, turns.encode_group)
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


def _encode_tool(tool: ToolSchema) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return encode({"type": "function", "function": function})


TOOLS = EncodedTools(_encode_tool)


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
