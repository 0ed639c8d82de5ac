"""Gemma behind LM Studio: a model that thinks and calls tools in its text when the server does not notice."""

from __future__ import annotations

from robota.core.provider import Capabilities, ChatRequest
from robota.providers.families.local_server import LocalServerProvider
from robota.providers.families.projection import Projector
from robota.providers.families.pseudo_call_projector import PseudoCallProjector
from robota.providers.families.vendor import Vendor


class GemmaProvider(LocalServerProvider):
    """A Gemma model in LM Studio, or at any other `base_url`."""

    vendor = Vendor(
        name="gemma",
        base_url="http://localhost:1234/v1",
        spare_key="lm-studio",
        capabilities=Capabilities(output_schema=True),
    )

    def _projectors(self, request: ChatRequest) -> list[Projector]:
        projectors = super()._projectors(request)
        if request.tools and request.settings.tool_choice != "none":
            projectors.append(PseudoCallProjector(request.tools))
        return projectors
