"""Calling a command by its name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from robota.core.errors import RobotaError
from robota.sdk.commands.effects import CommandResult, failure

if TYPE_CHECKING:
    from robota.sdk.commands.host import CommandHost
    from robota.sdk.commands.registry import Command


async def run_named(host: CommandHost, name: str, args: str) -> CommandResult | None:
    """The answer of the command of that name; `None` when there is none."""
    command = host.commands.find(name.removeprefix("/"))
    return None if command is None else await run_command(host, command, args)


async def run_command(host: CommandHost, command: Command, args: str) -> CommandResult:
    """Its answer. What cannot be done for a reason that we know is an answer too, not an exception."""
    if command.execute is None:
        return failure(f"/{command.name} cannot be run.")
    try:
        given = command.execute(host, args)
        return await given if inspect.isawaitable(given) else given
    except RobotaError as error:
        return failure(str(error))
