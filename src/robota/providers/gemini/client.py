"""Requests through the official `google-genai` client: for Vertex AI, its credentials and its settings.

The client's own types read the request from the bytes that we would send, and its replies are read as the
objects that they are, so both ways give the same chunks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Protocol

import msgspec
from msgspec import Raw

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    NetworkError,
    RobotaError,
    describe_exception,
)
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.providers.gemini.errors import describe_google_refusal
from robota.providers.wire.errors import Refusal, describe_failure, quote, secrets_of

_OWN_FIELDS = {"sdk_http_response", "parsed", "automatic_function_calling_history"}
"""What the client adds to a reply."""


class _Reply(Protocol):
    def model_dump(
        self, *, mode: str, exclude_none: bool, by_alias: bool, exclude: set[str]
    ) -> JsonObject: ...


class _Models(Protocol):
    def generate_content_stream(
        self, *, model: str, contents: object, config: object
    ) -> Awaitable[AsyncGenerator[_Reply, None]]: ...


class _AsyncSide(Protocol):
    @property
    def models(self) -> _Models: ...


class OfficialClient(Protocol):
    """A `google.genai.Client`, as far as it is used."""

    @property
    def aio(self) -> _AsyncSide: ...


class OfficialReply:
    """A reply that is under way, with failures as our errors."""

    headers: Mapping[str, str] = {}

    def __init__(self, replies: AsyncGenerator[_Reply, None], model: str, channel: OfficialChannel) -> None:
        self._replies = replies
        self._model = model
        self._channel = channel

    async def parts(self) -> AsyncGenerator[JsonObject, None]:
        try:
            async for reply in self._replies:
                yield reply.model_dump(mode="json", exclude_none=True, by_alias=True, exclude=_OWN_FIELDS)
        except Exception as error:
            raise self._channel.describe(error, self._model) from error

    async def aclose(self) -> None:
        """Close what is left of it: `aclose()` would not reach the generator that holds the connection."""
        import anyio  # noqa: PLC0415 - httpx2 has loaded it

        with suppress(_refused(), _http_error()), anyio.CancelScope() as scope:
            scope.cancel()
            async for _ in self._replies:
                pass


class OfficialChannel:
    """The way through a client. It belongs to the caller, so it is not closed here."""

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.secrets = secrets_of(getattr(client, "_api_client", None))
        self._client = client
        self._provider = provider

    async def open(self, body: bytes, *, model: str) -> OfficialReply:
        contents, config = _translate(body, self._provider)
        try:
            replies = await self._client.aio.models.generate_content_stream(
                model=model, contents=contents, config=config
            )
        except Exception as error:
            raise self.describe(error, model) from error
        return OfficialReply(replies, model, self)

    def translate(self, error: Exception) -> NetworkError:
        return describe_failure(error, self._provider, "the client's address", self.secrets)

    def describe(self, error: Exception, model: str) -> RobotaError:
        """An error of the client as one of ours."""
        if isinstance(error, _refused()):
            return self._describe_refusal(error, model)
        if isinstance(error, _http_error()):
            return self.translate(error)
        client = f"The client of provider {self._provider!r}"
        said = quote(describe_exception(error), self.secrets)
        if type(error).__module__.startswith("google.auth"):
            return AuthenticationError(
                f"{client} has no valid credentials ({said}); sign in again.", provider=self._provider
            )
        # another HTTP library, half an event
        return NetworkError(f"{client} broke off ({said}); try again.", provider=self._provider)

    def _describe_refusal(self, error: Exception, model: str) -> RobotaError:
        status = getattr(error, "code", None)
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
        body = encode(getattr(error, "details", None))
        named = {str(name).lower(): str(value) for name, value in headers.items()}
        refusal = Refusal(status if isinstance(status, int) else 0, named, body, model, f"model {model}")
        return describe_google_refusal(refusal, self._provider, self.secrets or ("the client's own",))

    async def aclose(self) -> None:
        """Nothing of ours is open."""


def _refused() -> type[Exception]:
    error: type[Exception] = import_module("google.genai.errors").APIError
    return error


def _http_error() -> type[Exception]:
    import httpx2  # noqa: PLC0415 - google-genai has loaded it

    return httpx2.HTTPError


def _translate(body: bytes, provider: str) -> tuple[object, object]:
    """The request in the client's types, which read base64 as such only from JSON text."""
    from pydantic import ValidationError  # noqa: PLC0415 - google-genai has loaded it

    types = import_module("google.genai.types")
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    contents = msgspec.json.decode(fields.pop("contents"), type=list[Raw])
    if "generationConfig" in fields:  # the client has no such object: its fields stand beside the others
        fields |= msgspec.json.decode(fields.pop("generationConfig"), type=dict[str, Raw])
    fields["automaticFunctionCalling"] = Raw(b'{"disable":true}')  # or it would look for functions to run
    try:
        config = types.GenerateContentConfig.model_validate_json(encode(fields))
        return [types.Content.model_validate_json(bytes(content)) for content in contents], config
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigurationError(
            f"The client of provider {provider!r} does not take {place} ({problem['msg']}); "
            "check ModelSettings.extra or install a newer google-genai."
        ) from error
