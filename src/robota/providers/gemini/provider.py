"""Google's Gemini models through the Gemini API, streamed, straight on the wire."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING
from urllib.parse import quote

from robota.core.errors import ConfigurationError, NetworkError
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    NativeWebTool,
    assert_native_web_tools_available,
)
from robota.providers.gemini.errors import GeminiChannel
from robota.providers.gemini.reply import API_SURFACE, GeminiReader
from robota.providers.gemini.wire import GeminiEncoder
from robota.providers.wire.channel import iterate_body

if TYPE_CHECKING:
    from typing import Self

    import httpx2

    from robota.providers.gemini.client import OfficialClient

BASE_URL = "https://generativelanguage.googleapis.com"
API_VERSION = "v1beta"
"""It serves every model; `v1` has no previews and no aliases such as `gemini-flash-latest`."""
CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="googleSearch"),
    web_fetch=NativeWebTool(supported=True, enabled=True, source="urlContext"),
)
_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?(?:/|$)")
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")


class GeminiProvider:
    """A Gemini model.

    `base_url` may end with a version (`…/v1`), which then wins over `api_version`, and may hold a path, for
    gateways that pass the protocol on. The key travels in a header, never in the URL. `headers` win over
    ours. A `client` of google-genai is used in place of all these; it stays the caller's to close.

    Building one costs nothing: httpx2 and the connections come with the first request. One provider serves
    many runs, in several event loops too; close it with `aclose()` or use it as an async context manager.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str = BASE_URL,
        model: str | None = None,
        *,
        name: str = "gemini",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: OfficialClient | None = None,
        capabilities: Capabilities | None = None,
        api_version: str = API_VERSION,
    ) -> None:
        self.name = name
        self.model = model
        """Used by requests that name none."""
        self.capabilities = CAPABILITIES if capabilities is None else capabilities
        own = {} if headers is None else dict(headers)
        key = (api_key or "").strip()
        self._headers = {"x-goog-api-key": key, **own} if key else own
        self._secrets = [key, *(value for header, value in own.items() if _is_secret(header))]
        self._transport = transport
        self._client = client
        self._root, self._query = _split_base(base_url.strip() or BASE_URL, api_version)
        self._channels: dict[str, GeminiChannel] = {}
        self._encoder = GeminiEncoder(
            images=self.capabilities.vision,
            files=self.capabilities.files,
            output_schema=self.capabilities.output_schema,
        )
        self._channel(model or "any")  # so that a wrong address or header is told here

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply. Native payloads are bytes of JSON, for a journal to embed without encoding them anew."""
        model = request.model or self.model
        if not model:
            raise ConfigurationError(
                f"Provider {self.name!r} needs a model: name one in the request or here."
            )
        assert_native_web_tools_available(self, request.native_web_tools)
        body = self._encoder.encode(request, model)
        if request.want_raw:
            yield NativePayload(
                kind="request", payload=body, api_surface=API_SURFACE, metadata={"model": model}
            )
        reader = GeminiReader(self.name, want_raw=request.want_raw, secrets=self._secrets)
        parts = self._receive(body, model)
        try:
            async for part in parts:
                for chunk in reader.feed(part):
                    yield chunk
                if reader.over:
                    break
        except NetworkError as error:
            reader.cut = error
        finally:
            await parts.aclose()
        for chunk in reader.end():
            yield chunk
        for chunk in reader.finish():
            yield chunk

    def _receive(self, body: bytes, model: str) -> AsyncGenerator[bytes, None]:
        """The bytes of the reply."""
        if self._client is None:
            return self._receive_directly(body, model)
        from robota.providers.gemini.client import stream_through  # noqa: PLC0415 - few hand in a client

        return stream_through(self._client, body, model, self.name)

    async def _receive_directly(self, body: bytes, model: str) -> AsyncGenerator[bytes, None]:
        import httpx2  # noqa: PLC0415 - 74 ms, paid by the first request

        channel = self._channel(model)
        response = await channel.post(body, model=model)
        parts = iterate_body(response)
        try:
            async for part in parts:
                yield part
        except httpx2.HTTPError as error:
            raise channel.translate(error) from error
        finally:
            await parts.aclose()
            await response.aclose()

    def _channel(self, model: str) -> GeminiChannel:
        """The way to a model: it is part of the address."""
        channel = self._channels.get(model)
        if channel is None:
            place = model if "/" in model else f"models/{model}"
            channel = self._channels[model] = GeminiChannel(
                f"{self._root}/{quote(place, safe='/')}:streamGenerateContent?{self._query}alt=sse",
                self._headers,
                provider=self.name,
                secrets=self._secrets,
                transport=self._transport,
            )
        return channel

    async def aclose(self) -> None:
        for channel in self._channels.values():
            await channel.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


GoogleProvider = GeminiProvider


def _split_base(base_url: str, version: str) -> tuple[str, str]:
    """The address up to the version, and the query that every request carries."""
    path, _, query = base_url.partition("?")
    path = path.rstrip("/")
    scheme, mark, place = path.partition("://")
    if not _VERSION.search(place):
        path = f"{scheme}{mark}{place}/{version}"
    return path, f"{query}&" if query else ""


def _is_secret(header: str) -> bool:
    name = header.lower()
    return any(word in name for word in _SECRET_WORDS)
