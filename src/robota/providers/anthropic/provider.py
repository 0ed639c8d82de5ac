"""Anthropic's models over the Messages API, and any other endpoint that speaks it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.anthropic import API_URL, API_VERSION, KEY_VARIABLE
from robota.providers.anthropic.blocks import BlockDialect
from robota.providers.anthropic.reply import BlockContent
from robota.providers.anthropic.request import MessagesEncoder
from robota.providers.service import endpoint
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.providers.anthropic.client import OfficialClient

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
        channel: Channel
        if client is not None:
            from robota.providers.anthropic.client import OfficialChannel  # noqa: PLC0415 - most have no client

            if api_key or own or transport:
                raise ConfigurationError(
                    f"Provider {name!r} got a client and api_key, headers or transport; give these to the "
                    "client."
                )
            channel = OfficialChannel(client, provider=name)
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
