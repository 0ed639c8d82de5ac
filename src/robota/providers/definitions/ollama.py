"""Ollama: models pulled on this machine."""

from __future__ import annotations

from robota.core.provider_definition import ProviderConfig
from robota.providers.definitions.family import Family, define_server
from robota.providers.definitions.lists import base_path, read_ollama
from robota.providers.definitions.service import ModelService


def _list_url(base_url: str) -> str:
    path, _ = base_path(base_url, "/chat/completions", "/v1")
    return f"{path}/api/tags"


SERVICE = ModelService(
    title="Ollama",
    defaults=ProviderConfig(base_url="http://localhost:11434/v1"),
    list_url=_list_url,
    read=read_ollama,
)
DEFINITION = define_server(
    "ollama",
    Family(place="robota.providers.families.ollama:OllamaProvider", service=SERVICE),
    description="Models pulled with Ollama on this machine.",
    link="https://docs.ollama.com",
)
