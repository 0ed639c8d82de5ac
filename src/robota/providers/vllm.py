"""vLLM: a server of yours, on this machine or another."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.chat_vendor import Vendor, service_of
from robota.providers.local_server import LocalServerProvider


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


SERVICE = service_of(VllmProvider, description="A vLLM server of yours.", docs="https://docs.vllm.ai")
