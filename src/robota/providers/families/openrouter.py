"""OpenRouter: many vendors' models behind one address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.provider import Capabilities
from robota.providers.families.vendor import Vendor, VendorProvider

if TYPE_CHECKING:
    import httpx2


class OpenRouterProvider(VendorProvider):
    """A model at OpenRouter, named like `vendor/model`. What it takes is for `capabilities` to say.

    `app_url` and `app_title` tell OpenRouter whose requests these are; without them it is not told.
    """

    vendor = Vendor(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_variable="OPENROUTER_API_KEY",
        hosts=("openrouter.ai",),
        reasoning_details=True,
    )

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        app_url: str | None = None,
        app_title: str | None = None,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        ours = {"HTTP-Referer": app_url, "X-Title": app_title}
        super().__init__(
            api_key,
            base_url,
            model,
            name=name,
            headers={**{header: value for header, value in ours.items() if value}, **(headers or {})},
            transport=transport,
            client=client,
            capabilities=capabilities,
        )
