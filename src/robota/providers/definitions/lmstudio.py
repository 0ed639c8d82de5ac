"""LM Studio: models loaded in its server on this machine."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig
from robota.providers.definitions.family import Family, define_server, list_below_v1
from robota.providers.definitions.lists import read_openai
from robota.providers.definitions.service import ModelService

SERVICE = ModelService(
    title="LM Studio",
    defaults=ProviderConfig(base_url="http://localhost:1234/v1"),
    list_url=list_below_v1,
    read=read_openai,
)
DEFINITION = define_server(
    "lmstudio",
    Family(place="robota.providers.families.lm_studio:LmStudioProvider", service=SERVICE),
    description="Models loaded in LM Studio on this machine.",
    link="https://lmstudio.ai/docs",
    aliases=("lm-studio",),
)
