"""Any endpoint that speaks the Responses API: OpenAI's own, Azure's, gateways."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    NativeWebTool,
    assert_native_web_tools_available,
)
from robota.providers.responses.client import ClientChannel
from robota.providers.responses.items import ItemDialect
from robota.providers.responses.reply import API_SURFACE, ResponsesReader
from robota.providers.responses.wire import ResponsesEncoder
from robota.providers.wire.channel import HttpChannel, iterate_body

if TYPE_CHECKING:
    import httpx2

CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="web_search"),
    web_fetch=NativeWebTool(reason="Its web search opens the pages it needs by itself."),
)
DRAIN_SECONDS = 0.5
"""How long to wait, after the reply, for the end of the HTTP message; without it no connection is reused."""
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")


class ResponsesProvider:
    """A model behind a Responses endpoint. See `robota.providers.openai.OpenAIProvider`."""

    def __init__(
        self,
        channel: HttpChannel | ClientChannel,
        model: str | None = None,
        *,
        capabilities: Capabilities | None = None,
        strict_tools: bool = False,
        reasoning_summary: str | None = None,
    ) -> None:
        self.name = channel.provider
        self.model = model
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        self._strict_tools = strict_tools
        self._channel = channel
        dialect = ItemDialect(images=self.capabilities.vision, files=self.capabilities.files)
        self._encoder = ResponsesEncoder(
            dialect, strict_tools=strict_tools, reasoning_summary=reasoning_summary
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply. Native payloads are bytes of JSON, for a journal to embed without encoding them anew."""
        import httpx2  # noqa: PLC0415 - 74 ms, paid by the first request

        model = request.model or self.model
        if not model:
            raise ConfigurationError(
                f"Provider {self.name!r} needs a model: name one in the request or here."
            )
        assert_native_web_tools_available(self, request.native_web_tools)
        body = self._encoder.encode(request, model)
        if request.want_raw:
            yield NativePayload(kind="request", payload=body, api_surface=API_SURFACE)
        response = await self._channel.post(body, model=model)
        reader = self._reader(request, response)
        parts = iterate_body(response)
        try:
            async for part in parts:
                for chunk in reader.feed(part):
                    yield chunk
                if reader.over:
                    break
            if reader.done:
                await _drain(parts)
        except httpx2.HTTPError as error:
            reader.cut = self._channel.translate(error)
        finally:
            await parts.aclose()
            await response.aclose()
        for chunk in reader.end():
            yield chunk
        for chunk in reader.finish():
            yield chunk

    def _reader(self, request: ChatRequest, response: httpx2.Response) -> ResponsesReader:
        return ResponsesReader(
            self.name,
            want_raw=request.want_raw,
            request_id=response.headers.get("x-request-id"),
            secrets=self._channel.secrets,
            schemas={tool.name: tool.parameters for tool in request.tools} if self._strict_tools else None,
        )

    async def aclose(self) -> None:
        await self._channel.aclose()


async def _drain(parts: AsyncGenerator[bytes, None]) -> None:
    import anyio  # noqa: PLC0415 - httpx2 has loaded it

    with anyio.move_on_after(DRAIN_SECONDS):
        async for _ in parts:
            pass


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
    secrets = [value for name, value in own.items() if any(word in name.lower() for word in _SECRET_WORDS)]
    return HttpChannel(
        _endpoint(base_url.strip()),
        {"authorization": f"Bearer {key}", **own} if key else own,
        provider=provider,
        secrets=[key, *secrets],
        transport=transport,
    )


def _endpoint(base_url: str) -> str:
    path, mark, query = base_url.partition("?")
    path = path.rstrip("/")
    return f"{path if path.endswith('/responses') else path + '/responses'}{mark}{query}"
