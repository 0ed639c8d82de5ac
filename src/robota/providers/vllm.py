"""vLLM: a server of yours, on this machine or another."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.local_server import LOCAL_OPTIONS, LocalServerProvider
from robota.providers.openai_compatible import Vendor

SERVICE = Vendor(
    name="vllm",
    title="vLLM",
    description="A vLLM server of yours.",
    base_url="http://localhost:8000/v1",
    docs="https://docs.vllm.ai",
    capabilities=Capabilities(output_schema=True),
    options=LOCAL_OPTIONS,
)


class VllmProvider(LocalServerProvider):
    """The model of a vLLM server, which gives it tools only if it was started for that
    (`--enable-auto-tool-choice --tool-call-parser …`).
    """

    vendor = SERVICE
