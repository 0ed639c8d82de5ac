"""LM Studio: models loaded in its server on this machine."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.chat_vendor import Vendor, service_of
from robota.providers.local_server import LocalServerProvider


class LmStudioProvider(LocalServerProvider):
    """A model that LM Studio has loaded."""

    vendor = Vendor(
        name="lm-studio",
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        spare_key="lm-studio",
        capabilities=Capabilities(output_schema=True),
    )


SERVICE = service_of(
    LmStudioProvider,
    description="Models loaded in LM Studio on this machine.",
    docs="https://lmstudio.ai/docs",
    aliases=("lm-studio",),
)
