"""`McpPromptSource`: prompts of servers as commands, `/mcp__server__prompt`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from robota.core.messages import TextPart
from robota.sdk.commands.effects import CommandResult, SubmitPrompt, failure
from robota.sdk.commands.registry import Command
from robota.tools.mcp.definition import plain_name

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.mcp.servers import McpServers
    from robota.tools.mcp.connection import ServerConnection
    from robota.tools.mcp.offer import OfferedPrompt


class McpPromptSource:
    """What the connected servers offer now."""

    name = "mcp"

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    def commands(self) -> Iterable[Command]:
        for connection in self._servers.connections.values():
            for prompt in connection.offer.prompts.values():
                yield _make(connection, prompt)


def _make(connection: ServerConnection, prompt: OfferedPrompt) -> Command:
    words = [f"<{each.name}>" if each.required else f"[{each.name}]" for each in prompt.arguments]
    return Command(
        name=connection.definition.prefix + plain_name(prompt.name),
        description=prompt.description or f"A prompt of {connection.definition.name}",
        source="mcp",
        execute=partial(_call, connection, prompt),
        argument_hint=" ".join(words),
    )


async def _call(
    connection: ServerConnection, prompt: OfferedPrompt, host: InteractiveSession, args: str
) -> CommandResult:
    from robota.tools.mcp.content import get_prompt  # noqa: PLC0415 - a server is connected

    try:
        words = shlex.split(args)
    except ValueError:
        words = args.split()
    names = [each.name for each in prompt.arguments]
    if len(words) > len(names) > 0:  # the last argument takes the rest
        words = [*words[: len(names) - 1], " ".join(words[len(names) - 1 :])]
    given = dict(zip(names, words, strict=False))
    missing = [each.name for each in prompt.arguments if each.required and each.name not in given]
    line = f"/{connection.definition.prefix}{plain_name(prompt.name)} {args}".rstrip()
    if missing:
        return failure(f"{line.split()[0]} needs {', '.join(missing)}.")
    parts = await get_prompt(connection, prompt.name, given)
    texts = [part.text if isinstance(part, TextPart) else "[an image or file, left out]" for part in parts]
    if not texts:
        return failure(f"{line.split()[0]} gave nothing to say.")
    # Not the user's words: what looks like a file in them is not sent.
    return CommandResult("", effect=SubmitPrompt("\n".join(texts), line, line, verbatim=True))
