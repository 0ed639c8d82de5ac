"""Any endpoint that speaks Chat Completions: hosted services, gateways, the servers people run at home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities
from robota.providers.chat.content import ChatContent
from robota.providers.chat.turns import ChatDialect
from robota.providers.chat.wire import ChatEncoder
from robota.providers.wire.channel import HttpChannel, endpoint
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2


class OpenAICompatibleProvider(WireProvider):
    """A model behind a Chat Completions endpoint.

    `base_url` is taken as given: with `/v1` if the service has it, with or without a slash at the end; a
    query stays behind the path. `api_key` may be missing (local servers). `headers` win over ours. Images,
    files and output schemas are sent only if the capabilities say that the endpoint takes them.
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
        reasoning_placeholder: str | None = None,
        reasoning_details: bool = False,
        max_tokens_field: str = "max_tokens",
    ) -> None:
        if not base_url:
            raise ConfigurationError(
                f"Provider {name!r} needs a base_url, such as https://api.openai.com/v1 or http://localhost:11434/v1."
            )
        own = {} if headers is None else dict(headers)
        key = (api_key or "").strip()
        channel = HttpChannel(
            endpoint(base_url, "/chat/completions"),
            {"authorization": f"Bearer {key}", **own} if key else own,
            provider=name,
            secrets=[key],
            transport=transport,
            client=client,
        )
        able = Capabilities() if capabilities is None else capabilities
        dialect = ChatDialect(
            images=able.vision,
            files=able.files,
            reasoning_field=reasoning_field,
            reasoning_placeholder=reasoning_placeholder,
            reasoning_details=reasoning_details,
            max_tokens_field=max_tokens_field,
            output_schema=able.output_schema,
        )
        super().__init__(
            name, model, able, channel=channel, encoder=ChatEncoder(dialect), content=lambda _: ChatContent()
        )
