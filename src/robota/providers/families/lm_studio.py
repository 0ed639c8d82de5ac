"""LM Studio on this machine."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.families.local_server import LocalServerProvider
from robota.providers.families.vendor import Vendor


class LmStudioProvider(LocalServerProvider):
    """A model that LM Studio has loaded."""

    vendor = Vendor(
        name="lm-studio",
        base_url="http://localhost:1234/v1",
        spare_key="lm-studio",
        capabilities=Capabilities(output_schema=True),
    )
