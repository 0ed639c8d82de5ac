"""vLLM, on this machine or another one of yours."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.families.local_server import LocalServerProvider
from robota.providers.families.vendor import Vendor


class VllmProvider(LocalServerProvider):
    """The model of a vLLM server, which gives it tools only if it was started for that
    (`--enable-auto-tool-choice --tool-call-parser …`).
    """

    vendor = Vendor(
        name="vllm",
        base_url="http://localhost:8000/v1",
        capabilities=Capabilities(output_schema=True),
    )
