"""Gemma: a model that writes its thinking and its calls into its text when the server does not notice."""

from __future__ import annotations

from robota.core.provider import Capabilities
from robota.providers.local_server import LOCAL_OPTIONS, LocalServerProvider
from robota.providers.openai_compatible import Vendor

SERVICE = Vendor(
    name="gemma",
    title="Gemma",
    description="Gemma in LM Studio or at any address; thinking and calls in its text are recognised.",
    base_url="http://localhost:1234/v1",
    spare_key="lm-studio",
    docs="https://ai.google.dev/gemma/docs",
    capabilities=Capabilities(output_schema=True),
    options=LOCAL_OPTIONS,
)


class GemmaProvider(LocalServerProvider):
    """A Gemma model in LM Studio, or at any other `base_url`."""

    vendor = SERVICE
