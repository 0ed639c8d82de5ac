"""vLLM: a server of yours, on this machine or another."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig
from robota.providers.definitions.family import Family, define_server, list_below_v1
from robota.providers.definitions.lists import read_openai
from robota.providers.definitions.service import ModelService

SERVICE = ModelService(
    title="vLLM",
    defaults=ProviderConfig(base_url="http://localhost:8000/v1"),
    list_url=list_below_v1,
    read=read_openai,
)
DEFINITION = define_server(
    "vllm",
    Family(place="robota.providers.families.vllm:VllmProvider", service=SERVICE),
    description="A vLLM server of yours.",
    link="https://docs.vllm.ai",
)
