from __future__ import annotations

from robota.providers.openai import OpenAIProvider
from robota.testing.conformance import HttpProviderConformance


class TestOpenAIProviderOnResponses(HttpProviderConformance):
    def make_provider(self, server):
        return OpenAIProvider("test-key", f"{server.url}/v1", "test-model", api="responses")


class TestOpenAIProviderOnChatCompletions(HttpProviderConformance):
    def make_provider(self, server):
        return OpenAIProvider("test-key", f"{server.url}/v1", "test-model")
