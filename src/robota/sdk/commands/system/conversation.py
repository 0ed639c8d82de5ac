"""The conversation as a whole: help, clearing, summaries, names, and what only a front end can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.arguments import usage
from robota.sdk.commands.effects import (
    CommandResult,
    Compacted,
    ExitRequested,
    Renamed,
    ResetRequested,
    ResumePicker,
    failure,
)

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def show_help(host: InteractiveSession, args: str) -> CommandResult:
    commands = host.commands.commands()
    calls = [f"/{each.name} {each.argument_hint}".rstrip() for each in commands]
    width = min(32, max(map(len, calls)))
    lines = [f"  {call:<{width}}  {each.description}" for call, each in zip(calls, commands, strict=True)]
    return CommandResult("\n".join(["Available commands:", *lines]))


def clear(host: InteractiveSession, args: str) -> CommandResult:
    if host.session.is_running:
        return failure("The conversation cannot be cleared while a prompt is under way: stop it first.")
    host.session.clear_history()
    return CommandResult("Conversation cleared.")


async def compact(host: InteractiveSession, args: str) -> CommandResult:
    session = host.session
    if session.is_running:
        return failure("The conversation cannot be compacted while a prompt is under way: wait, or stop it.")
    before = session.context_state.used_percentage
    await session.compact(args.strip() or None)
    after = session.context_state.used_percentage
    message = f"Context compacted: {before:.0f}% -> {after:.0f}%"
    return CommandResult(message, effect=Compacted(before, after))


def resume(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("Choose a session to resume.", effect=ResumePicker())


def rename(host: InteractiveSession, args: str) -> CommandResult:
    name = " ".join(args.split())
    if not name:
        return usage("rename", "<name>")
    return CommandResult(f'Session renamed to "{name}".', effect=Renamed(name))


def reset(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("The settings are to be deleted.", effect=ResetRequested())


def leave(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("Goodbye.", effect=ExitRequested())
