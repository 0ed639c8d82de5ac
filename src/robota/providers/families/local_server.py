"""Servers that people run themselves, with whatever model they like."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from robota.core.provider import ChatRequest, Chunk
from robota.providers.families.projection import Projector, project
from robota.providers.families.reasoning_projector import ReasoningProjector
from robota.providers.families.vendor import VendorProvider


class LocalServerProvider(VendorProvider):
    """Such a server knows only some models' way of thinking; what it leaves in the text is taken out here."""

    def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        return project(super().stream(request), *self._projectors(request))

    def _projectors(self, request: ChatRequest) -> list[Projector]:
        return [ReasoningProjector()]
