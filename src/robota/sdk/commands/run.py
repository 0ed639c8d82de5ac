"""Calling a command, and doing for its caller what it wants."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.errors import RobotaError
from robota.sdk.commands.effects import CommandResult, LanguageChosen, ModelChosen, Renamed, failure
from robota.sdk.view.neutral import neutralise

if TYPE_CHECKING:
    from robota.sdk.commands.registry import Command
    from robota.sdk.interactive import InteractiveSession


async def run_named(host: InteractiveSession, name: str, args: str) -> CommandResult | None:
    """The answer of the command of that name; `None` when there is none."""
    command = host.commands.find(name.removeprefix("/"))
    return None if command is None else await run_command(host, command, args)


async def run_command(host: InteractiveSession, command: Command, args: str) -> CommandResult:
    """Its answer. What cannot be done for a reason that we know is an answer too, not an exception."""
    if command.execute is None:
        return failure(f"/{command.name} cannot be run.")
    try:
        given = command.execute(host, args)
        answer = await given if inspect.isawaitable(given) else given
    except RobotaError as error:
        answer = failure(str(error))
    return replace(answer, message=neutralise(answer.message))


async def carry_out(host: InteractiveSession, answer: CommandResult) -> CommandResult:
    """Do what a command wants of a caller that has only the session: `submit` is one. What needs a screen or
    a program that can be left stays an effect."""
    match answer.effect:
        case ModelChosen(model_id):
            host.session.set_model(model_id)
        case LanguageChosen(language):
            host.kit.context.choose_language(language)
        case Renamed(name):
            host.name = name
    return answer
