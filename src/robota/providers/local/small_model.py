"""How models are asked that are too small to call tools by themselves, or that lose the thread.

Servers that keep a model to a schema have it choose one of the tools with its arguments, or an answer. One
that makes the same call again and again is told so.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from robota.core.provider import ChatRequest
from robota.providers.chat.reply import ChatContent
from robota.providers.encoding import Encoder, own_fields, without_none
from robota.providers.local.reply import ChoiceContent
from robota.providers.local.request import choice_fields, choice_schema, offered_tools

TEMPERATURE = 0.2
"""Unless the request says otherwise: small models lose the thread sooner when they are free to wander."""
ROUNDS = 3
"""So often the same call with the same result is a circle."""
NOTE = (
    "You have called {name} {rounds} times in a row with the same arguments and got the same result. No more "
    "tools can be used now: answer in words from what you know, and say what is missing."
)


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


def stop_circle(request: ChatRequest) -> ChatRequest:
    """The request; if the model goes in a circle, without tools and with a word about it."""
    name = find_circle(request.messages) if request.tools else None
    if name is None:
        return request
    told = UserMessage(NOTE.format(name=name, rounds=ROUNDS))
    return replace(request, tools=(), messages=[*request.messages, told], history=None)


def find_circle(messages: Sequence[Message]) -> str | None:
    """The tool that was called with the same arguments and result in each of the last rounds."""
    rounds: list[tuple[object, ...]] = []
    results: list[str] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results.append(message.content)
        elif isinstance(message, AssistantMessage) and message.tool_calls:
            made = tuple((call.name, call.arguments) for call in message.tool_calls)
            rounds.append((made, tuple(results)))
            results = []
            if rounds[-1] != rounds[0]:
                return None
            if len(rounds) == ROUNDS:
                return message.tool_calls[0].name
        else:
            return None
    return None
