"""Any endpoint that speaks Chat Completions: hosted services, gateways, the servers people run at home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.core.provider import Capabilities, Provider
from robota.providers.chat import ChatHabits, chat_codec
from robota.providers.service import Service, bearer
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.providers.wire.channel import HttpChannel

TITLE = "The OpenAI-compatible service"


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
        **habits: Unpack[ChatHabits],
    ) -> None:
        if not base_url:
            raise ConfigurationError(
                f"Provider {name!r} needs a base_url, such as https://api.openai.com/v1 or http://localhost:11434/v1."
            )
        channel = open_channel(
            api_key, base_url, "/chat/completions",
            provider=name, headers=headers, transport=transport, client=client,
        )  # fmt: skip
        able = Capabilities() if capabilities is None else capabilities
        encoder, content = chat_codec(able, **habits)
        super().__init__(name, model, able, channel=channel, encoder=encoder, content=content)


def open_channel(
    api_key: str | None,
    base_url: str,
    path: str,
    *,
    provider: str,
    headers: Mapping[str, str] | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    client: httpx2.AsyncClient | None = None,
) -> HttpChannel:
    """The direct way to `{base_url}{path}`, with the key as most services want it."""
    from robota.providers.wire.channel import HttpChannel, endpoint  # noqa: PLC0415 - definitions load no HTTP

    key = (api_key or "").strip()
    return HttpChannel(
        endpoint(base_url, path),
        {**(bearer(key) if key else {}), **(headers or {})},
        provider=provider,
        secrets=[key],
        transport=transport,
        client=client,
    )


def _make(api_key: str | None, base_url: str | None, model: str | None, **options: Json) -> Provider:
    if not base_url:
        raise ConfigurationError(f"{TITLE} needs a base URL, such as http://localhost:8080/v1.")
    return OpenAICompatibleProvider(api_key, base_url, model, **options)


SERVICE = Service(
    title=TITLE,
    display_name="OpenAI-compatible",
    description="Any address that speaks Chat Completions; function tools only.",
    make=_make,
    options={"reasoning_field": str, "max_tokens_field": str},
)
