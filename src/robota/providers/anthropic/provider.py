"""Anthropic's models over the Messages API, and any other endpoint that speaks it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from robota.core.errors import ConfigurationError, ProviderError, RobotaError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.anthropic import API_URL, API_VERSION, KEY_VARIABLE
from robota.providers.anthropic.blocks import BlockDialect
from robota.providers.anthropic.reply import BlockContent
from robota.providers.anthropic.request import MessagesEncoder
from robota.providers.service import endpoint
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.errors import (
    Peer,
    Refusal,
    describe_error_event,
    describe_refusal,
    quote,
    read_request_id,
    secrets_of,
)
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

    class _Event(Protocol):
        def to_dict(self, *, mode: str) -> JsonObject: ...

    class _Response(Protocol):
        @property
        def headers(self) -> Mapping[str, str]: ...

    class _Stream(AsyncIterable[_Event], Protocol):
        @property
        def response(self) -> _Response: ...

        async def close(self) -> None: ...

    class _Resource(Protocol):
        @property
        def create(self) -> Callable[..., Awaitable[_Stream]]: ...

    class OfficialClient(Protocol):
        """What is used of `anthropic.AsyncAnthropic`; its relatives for other clouds have it too."""

        @property
        def messages(self) -> _Resource: ...

        @property
        def base_url(self) -> object: ...

        def with_options(self, *, max_retries: int) -> OfficialClient: ...


CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    web_search=NativeWebTool(supported=True, enabled=True, source=BlockContent.surface),
    web_fetch=NativeWebTool(reason="Use the WebFetch tool instead."),
)
_NAMED = ("model", "max_tokens", "messages", "stream")
"""What the client's `create` wants by name; the rest goes into the body as it is."""


class AnthropicProvider(WireProvider):
    """A model behind the Messages API. Every reply is streamed.

    Without `api_key` the variable ANTHROPIC_API_KEY is read, but only for Anthropic's own address: no other
    host gets a key that was not meant for it. `base_url` may end in `/v1` or not. `headers` win over ours; an
    older `anthropic-version` among them brings `temperature` and `top_p` back, which are not sent otherwise.
    `prompt_caching=False` leaves the cache marks out, for endpoints that refuse them. `client` is an
    `anthropic.AsyncAnthropic` or one of its relatives for other clouds, which then signs and sends for us.
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
        own = {header.lower(): value for header, value in (headers or {}).items()}
        channel: Channel
        if client is not None:
            if api_key or own or transport:
                raise ConfigurationError(
                    f"Provider {name!r} got a client and api_key, headers or transport; give these to the "
                    "client."
                )
            channel = ClientChannel(client, provider=name)
        else:
            if not (api_key or "").strip() and base_url.strip() == API_URL:
                api_key = os.environ.get(KEY_VARIABLE)
            address = endpoint(base_url, "/messages", version="/v1")
            own = {"anthropic-version": API_VERSION, **own}
            channel = HttpChannel(address, own, provider=name, key=api_key, transport=transport)
        encoder = MessagesEncoder(
            sampling=own.get("anthropic-version", API_VERSION) < API_VERSION,
            output_schema=capabilities.output_schema,
            prompt_caching=prompt_caching,
            blocks=BlockDialect(images=capabilities.vision, files=capabilities.files),
        )
        super().__init__(
            name, model, capabilities, channel=channel, encoder=encoder, content=lambda _: BlockContent()
        )


class ClientReply:
    """A reply that is under way."""

    def __init__(self, stream: _Stream, channel: ClientChannel) -> None:
        self.headers = stream.response.headers
        self._stream = stream
        self._channel = channel

    async def parts(self) -> AsyncGenerator[JsonObject, None]:
        import httpx2  # noqa: PLC0415 - the client has loaded it, and lets its errors through

        try:
            async for event in self._stream:
                yield event.to_dict(mode="json")
        except self._channel.errors as error:
            raise self._channel.explain(error, "") from error
        except httpx2.HTTPError as error:
            raise self._channel.translate(error) from error
        except ValueError as error:  # the client's JSON decoder
            name, said = self._channel.provider, quote(str(error), self._channel.secrets)
            raise ProviderError(
                f"{name} sent something that is not a Messages reply ({said}); check its base URL.",
                provider=name,
                status=200,
            ) from error

    async def aclose(self) -> None:
        await self._stream.close()


class ClientChannel(Channel):
    """The way through Anthropic's own client object, for Bedrock, Vertex, Foundry and custom authentication.

    The client signs, routes and sends. It takes a request as objects and gives its events as objects; what is
    said in them stays ours. It retries nothing here: retries are shown to the listener, which a client cannot
    do.
    """

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.provider = provider
        self.secrets = secrets_of(client)
        self.origin = str(client.base_url)
        self._client = client.with_options(max_retries=0)

    @property
    def errors(self) -> type[Exception]:
        """The root of the client's own errors; whoever has a client has it loaded."""
        root: type[Exception] = import_module("anthropic").AnthropicError
        return root

    async def open(self, body: bytes, *, model: str) -> ClientReply:
        more = decode(body)
        named = {name: more.pop(name) for name in _NAMED}
        try:
            return ClientReply(await self._client.messages.create(**named, extra_body=more), self)
        except self.errors as error:
            raise self.explain(error, model) from error

    def explain(self, error: Exception, model: str) -> RobotaError:
        """An error of the client as one of ours."""
        status = getattr(error, "status_code", None)
        if status is None:
            cause = error.__cause__
            if cause is None:
                return ConfigurationError(f"The client of provider {self.provider!r} cannot be used: {error}")
            return self.translate(cause if isinstance(cause, Exception) else error)
        body: Json = getattr(error, "body", None)
        response = getattr(error, "response", None)
        headers = {name.lower(): value for name, value in getattr(response, "headers", {}).items()}
        if status < 300:  # told inside a reply that had begun well
            said = body.get("error") or body if isinstance(body, dict) else str(error)
            id = read_request_id(headers, self.secrets)
            return describe_error_event(said, Peer(self.provider, id, self.secrets))
        text = body.encode() if isinstance(body, str) else encode(body)
        refusal = Refusal(status, headers, text, model, self.origin)
        return describe_refusal(refusal, self.provider, self.secrets or ("client",))
