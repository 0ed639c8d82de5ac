"""Anthropic's models over the Messages API, and any other endpoint that speaks it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.anthropic import API_URL, API_VERSION, KEY_VARIABLE
from robota.providers.anthropic.blocks import BlockDialect
from robota.providers.anthropic.reply import BlockContent
from robota.providers.anthropic.request import MessagesBuilder, MessagesEncoder, RequestOptions
from robota.providers.wire.channel import HttpChannel, endpoint
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.providers.anthropic.client import OfficialChannel, OfficialClient

CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    web_search=NativeWebTool(supported=True, enabled=True, source=BlockContent.surface),
    web_fetch=NativeWebTool(reason="Use the WebFetch tool instead."),
)


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
        channel = (
            _open_channel(api_key, base_url.strip(), own, name, transport)
            if client is None
            else _wrap_client(client, name, others=(api_key, own, transport))
        )
        options = RequestOptions(
            sampling=own.get("anthropic-version", API_VERSION) < API_VERSION,
            output_schema=capabilities.output_schema,
            prompt_caching=prompt_caching,
            blocks=BlockDialect(images=capabilities.vision, files=capabilities.files),
        )
        super().__init__(
            name,
            model,
            capabilities,
            channel=channel,
            encoder=MessagesEncoder(options) if client is None else MessagesBuilder(options),
            content=lambda _: BlockContent(),
        )


def _open_channel(
    api_key: str | None,
    address: str,
    own: Mapping[str, str],
    name: str,
    transport: httpx2.AsyncBaseTransport | None,
) -> HttpChannel:
    key = (api_key or "").strip()
    if not key and address == API_URL:
        key = os.environ.get(KEY_VARIABLE, "").strip()
    ours = {"anthropic-version": API_VERSION, **({"authorization": f"Bearer {key}"} if key else {})}
    return HttpChannel(
        endpoint(address, "/messages", version="/v1"),
        {**ours, **own},
        provider=name,
        secrets=[key],
        transport=transport,
    )


def _wrap_client(client: OfficialClient, name: str, *, others: Sequence[object]) -> OfficialChannel:
    from robota.providers.anthropic.client import OfficialChannel  # noqa: PLC0415 - most have no client

    if any(others):
        raise ConfigurationError(
            f"Provider {name!r} got a client and api_key, headers or transport; give these to the client."
        )
    return OfficialChannel(client, provider=name)
