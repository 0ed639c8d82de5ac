"""Small models that lose the thread make one call again and again: how it shows, and what they are told."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from robota.core.messages import AssistantMessage, Message, ToolMessage, UserMessage
from robota.core.provider import ChatRequest

ROUNDS = 3
"""So often the same call with the same result is a circle."""
NOTE = (
    "You have called {name} {rounds} times in a row with the same arguments and got the same result. No more "
    "tools can be used now: answer in words from what you know, and say what is missing."
)


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
