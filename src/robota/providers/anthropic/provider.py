"""Anthropic's models over the Messages API, and any other endpoint that speaks it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError, ModelNotAvailableError, ProviderError, RobotaError
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    Chunk,
    NativePayload,
    NativeWebTool,
    assert_native_web_tools_available,
)
from robota.providers.anthropic.client import OfficialChannel, OfficialClient, OfficialReply
from robota.providers.anthropic.reply import API_SURFACE, MessageReader
from robota.providers.anthropic.wire import MessagesEncoder, WireOptions
from robota.providers.wire.channel import HttpChannel, iterate_body

if TYPE_CHECKING:
    from typing import Self

    import httpx2

API_URL = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
"""The first version that refuses sampling parameters."""
KEY_VARIABLE = "ANTHROPIC_API_KEY"
DRAIN_SECONDS = 0.5
"""How long to wait, after the reply, for the end of the HTTP message; without it no connection is reused."""
CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    web_search=NativeWebTool(supported=True, enabled=True, source=API_SURFACE),
    web_fetch=NativeWebTool(reason="Use the WebFetch tool instead."),
)
_SECRET_WORDS = ("authorization", "key", "token", "secret", "cookie")


class AnthropicProvider:
    """A model behind the Messages API. Every reply is streamed.

    Without `api_key` the variable ANTHROPIC_API_KEY is read, but only for Anthropic's own address: no other
    host gets a key that was not meant for it. `base_url` may end in `/v1` or not. `headers` win over ours; an
    older `anthropic-version` among them brings `temperature` and `top_p` back, which are not sent otherwise.
    `prompt_caching=False` leaves the cache marks out, for endpoints that refuse them. `client` is an
    `anthropic.AsyncAnthropic` or one of its relatives for other clouds, which then signs and sends for us.

    Building one costs nothing: httpx2 and the connections come with the first request. One provider serves
    many runs, in several event loops too; close it with `aclose()` or use it as an async context manager.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str = API_URL,
        model: str | None = None,
        *,
        client: OfficialClient | None = None,
        name: str = "anthropic",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        capabilities: Capabilities = CAPABILITIES,
        prompt_caching: bool = True,
    ) -> None:
        self.name = name
        self.model = model
        """Used by requests that name none."""
        self.capabilities = capabilities
        own = {header.lower(): value for header, value in (headers or {}).items()}
        self._channel = (
            _open_channel(api_key, base_url.strip(), own, name, transport)
            if client is None
            else _wrap_client(client, name, others=(api_key, own, transport))
        )
        self._encoder = MessagesEncoder(
            WireOptions(
                sampling=own.get("anthropic-version", API_VERSION) < API_VERSION,
                output_schema=capabilities.output_schema,
                prompt_caching=prompt_caching,
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
        try:
            response = await self._channel.post(body, model=model)
        except ProviderError as error:
            raise explain_refusal(error, model) from error
        reader = MessageReader(
            self.name,
            want_raw=request.want_raw,
            request_id=response.headers.get("request-id"),
            secrets=self._channel.secrets,
        )
        parts = response.parts() if isinstance(response, OfficialReply) else iterate_body(response)
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


def explain_refusal(error: ProviderError, model: str) -> RobotaError:
    """The same refusal with the next step, where only this API's wording tells what it is about."""
    said = str(error)
    if error.status == 404 and f"model: {model}" in said:
        return ModelNotAvailableError(model, error.provider)
    if error.status == 400 and "prompt is too long" in said:
        what, fix = "cannot take a conversation this long", "compact it or use a model with a larger window"
    elif error.status == 400 and "credit balance" in said:
        what, fix = "says that the account has no credit left", "check the billing page of the service"
    else:
        return error
    quote = said[said.find("(") : said.rfind(")") + 1]
    return ProviderError(
        f"{error.provider} {what} {quote}; {fix}.",
        provider=error.provider,
        status=error.status,
        request_id=error.request_id,
    )


def _open_channel(
    api_key: str | None,
    address: str,
    own: Mapping[str, str],
    name: str,
    transport: httpx2.AsyncBaseTransport | None,
) -> HttpChannel | OfficialChannel:
    key = (api_key or "").strip()
    if not key and address == API_URL:
        key = os.environ.get(KEY_VARIABLE, "").strip()
    ours = {"anthropic-version": API_VERSION, **({"authorization": f"Bearer {key}"} if key else {})}
    secrets = [key, *(value for header, value in own.items() if _is_secret(header))]
    return HttpChannel(
        _endpoint(address), {**ours, **own}, provider=name, secrets=secrets, transport=transport
    )


def _wrap_client(client: OfficialClient, name: str, *, others: Sequence[object]) -> OfficialChannel:
    if any(others):
        raise ConfigurationError(
            f"Provider {name!r} got a client and api_key, headers or transport; give these to the client."
        )
    return OfficialChannel(client, provider=name)


async def _drain(parts: AsyncGenerator[bytes, None]) -> None:
    import anyio  # noqa: PLC0415 - httpx2 has loaded it

    with anyio.move_on_after(DRAIN_SECONDS):
        async for _ in parts:
            pass


def _endpoint(base_url: str) -> str:
    path, mark, query = base_url.partition("?")
    path = path.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return f"{path}/v1/messages{mark}{query}"


def _is_secret(header: str) -> bool:
    return any(word in header for word in _SECRET_WORDS)
