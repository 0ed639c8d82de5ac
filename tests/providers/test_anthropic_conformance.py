from __future__ import annotations

from robota.providers.anthropic import AnthropicProvider
from robota.testing.conformance import HttpProviderConformance


class TestAnthropicProvider(HttpProviderConformance):
    def make_provider(self, server):
        return AnthropicProvider("test-key-123456", server.url, "test-model")
