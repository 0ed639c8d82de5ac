from __future__ import annotations

from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing.conformance import HttpProviderConformance


class TestOpenAICompatibleProvider(HttpProviderConformance):
    def make_provider(self, server):
        return OpenAICompatibleProvider(base_url=f"{server.url}/v1", api_key="test-key", model="test-model")
