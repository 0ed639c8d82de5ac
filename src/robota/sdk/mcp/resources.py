"""Resources of servers that a prompt names with `@server:uri`: their content goes with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ValidationError
from robota.core.messages import Part, Prompt, TextPart

if TYPE_CHECKING:
    from robota.sdk.mcp.servers import McpServers

MAX_RESOURCES = 8
_REFERENCE = lazy_pattern(r"(?:^|(?<=[\s(\[{\"',;]))@([^\s/:@]+):([^\s\"'<>`,;)\]}]+)", re.MULTILINE)
_END = ".!?:"


async def add_resources(prompt: Prompt, named: Sequence[tuple[str, str]], servers: McpServers) -> Prompt:
    """The prompt, and behind it each resource that it names; one that cannot be had raises."""
    from robota.tools.mcp.content import fetch_resource  # noqa: PLC0415 - a server is connected

    if len(named) > MAX_RESOURCES:
        raise ValidationError(f"A prompt may name at most {MAX_RESOURCES} resources.", field="prompt")
    parts: list[Part] = []
    for server, uri in named:
        parts += await fetch_resource(servers.get(server), uri)
    given: tuple[Part, ...] = (TextPart(prompt),) if isinstance(prompt, str) else tuple(prompt)
    if isinstance(prompt, str) and all(isinstance(part, TextPart) for part in parts):
        return "\n\n".join(part.text for part in (*given, *parts) if isinstance(part, TextPart))
    return (*given, *parts)


def find_resources(text: str, servers: McpServers) -> list[tuple[str, str]]:
    """Server and address of each resource that is named, in order, each once."""
    if "@" not in text or not servers.connections:
        return []
    found = [(name, uri.rstrip(_END)) for name, uri in _REFERENCE.findall(text)]
    return [each for each in dict.fromkeys(found) if each[0] in servers.connections]
