"""OpenAI: the Responses API, or Chat Completions where a custom address is likely to speak nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.chat import chat_codec
from robota.providers.responses import responses_codec
from robota.providers.service import Service, endpoint
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.providers.responses.client import OfficialClient

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
            from robota.providers.responses.client import ClientChannel  # noqa: PLC0415 - most have no client

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
