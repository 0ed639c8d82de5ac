"""Prompts and resources of a server, as parts of a conversation."""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.messages import Part
from robota.tools.mcp.connection import ServerConnection
from robota.tools.mcp.content import as_parts, read_resource, split_content


async def get_prompt(
    connection: ServerConnection, name: str, arguments: Mapping[str, str]
) -> tuple[Part, ...]:
    """A prompt with its arguments filled in."""
    answer = await connection.ask(lambda client: client.get_prompt(name, dict(arguments)))
    return as_parts(*split_content(message.content for message in answer.messages))


async def fetch_resource(connection: ServerConnection, uri: str) -> tuple[Part, ...]:
    """The content of a resource."""
    answer = await connection.ask(lambda client: client.read_resource(uri))
    read = [read_resource(each) for each in answer.contents]
    texts = [each for each in read if isinstance(each, str)]
    return as_parts(texts, [each for each in read if not isinstance(each, str)])
