"""Requests to servers that keep a model to a schema: one of the tools with its arguments, or an answer."""

from __future__ import annotations

from robota.core.jsontext import encode
from robota.core.provider import ChatRequest
from robota.providers.chat.reply import ChatContent
from robota.providers.encoding import Encoder, own_fields, without_none
from robota.providers.local.reply import ChoiceContent
from robota.providers.local.request import choice_fields, choice_schema, offered_tools

TEMPERATURE = 0.2
"""Unless the request says otherwise: small models lose the thread sooner when they are free to wander."""


class ChoiceEncoder(Encoder, frozen=True):
    optional = ("stream_options", "temperature", "top_p")

    tiny: bool = False

    def encode(self, request: ChatRequest, model: str) -> bytes:
        tools = offered_tools(request, tiny=self.tiny)
        schema = request.output_schema
        if tools:
            schema = choice_schema(tools, request.settings.tool_choice, schema)
        fields = {"model": model, **choice_fields(request, tools, schema, tiny=self.tiny)}
        if fields["temperature"] is None:
            fields["temperature"] = TEMPERATURE
        return encode(without_none({**self.accepted(fields), **own_fields(request.settings, "messages")}))

    def open_reply(self, request: ChatRequest) -> ChatContent:
        return ChoiceContent() if offered_tools(request, tiny=self.tiny) else ChatContent()
