"""Ollama: models pulled on this machine."""

from __future__ import annotations

from robota.core.jsontext import object_of
from robota.core.messages import JsonObject
from robota.core.provider import Capabilities
from robota.providers.local_server import LOCAL_OPTIONS, LocalServerProvider
from robota.providers.openai_compatible import Vendor
from robota.providers.service import base_path


def _read_model(model: JsonObject) -> JsonObject:
    return {"description": object_of(model.get("details")).get("parameter_size")}


SERVICE = Vendor(
    name="ollama",
    title="Ollama",
    description="Models pulled with Ollama on this machine.",
    base_url="http://localhost:11434/v1",
    docs="https://docs.ollama.com",
    list_url=lambda base_url: f"{base_path(base_url, '/chat/completions', '/v1')[0]}/api/tags",
    entries="models",
    key="name",
    read=_read_model,
    capabilities=Capabilities(output_schema=True),
    options=LOCAL_OPTIONS,
)


class OllamaProvider(LocalServerProvider):
    """A model that Ollama has pulled.

    The window of the model is Ollama's to set (`OLLAMA_CONTEXT_LENGTH`); what does not fit is cut off there
    without a word.
    """

    vendor = SERVICE
