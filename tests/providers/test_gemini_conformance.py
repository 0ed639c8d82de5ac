from __future__ import annotations

from robota.providers.gemini import GeminiProvider
from robota.testing.conformance import HttpProviderConformance


class TestGeminiProvider(HttpProviderConformance):
    def make_provider(self, server):
        return GeminiProvider("test-key", server.url, "test-model")

    # it has every hosted web tool
    test_a_hosted_web_tool_it_does_not_have_is_refused = None
    test_a_refused_web_tool_costs_no_request = None
