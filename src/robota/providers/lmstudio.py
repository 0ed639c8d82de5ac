"""LM Studio: models loaded in its server on this machine."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.local_server import LOCAL_OPTIONS, LocalServerProvider
from robota.providers.openai_compatible import Vendor

SERVICE = Vendor(
    name="lm-studio",
    title="LM Studio",
    description="Models loaded in LM Studio on this machine.",
    aliases=("lm-studio",),
    base_url="http://localhost:1234/v1",
    spare_key="lm-studio",
    docs="https://lmstudio.ai/docs",
    capabilities=Capabilities(output_schema=True),
    options=LOCAL_OPTIONS,
)


class LmStudioProvider(LocalServerProvider):
    """A model that LM Studio has loaded."""

    vendor = SERVICE
