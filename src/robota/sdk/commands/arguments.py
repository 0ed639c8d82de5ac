"""The words behind a command: taken apart, and led to the function that the first of them names."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from robota.core.given import suggest
from robota.sdk.commands.effects import CommandResult, failure

Host = TypeVar("Host")
Action: TypeAlias = Callable[[Host, str], Awaitable[CommandResult]]


def split_first(args: str) -> tuple[str, str]:
    """The first word, and the rest without the blanks around it."""
    first, _, rest = args.strip().partition(" ")
    return first, rest.strip()


def split_quoted(args: str) -> list[str]:
    """The words; quotes of both kinds keep blanks together. `ValueError` for one that is not closed."""
    lexer = shlex.shlex(args, posix=True, punctuation_chars="")
    lexer.whitespace_split, lexer.commenters = True, ""
    lexer.escapedquotes = "'\""
    return list(lexer)


def usage(name: str, hint: str, why: str = "") -> CommandResult:
    """How a command is called, after a call that it does not understand."""
    return failure(f"{why + ' ' if why else ''}Usage: /{name} {hint}".rstrip())


async def dispatch(
    host: Host, name: str, args: str, actions: Mapping[str, Action[Host]], default: str = "list"
) -> CommandResult:
    """Run the action that the first word names, with the rest of the words; without a word the default."""
    word, rest = split_first(args)
    action = actions.get(word or default)
    if action is None:
        return failure(f"/{name} knows no {word!r}: {suggest(word, actions)}")
    return await action(host, rest)
