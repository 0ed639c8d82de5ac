"""Commands that a model may call, as tools: `robota_command_<name>`.

They are of the class `execute`, and rules bind them by their names as any tool. Which commands they are is
said in their table; a skill is called through the tool `Skill`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from robota.core.errors import ConfigurationError
from robota.core.jsontext import encode
from robota.core.tool import ToolResult
from robota.sdk.commands.effects import CommandResult
from robota.sdk.commands.registry import Command
from robota.tools.function_tool import FunctionTool
from robota.tools.json_schema import arguments_schema, string

PREFIX = "robota_command_"
MAX_NAME = 64
_HASH = 8

RunCommand: TypeAlias = Callable[[str, str], Awaitable[CommandResult | None]]


def command_tools(commands: Iterable[Command], run: RunCommand) -> list[FunctionTool]:
    """A tool for each command, which calls `run` with the command's name and words."""
    taken: dict[str, str] = {}
    tools = []
    for command in commands:
        name = tool_name(command.name)
        if name in taken:
            raise ConfigurationError(
                f"The commands {taken[name]!r} and {command.name!r} would both be the tool {name}: "
                "rename one of them."
            )
        taken[name] = command.name
        tools.append(_make(name, command, run))
    return tools


def tool_name(command: str) -> str:
    """The name of a command's tool, as every model service accepts it; a long one ends in a hash."""
    name = PREFIX + re.sub(r"[^A-Za-z0-9_-]", "_", command)
    if len(name) <= MAX_NAME:
        return name
    from hashlib import sha256  # noqa: PLC0415 - few names are that long

    return f"{name[: MAX_NAME - _HASH - 1]}_{sha256(command.encode()).hexdigest()[:_HASH]}"


def _make(name: str, command: Command, run: RunCommand) -> FunctionTool:
    async def call(args: str = "") -> ToolResult:
        result = await run(command.name, args)
        if result is None:
            return ToolResult.failure(f"There is no command {command.name!r} any more.", "unknown_command")
        answer = {
            "success": result.success,
            "command": command.name,
            "message": result.message,
            "data": dict(result.data),
        }
        return ToolResult(content=encode(answer).decode())

    hint = command.argument_hint
    words = string(f"What stands behind the command: {hint}" if hint else "Nothing belongs here.")
    description = f"{command.description}. The same as when the user types /{command.name}."
    return FunctionTool(name, description, arguments_schema({"args": words}), call, tool_class="execute")
