"""Any endpoint that speaks the Responses API: OpenAI's own, Azure's, gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.provider import Capabilities, ChatRequest, NativeWebTool
from robota.providers.responses.client import ClientChannel
from robota.providers.responses.content import ResponseContent
from robota.providers.responses.items import ItemDialect
from robota.providers.responses.wire import ResponsesEncoder
from robota.providers.wire.channel import HttpChannel, endpoint
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2

CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="web_search"),
    web_fetch=NativeWebTool(reason="Its web search opens the pages it needs by itself."),
)


class ResponsesProvider(WireProvider):
    """A model behind a Responses endpoint. See `robota.providers.openai.OpenAIProvider`.

    Without `instructions` the system prompt is an item like the others, for services that overlook the field;
    `web_fetch_tool` is the type of the hosted tool that reads pages, where there is one.
    """

    def __init__(
        self,
        channel: HttpChannel | ClientChannel,
        model: str | None = None,
        *,
        capabilities: Capabilities | None = None,
        strict_tools: bool = False,
        reasoning_summary: str | None = None,
        instructions: bool = True,
        web_fetch_tool: str | None = None,
    ) -> None:
        able = CAPABILITIES if capabilities is None else capabilities
        encoder = ResponsesEncoder(
            ItemDialect(images=able.vision, files=able.files, instructions=instructions),
            strict_tools=strict_tools,
            reasoning_summary=reasoning_summary,
            web_fetch_tool=web_fetch_tool,
        )
        super().__init__(
            channel.provider,
            model,
            able,
            channel=channel,
            encoder=encoder,
            content=_open_strict_content if strict_tools else _open_content,
        )


def _open_content(request: ChatRequest) -> ResponseContent:
    return ResponseContent()


def _open_strict_content(request: ChatRequest) -> ResponseContent:
    return ResponseContent({tool.name: tool.parameters for tool in request.tools})


def open_channel(
    api_key: str | None,
    base_url: str,
    *,
    provider: str,
    headers: Mapping[str, str] | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> HttpChannel:
    """The direct way to `{base_url}/responses`."""
    own = {} if headers is None else dict(headers)
    key = (api_key or "").strip()
    return HttpChannel(
        endpoint(base_url, "/responses"),
        {"authorization": f"Bearer {key}", **own} if key else own,
        provider=provider,
        secrets=[key],
        transport=transport,
    )
