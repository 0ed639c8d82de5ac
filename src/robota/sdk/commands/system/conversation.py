"""The conversation as a whole: help, clearing, summaries, names, and what only a front end can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.given import suggest
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


CALL_SHOWN = 24
"""So much of a call stands in the list; the whole is a question away."""


def show_help(host: InteractiveSession, args: str) -> CommandResult:
    name = args.strip().removeprefix("/")
    if name:
        return _explain(host, name)
    commands = host.commands.commands()
    calls = [_call(each.name, each.argument_hint) for each in commands]
    width = max(map(len, calls))
    lines = [f"  {call:<{width}}  {each.description}" for call, each in zip(calls, commands, strict=True)]
    return CommandResult("\n".join(["Available commands:", *lines, "More about one of them: /help COMMAND"]))


def _call(name: str, hint: str) -> str:
    """How a command is called, where there is room for its arguments."""
    call = f"/{name} {hint}".rstrip()
    return call if len(call) <= CALL_SHOWN else f"/{name} …"


def _explain(host: InteractiveSession, name: str) -> CommandResult:
    command = host.commands.find(name)
    if command is None:
        names = [each.name for each in host.commands.commands()]
        return failure(f"There is no command {name!r}; {suggest(name, names)}")
    words = [f"  {each.name}: {each.description}" for each in command.subcommands]
    head = f"/{command.name} {command.argument_hint}".rstrip()
    return CommandResult("\n".join([f"{head}: {command.description}", *words]))


def clear(host: InteractiveSession, args: str) -> CommandResult:
    if host.session.is_running:
        return failure("The conversation cannot be cleared while a prompt is under way: stop it first.")
    host.session.clear_history()
    if not host.is_ready_made:
        host.kit.todos.items = ()
        host.kit.plan.plan, host.kit.plan.approved = "", False
    return CommandResult("Conversation cleared.")


async def compact(host: InteractiveSession, args: str) -> CommandResult:
    session = host.session
    if session.is_running:
        return failure("The conversation cannot be compacted while a prompt is under way: wait, or stop it.")
    before = session.context_state.used_percentage
    if await session.compact(args.strip() or None) is None:
        return CommandResult("There is nothing to compact: nothing was said since the last time.")
    after = session.context_state.used_percentage
    message = f"Context compacted: {before:.0f}% -> {after:.0f}%"
    return CommandResult(message, effect=Compacted(before, after))


def resume(host: InteractiveSession, args: str) -> CommandResult:
    wanted = " ".join(args.split())
    words = f"Looking for the session {wanted}." if wanted else "Choose a session to resume."
    return CommandResult(words, effect=ResumePicker())


def rename(host: InteractiveSession, args: str) -> CommandResult:
    name = " ".join(args.split())
    if not name:
        return usage("rename", "<name>")
    return CommandResult(f'Session renamed to "{name}".', effect=Renamed(name))


def reset(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("The settings are to be deleted.", effect=ResetRequested())


def leave(host: InteractiveSession, args: str) -> CommandResult:
    return CommandResult("Goodbye.", effect=ExitRequested())
