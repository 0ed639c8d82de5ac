from __future__ import annotations

from robota.providers.openai import OpenAIProvider
from robota.testing.conformance import HttpProviderConformance


class TestOpenAIProviderOnResponses(HttpProviderConformance):
    """Every byte of such a stream is tried without a network in `test_cut_streams.py`."""

    cut_every = 5

    def make_provider(self, server):
        return OpenAIProvider("test-key", f"{server.url}/v1", "test-model", api="responses")


class TestOpenAIProviderOnChatCompletions(HttpProviderConformance):
    """Every byte of a stream is tried with the adapter for compatible services."""

    cut_every = 13

    def make_provider(self, server):
        return OpenAIProvider("test-key", f"{server.url}/v1", "test-model")
