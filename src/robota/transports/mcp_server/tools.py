"""What the server offers: `submit`, and a tool for each command."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from mcp import types

from robota.core.messages import JsonObject

if TYPE_CHECKING:
    from robota.sdk.commands.registry import Command
    from robota.sdk.interactive import InteractiveSession

SUBMIT = "submit"
PREFIX = "command_"
NOT_OFFERED = frozenset({"config", "exit", "mode", "provider", "reset", "resume", "trust"})
"""Commands that change what the session may do, or need a person in front of it: the caller is a model."""
_SESSION: JsonObject = {
    "type": "string",
    "description": "The session to use, by its id; `new` begins another one. Default: the same as before.",
}
OUTPUT: JsonObject = {
    "type": "object",
    "properties": {
        "sessionId": {"type": "string"},
        "text": {"type": "string"},
        "success": {"type": "boolean"},
        "stopReason": {"type": "string"},
        "costUsd": {"type": "number"},
        "usage": {"type": "object"},
        "denied": {"type": "array", "items": {"type": "string"}},
        "data": {"type": "object"},
    },
    "required": ["sessionId", "text", "success"],
}


def list_tools(
    session: InteractiveSession, expose: bool | Collection[str], *, many: bool
) -> list[types.Tool]:
    """`many`: calls may name a session."""
    return [
        _tool(
            SUBMIT,
            "Give a coding agent a task in its own directory and wait for its answer. It reads and changes "
            "files, runs commands and searches, as far as its rules and its user allow.",
            {"prompt": {"type": "string", "minLength": 1, "description": "The task, in plain words."}},
            ("prompt",),
            many=many,
        ),
        *(_describe(command, many) for command in offered_commands(session, expose)),
    ]


def offered_commands(session: InteractiveSession, expose: bool | Collection[str]) -> Iterator[Command]:
    for command in session.commands.commands():
        if expose is True:
            if command.user_invocable and command.name not in NOT_OFFERED:
                yield command
        elif expose and command.name in expose:
            yield command


def tool_name(command: Command) -> str:
    """Commands of plugins have a colon in their names, which names of tools have not."""
    return PREFIX + command.name.replace(":", "_")


def _describe(command: Command, many: bool) -> types.Tool:
    hint = f" Arguments: {command.argument_hint}" if command.argument_hint else ""
    args: JsonObject = {"type": "string", "description": "What stands behind the command's name."}
    return _tool(tool_name(command), f"{command.description}.{hint}", {"args": args}, (), many=many)


def _tool(
    name: str, description: str, properties: JsonObject, required: Collection[str], *, many: bool
) -> types.Tool:
    properties = {**properties, **({"session_id": _SESSION} if many else {})}
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    return types.Tool(
        name=name,
        description=description,
        input_schema={**schema, "required": list(required)} if required else schema,
        output_schema=OUTPUT,
    )
