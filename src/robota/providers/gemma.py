"""Gemma: a model that writes its thinking and its calls into its text when the server does not notice."""

from __future__ import annotations

from robota.core.provider import Capabilities, ChatRequest
from robota.providers.chat_vendor import Vendor, service_of
from robota.providers.local_server import LocalServerProvider, Projector


class GemmaProvider(LocalServerProvider):
    """A Gemma model in LM Studio, or at any other `base_url`."""

    vendor = Vendor(
        name="gemma",
        title="Gemma",
        base_url="http://localhost:1234/v1",
        spare_key="lm-studio",
        capabilities=Capabilities(output_schema=True),
    )

    def _projectors(self, request: ChatRequest) -> list[Projector]:
        projectors = super()._projectors(request)
        if request.tools and request.settings.tool_choice != "none":
            from robota.providers.pseudo_call import PseudoCallProjector  # noqa: PLC0415 - definitions are light

            projectors.append(PseudoCallProjector(request.tools))
        return projectors


SERVICE = service_of(
    GemmaProvider,
    description="Gemma in LM Studio or at any address; thinking and calls in its text are recognised.",
    docs="https://ai.google.dev/gemma/docs",
)
