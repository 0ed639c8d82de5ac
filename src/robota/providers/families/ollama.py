"""Ollama on this machine."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.families.local_server import LocalServerProvider
from robota.providers.families.vendor import Vendor


class OllamaProvider(LocalServerProvider):
    """A model that Ollama has pulled.

    The window of the model is Ollama's to set (`OLLAMA_CONTEXT_LENGTH`); what does not fit is cut off there
    without a word.
    """

    vendor = Vendor(
        name="ollama",
        base_url="http://localhost:11434/v1",
        capabilities=Capabilities(output_schema=True),
    )
