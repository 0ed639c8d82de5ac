"""What a command answered on another host, with the effects that a front end here can carry out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from robota.core.messages import Json, JsonObject
from robota.sdk.commands.effects import CommandResult, Effect, ExitRequested, ResumePicker, Rewound


class RemoteAnswer(CommandResult, frozen=True):
    """The answer with its data as the host told it."""

    told: Mapping[str, Json] = MappingProxyType({})

    @property
    def data(self) -> Mapping[str, Json]:
        return self.told


def read_answer_of_command(told: JsonObject) -> RemoteAnswer:
    """The answer. What belongs to the host, such as its settings, is done there or not at all."""
    data = told.get("data")
    known = data if isinstance(data, dict) else {}
    return RemoteAnswer(
        str(told.get("message", "")),
        bool(told.get("success")),
        _read_effect(known),
        MappingProxyType(known),
    )


def _read_effect(data: JsonObject) -> Effect | None:
    if data.get("triggerResumePicker"):
        return ResumePicker()
    if data.get("exitRequested"):
        return ExitRequested()
    prompt = data.get("prompt")
    return Rewound(prompt=prompt) if "chat" in data and isinstance(prompt, str) else None
