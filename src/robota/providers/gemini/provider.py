"""Google's Gemini models through the Gemini API, streamed, straight on the wire."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote as percent_encoded

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
from robota.core.messages import Json, JsonObject
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.gemini import API_VERSION, BASE_URL, KEY_VARIABLES, sign
from robota.providers.gemini.errors import describe_google_refusal
from robota.providers.gemini.reply import GeminiContent
from robota.providers.gemini.request import GeminiEncoder
from robota.providers.service import base_path
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.errors import Refusal, quote, secrets_of
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

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


CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="googleSearch"),
    web_fetch=NativeWebTool(supported=True, enabled=True, source="urlContext"),
)
_OWN_FIELDS = {"sdk_http_response", "parsed", "automatic_function_calling_history"}
"""What the client adds to a reply."""
_VERSION = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?(?:/|$)")


class GeminiProvider(WireProvider):
    """A Gemini model.

    Without `api_key` the variable GEMINI_API_KEY is read, or GOOGLE_API_KEY, but only for Google's own
    address.
    `base_url` may end with a version (`…/v1`), which then wins over `api_version`, and may hold a path, for
    gateways that pass the protocol on. The key travels in a header, never in the URL. `headers` win over
    ours. A `client` of google-genai is used in place of all these; it stays the caller's to close.
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
        channel: Channel
        if client is not None:
            channel = ClientChannel(client, provider=name)
        else:
            if not (api_key or "").strip() and (base_url or BASE_URL).strip().rstrip("/") == BASE_URL:
                api_key = next(filter(None, map(os.environ.get, KEY_VARIABLES)), None)
            root, query = base_path(base_url or BASE_URL)
            root = root if _VERSION.search(root.partition("://")[2]) else f"{root}/{api_version}"
            channel = HttpChannel(
                root,
                headers,
                provider=name,
                key=api_key,
                sign=sign,
                address=lambda model: _address(root, model, query),
                describe=describe_google_refusal,
                transport=transport,
            )
        able = CAPABILITIES if capabilities is None else capabilities
        encoder = GeminiEncoder(images=able.vision, files=able.files, output_schema=able.output_schema)
        super().__init__(
            name, model, able, channel=channel, encoder=encoder, content=lambda _: GeminiContent()
        )

    def _request_facts(self, model: str) -> Mapping[str, Json]:
        return {"model": model}  # which the body does not say


GoogleProvider = GeminiProvider


def _address(root: str, model: str, query: str) -> str:
    """Where requests for a model go: each has an address of its own."""
    place = percent_encoded(model if "/" in model else f"models/{model}", safe="/")
    return f"{root}/{place}:streamGenerateContent{f'{query}&' if query else '?'}alt=sse"


class ClientReply:
    """A reply that is under way, with failures as our errors."""

    headers: Mapping[str, str] = {}

    def __init__(self, replies: AsyncGenerator[_Reply, None], model: str, channel: ClientChannel) -> None:
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


class ClientChannel(Channel):
    """The way through the official `google-genai` client: for Vertex AI, its credentials and its settings.

    The client's own types read the request from the bytes that we would send, and its replies are read as the
    objects that they are, so both ways give the same chunks.
    """

    origin = "the client's address"

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.secrets = secrets_of(getattr(client, "_api_client", None))
        self._client = client
        self.provider = provider

    async def open(self, body: bytes, *, model: str) -> ClientReply:
        contents, config = _translate(body, self.provider)
        try:
            replies = await self._client.aio.models.generate_content_stream(
                model=model, contents=contents, config=config
            )
        except Exception as error:
            raise self.describe(error, model) from error
        return ClientReply(replies, model, self)

    def describe(self, error: Exception, model: str) -> RobotaError:
        """An error of the client as one of ours."""
        if isinstance(error, _refused()):
            return self._describe_refusal(error, model)
        if isinstance(error, _http_error()):
            return self.translate(error)
        client = f"The client of provider {self.provider!r}"
        said = quote(describe_exception(error), self.secrets)
        if type(error).__module__.startswith("google.auth"):
            return AuthenticationError(
                f"{client} has no valid credentials ({said}); sign in again.", provider=self.provider
            )
        # another HTTP library, half an event
        return NetworkError(f"{client} broke off ({said}); try again.", provider=self.provider)

    def _describe_refusal(self, error: Exception, model: str) -> RobotaError:
        status = getattr(error, "code", None)
        headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
        body = encode(getattr(error, "details", None))
        named = {str(name).lower(): str(value) for name, value in headers.items()}
        refusal = Refusal(status if isinstance(status, int) else 0, named, body, model, f"model {model}")
        return describe_google_refusal(refusal, self.provider, self.secrets or ("the client's own",))


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
