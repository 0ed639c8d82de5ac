"""vLLM: a server of yours, on this machine or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.provider import Capabilities
from robota.providers.chat_vendor import Vendor
from robota.providers.local_server import LocalServerProvider

if TYPE_CHECKING:
    from robota.core.provider_definition import ProviderDefinition


class VllmProvider(LocalServerProvider):
    """The model of a vLLM server, which gives it tools only if it was started for that
    (`--enable-auto-tool-choice --tool-call-parser …`).
    """

    vendor = Vendor(
        name="vllm",
        title="vLLM",
        base_url="http://localhost:8000/v1",
        capabilities=Capabilities(output_schema=True),
    )


def define() -> ProviderDefinition:
    from robota.providers.service import define_service, vendor_service  # noqa: PLC0415 - a provider needs none

    service = vendor_service(VllmProvider)
    return define_service("vllm", service, description="A vLLM server of yours.", docs="https://docs.vllm.ai")
