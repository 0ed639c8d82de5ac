"""Any endpoint that speaks Chat Completions: hosted services, gateways, the servers people run at home."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    assert_native_web_tools_available,
)
from robota.providers.chat.reply import API_SURFACE, ReplyReader
from robota.providers.chat.wire import ChatDialect, ChatEncoder
from robota.providers.wire.channel import HttpChannel, iterate_body

if TYPE_CHECKING:
    from typing import Self

    import httpx2

DRAIN_SECONDS = 0.5
"""How long to wait, after the reply, for the end of the HTTP message; without it no connection is reused."""
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")


class OpenAICompatibleProvider:
    """A model behind a Chat Completions endpoint.

    `base_url` is taken as given: with `/v1` if the service has it, with or without a slash at the end; a
    query stays behind the path. `api_key` may be missing (local servers). `headers` win over ours. Images,
    files and output schemas are sent only if the capabilities say that the endpoint takes them.

    Building one costs nothing: httpx2 and the connections come with the first request. One provider serves
    many runs, in several event loops too; close it with `aclose()` or use it as an async context manager.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str = "",
        model: str | None = None,
        *,
        name: str = "openai-compatible",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        capabilities: Capabilities | None = None,
        reasoning_field: str | None = None,
        max_tokens_field: str = "max_tokens",
    ) -> None:
        if not base_url:
            raise ConfigurationError(
                f"Provider {name!r} needs a base_url, such as https://api.openai.com/v1 or http://localhost:11434/v1."
            )
        self.name = name
        self.model = model
        """Used by requests that name none."""
        self.capabilities = Capabilities() if capabilities is None else capabilities
        own = {} if headers is None else dict(headers)
        key = (api_key or "").strip()
        secrets = [value for header, value in own.items() if _is_secret(header)]
        self._channel = HttpChannel(
            _endpoint(base_url.strip()),
            {"authorization": f"Bearer {key}", **own} if key else own,
            provider=name,
            secrets=[key, *secrets],
            transport=transport,
            client=client,
        )
        self._encoder = ChatEncoder(
            ChatDialect(
                images=self.capabilities.vision,
                files=self.capabilities.files,
                reasoning_field=reasoning_field,
                max_tokens_field=max_tokens_field,
                output_schema=self.capabilities.output_schema,
            )
        )

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        """One reply. Native payloads are bytes of JSON, for a journal to embed without encoding them anew."""
        import httpx2  # noqa: PLC0415 - 74 ms, paid by the first request

        model = self._choose_model(request)
        assert_native_web_tools_available(self, request.native_web_tools)
        body = self._encoder.encode(request, model)
        if request.want_raw:
            yield NativePayload(kind="request", payload=body, api_surface=API_SURFACE)
        response = await self._channel.post(body, model=model)
        parts = iterate_body(response)
        reader = ReplyReader(
            self.name,
            want_raw=request.want_raw,
            request_id=response.headers.get("x-request-id"),
            secrets=self._channel.secrets,
        )
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

    def _choose_model(self, request: ChatRequest) -> str:
        model = request.model or self.model
        if not model:
            raise ConfigurationError(
                f"Provider {self.name!r} needs a model: name one in the request or here."
            )
        return model

    async def aclose(self) -> None:
        await self._channel.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


async def _drain(parts: AsyncGenerator[bytes, None]) -> None:
    import anyio  # noqa: PLC0415 - httpx2 has loaded it

    with anyio.move_on_after(DRAIN_SECONDS):
        async for _ in parts:
            pass


def _endpoint(base_url: str) -> str:
    path, mark, query = base_url.partition("?")
    path = path.rstrip("/")
    return f"{path if path.endswith('/chat/completions') else path + '/chat/completions'}{mark}{query}"


def _is_secret(header: str) -> bool:
    name = header.lower()
    return any(word in name for word in _SECRET_WORDS)
