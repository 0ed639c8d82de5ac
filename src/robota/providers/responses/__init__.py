"""The Responses wire: requests encoded, replies read. Either is loaded with the first provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from robota.core.provider import Capabilities, ChatRequest

if TYPE_CHECKING:
    from robota.providers.responses.request import ResponsesEncoder
    from robota.providers.wire.reply import ReplyContent


def responses_codec(
    able: Capabilities,
    *,
    strict_tools: bool = False,
    reasoning_summary: str | None = None,
    instructions: bool = True,
    web_fetch_tool: str | None = None,
) -> tuple[ResponsesEncoder, Callable[[ChatRequest], ReplyContent]]:
    """What encodes requests for such an endpoint, and what opens the reading of a reply.

    Without `instructions` the system prompt is an item like the others, for services that overlook the field;
    `web_fetch_tool` is the type of the hosted tool that reads pages, where there is one.
    """
    from robota.providers.responses.reply import ResponseContent  # noqa: PLC0415 - definitions load neither
    from robota.providers.responses.request import ItemDialect, ResponsesEncoder  # noqa: PLC0415

    def open_reply(request: ChatRequest) -> ResponseContent:
        schemas = {tool.name: tool.parameters for tool in request.tools} if strict_tools else None
        return ResponseContent(schemas)

    dialect = ItemDialect(images=able.vision, files=able.files, instructions=instructions)
    encoder = ResponsesEncoder(
        dialect,
        strict_tools=strict_tools,
        reasoning_summary=reasoning_summary,
        web_fetch_tool=web_fetch_tool,
    )
    return encoder, open_reply
