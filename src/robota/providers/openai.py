"""OpenAI: the Responses API, or Chat Completions where a custom address is likely to speak nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.responses.client import ClientChannel, OfficialClient
from robota.providers.responses.provider import ResponsesProvider, open_channel
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2

BASE_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"


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
        wire: WireProvider
        if api == "chat":
            limit = "max_tokens" if custom else "max_completion_tokens"
            wire = OpenAICompatibleProvider(
                api_key, address, model, name=name, headers=headers, transport=transport,
                capabilities=capabilities, max_tokens_field=limit,
            )  # fmt: skip
        else:
            channel: ClientChannel | HttpChannel
            if client is not None:
                channel = ClientChannel(client, provider=name)
            else:
                channel = open_channel(api_key, address, provider=name, headers=headers, transport=transport)
            wire = ResponsesProvider(
                channel, model, capabilities=capabilities, strict_tools=strict_tools,
                reasoning_summary=reasoning_summary,
            )  # fmt: skip
        super().__init__(
            name,
            model,
            wire.capabilities,
            channel=wire.channel,
            encoder=wire.encoder,
            content=wire.content,
        )
