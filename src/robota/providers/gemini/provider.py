"""Google's Gemini models through the Gemini API, streamed, straight on the wire."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from robota.core.messages import Json
from robota.core.provider import Capabilities, NativeWebTool
from robota.providers.gemini import API_VERSION, BASE_URL, KEY_VARIABLES, sign
from robota.providers.gemini.errors import describe_google_refusal
from robota.providers.gemini.reply import GeminiContent
from robota.providers.gemini.request import GeminiEncoder
from robota.providers.service import base_path
from robota.providers.wire.channel import HttpChannel
from robota.providers.wire.provider import Channel, WireProvider

if TYPE_CHECKING:
    import httpx2

    from robota.providers.gemini.client import OfficialClient

CAPABILITIES = Capabilities(
    vision=True,
    files=True,
    output_schema=True,
    web_search=NativeWebTool(supported=True, enabled=True, source="googleSearch"),
    web_fetch=NativeWebTool(supported=True, enabled=True, source="urlContext"),
)
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
            from robota.providers.gemini.client import OfficialChannel  # noqa: PLC0415 - most have no client

            channel = OfficialChannel(client, provider=name)
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
    place = quote(model if "/" in model else f"models/{model}", safe="/")
    return f"{root}/{place}:streamGenerateContent{f'{query}&' if query else '?'}alt=sse"
