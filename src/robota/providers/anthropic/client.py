"""Requests through Anthropic's own client object, for Bedrock, Vertex, Foundry and custom authentication.

The client signs, routes and sends. It takes a request as objects and gives its events as objects; what is
said in them stays ours. It retries nothing here: retries are shown to the listener, which a client cannot do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from importlib import import_module
from typing import Protocol

from robota.core.errors import ConfigurationError, NetworkError, ProviderError, RobotaError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.providers.wire.errors import (
    Refusal,
    describe_error_event,
    describe_failure,
    describe_refusal,
    quote,
    read_request_id,
    secrets_of,
)

_NAMED = ("model", "max_tokens", "messages", "stream")
"""What `create` wants by name; the rest goes into the body as it is."""


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


class OfficialReply:
    """A reply that is under way."""

    def __init__(self, stream: _Stream, channel: OfficialChannel) -> None:
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


class OfficialChannel:
    """The way through a client. It belongs to the caller, so it is not closed here."""

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.secrets = secrets_of(client)
        self._client = client.with_options(max_retries=0)
        self.provider = provider

    @property
    def errors(self) -> type[Exception]:
        """The root of the client's own errors; whoever has a client has it loaded."""
        root: type[Exception] = import_module("anthropic").AnthropicError
        return root

    async def open(self, body: bytes, *, model: str = "") -> OfficialReply:
        more = decode(body)
        named = {name: more.pop(name) for name in _NAMED}
        try:
            return OfficialReply(await self._client.messages.create(**named, extra_body=more), self)
        except self.errors as error:
            raise self.explain(error, model) from error

    def translate(self, error: Exception) -> NetworkError:
        return describe_failure(error, self.provider, str(self._client.base_url), self.secrets)

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
            return describe_error_event(said, self.provider, request_id=id, secrets=self.secrets)
        text = body.encode() if isinstance(body, str) else encode(body)
        refusal = Refusal(status, headers, text, model, str(self._client.base_url))
        return describe_refusal(refusal, self.provider, self.secrets or ("client",))

    async def aclose(self) -> None:
        """Nothing of ours is open."""
