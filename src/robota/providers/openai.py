"""OpenAI: the Responses API, or Chat Completions where a custom address is likely to speak nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, Self

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.chat import chat_codec
from robota.providers.responses import responses_codec
from robota.providers.service import Service, endpoint
from robota.providers.wire.errors import Refusal, describe_refusal, secrets_of
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.http.exchange import Reply

    class OfficialClient(Protocol):
        """What is used of `AsyncOpenAI` and its relatives."""

        @property
        def api_key(self) -> Json: ...
        @property
        def base_url(self) -> httpx2.URL: ...
        def with_options(self, *, max_retries: int) -> Self: ...
        async def post(
            self, path: str, *, cast_to: type[httpx2.Response], content: bytes, options: Json
        ) -> httpx2.Response: ...


BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="web_search"),
    web_fetch=NativeWebTool(reason="Its web search opens the pages it needs by itself."),
)
"""Of the Responses API."""
_NO_CHAT = (
    "embedding", "whisper", "tts", "dall-e", "image", "moderation", "realtime", "audio", "transcribe", "sora",
    "davinci", "babbage",
)  # fmt: skip
_CLIENT_HEADERS = {
    "Content-Type": "application/json",
    "X-Stainless-Raw-Response": "stream",  # the client's way to hand out a reply that is not read yet
}


class OpenAIProvider(WireProvider):
    """A model of OpenAI.

    Without an `api_key` the one in `OPENAI_API_KEY` is used, but never for a custom `base_url`: a key goes to
    the service it belongs to. A custom `base_url` means Chat Completions unless `api` says otherwise; what
    such an endpoint takes is for `capabilities` to say. There is no default model. `client` is an
    `AsyncOpenAI` or a relative of it (Azure, own authentication); it stays the caller's to close.

    With `strict_tools` the service keeps the model to the tools' schemas: objects are closed, optional fields
    become nullable on the wire, and the nulls are taken out of the calls again. Schemas that cannot be closed
    are sent as they are. `reasoning_summary` (`auto`, `concise`, `detailed`) asks for thinking to show.
    Efforts above `high` are sent as `high` to the models that are known not to take them.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        api: Literal["responses", "chat"] | None = None,
        client: OfficialClient | None = None,
        name: str = "openai",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        capabilities: Capabilities | None = None,
        strict_tools: bool = False,
        reasoning_summary: str | None = None,
    ) -> None:
        address = (base_url or "").strip() or BASE_URL
        custom = address.rstrip("/") != BASE_URL
        if api is None:
            api = "chat" if custom else "responses"
        if api not in ("responses", "chat"):
            raise ConfigurationError("The option 'api' of OpenAI must be 'responses' or 'chat'.")
        if client is not None and (api_key or base_url or headers or transport or api == "chat"):
            raise ConfigurationError(
                "A client brings its own key, address, headers and transport, and speaks the Responses API; "
                "leave these arguments out."
            )
        if strict_tools and api == "chat":
            raise ConfigurationError(
                "strict_tools needs the Responses API; if your endpoint speaks it, pass api='responses'."
            )
        if api_key is None and not custom:
            api_key = os.environ.get(KEY_VARIABLE)
        channel: Channel
        if client is not None:
            channel = ClientChannel(client, provider=name)
        else:
            from robota.providers.wire.channel import HttpChannel  # noqa: PLC0415 - definitions load no HTTP

            address = endpoint(address, "/chat/completions" if api == "chat" else "/responses")
            channel = HttpChannel(address, headers, provider=name, key=api_key, transport=transport)
        able = (Capabilities() if api == "chat" else CAPABILITIES) if capabilities is None else capabilities
        encoder, content = (
            chat_codec(able, max_tokens_field="max_tokens" if custom else "max_completion_tokens")
            if api == "chat"
            else responses_codec(able, strict_tools=strict_tools, reasoning_summary=reasoning_summary)
        )
        super().__init__(name, model, able, channel=channel, encoder=encoder, content=content)


class ClientChannel(Channel):
    """The way through the vendor's own client, without its retries; it brings its address and authentication.

    The bytes sent and received are those of the direct way; only their transport is the client's.
    """

    def __init__(self, client: OfficialClient, *, provider: str) -> None:
        self.provider = provider
        self.secrets = secrets_of(client)
        self.origin = str(client.base_url)
        self._client = client.with_options(max_retries=0)

    async def open(self, body: bytes, *, model: str) -> Reply:
        import httpx2  # noqa: PLC0415 - the client has loaded it

        from robota.http.detour import reply_of  # noqa: PLC0415 - as above

        package = import_module("openai")
        options = {"headers": _CLIENT_HEADERS, "timeout": None}
        try:
            return reply_of(
                await self._client.post("/responses", cast_to=httpx2.Response, content=body, options=options)
            )
        except package.APIStatusError as error:
            refused = error.response
            headers = dict(refused.headers.items())
            refusal = Refusal(refused.status_code, headers, refused.content, model, self.origin)
            raise describe_refusal(refusal, self.provider, self.secrets) from error
        except package.APIConnectionError as error:
            raise self.translate(error.__cause__ or error) from error


def _read_model(model: JsonObject) -> JsonObject | None:
    """OpenAI lists much that cannot hold a conversation."""
    return None if any(word in model["id"] for word in _NO_CHAT) else {}


SERVICE = Service(
    title="OpenAI",
    description="GPT models through the Responses API; there is no default model.",
    options={"api": str, "strict_tools": bool, "reasoning_summary": str},
    docs="https://developers.openai.com/api/docs",
    key_page="https://platform.openai.com/api-keys",
    key_variables=(KEY_VARIABLE,),
    base_url=BASE_URL,
    catalog="openai",
    read=_read_model,
)
