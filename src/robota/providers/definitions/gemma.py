"""Gemma: a model that writes its thinking and its calls into its text, in LM Studio or elsewhere."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig
from robota.providers.definitions.family import Family, define_server, list_below_v1
from robota.providers.definitions.lists import read_openai
from robota.providers.definitions.service import ModelService

SERVICE = ModelService(
    title="Gemma",
    defaults=ProviderConfig(base_url="http://localhost:1234/v1"),
    list_url=list_below_v1,
    read=read_openai,
)
DEFINITION = define_server(
    "gemma",
    Family(place="robota.providers.families.gemma:GemmaProvider", service=SERVICE),
    description="Gemma in LM Studio or at any address; thinking and calls in its text are recognised.",
    link="https://ai.google.dev/gemma/docs",
)
