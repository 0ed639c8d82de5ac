from __future__ import annotations

from robota.providers.families.deepseek import DeepSeekProvider
from robota.providers.families.gemma import GemmaProvider
from robota.providers.families.lm_studio import LmStudioProvider
from robota.providers.families.ollama import OllamaProvider
from robota.providers.families.vllm import VllmProvider
from robota.testing.conformance import HttpProviderConformance


class TestDeepSeekProvider(HttpProviderConformance):
    def make_provider(self, server):
        return DeepSeekProvider("test-key", server.url)


class TestGemmaProvider(HttpProviderConformance):
    def make_provider(self, server):
        return GemmaProvider(base_url=server.url)


class TestLmStudioProvider(HttpProviderConformance):
    def make_provider(self, server):
        return LmStudioProvider(base_url=server.url)


class TestOllamaProvider(HttpProviderConformance):
    def make_provider(self, server):
        return OllamaProvider(base_url=server.url)


class TestVllmProvider(HttpProviderConformance):
    def make_provider(self, server):
        return VllmProvider(base_url=server.url)
