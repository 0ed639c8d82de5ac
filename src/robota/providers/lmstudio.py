"""LM Studio: models loaded in its server on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.provider import Capabilities
from robota.providers.chat_vendor import Vendor
from robota.providers.local_server import LocalServerProvider

if TYPE_CHECKING:
    from robota.core.provider_definition import ProviderDefinition


class LmStudioProvider(LocalServerProvider):
    """A model that LM Studio has loaded."""

    vendor = Vendor(
        name="lm-studio",
        title="LM Studio",
        base_url="http://localhost:1234/v1",
        spare_key="lm-studio",
        capabilities=Capabilities(output_schema=True),
    )


def define() -> ProviderDefinition:
    from robota.providers.service import define_service, vendor_service  # noqa: PLC0415 - a provider needs none

    return define_service(
        "lmstudio",
        vendor_service(LmStudioProvider),
        description="Models loaded in LM Studio on this machine.",
        docs="https://lmstudio.ai/docs",
        aliases=("lm-studio",),
    )
