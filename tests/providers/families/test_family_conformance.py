from __future__ import annotations

from msgspec.structs import replace

from robota.core.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage
from robota.core.provider import NativeWebTools, ProviderWrapper
from robota.providers.deepseek import DeepSeekProvider
from robota.providers.gemma import GemmaProvider
from robota.providers.lmstudio import LmStudioProvider
from robota.providers.ollama import OllamaProvider
from robota.providers.openrouter import OpenRouterProvider
from robota.providers.qwen import QwenProvider
from robota.providers.scripted import call
from robota.providers.vllm import VllmProvider
from robota.testing.conformance import HttpProviderConformance
from robota.testing.reply_conformance import ADD, ask, listen


class FamilyConformance(HttpProviderConformance):
    """Every byte of a stream is tried with the adapter that all of them share."""

    cut_every = 13


class TestDeepSeekProvider(FamilyConformance):
    def make_provider(self, server):
        return DeepSeekProvider("test-key", server.url)


class TestGemmaProvider(FamilyConformance):
    def make_provider(self, server):
        return GemmaProvider(base_url=server.url)


class TestLmStudioProvider(FamilyConformance):
    def make_provider(self, server):
        return LmStudioProvider(base_url=server.url)


class TestOllamaProvider(FamilyConformance):
    def make_provider(self, server):
        return OllamaProvider(base_url=server.url)


class TestVllmProvider(FamilyConformance):
    def make_provider(self, server):
        return VllmProvider(base_url=server.url)


class TestOpenRouterProvider(FamilyConformance):
    def make_provider(self, server):
        return OpenRouterProvider("test-key", server.url, app_title="Tests")


class TestQwenProvider(FamilyConformance):
    def make_provider(self, server):
        return QwenProvider("test-key", server.url)


class SearchingProvider(ProviderWrapper):
    """Wants hosted web search in every request."""

    def stream(self, request):
        wanted = request.native_web_tools or NativeWebTools()
        return self.inner.stream(replace(request, native_web_tools=replace(wanted, web_search=True)))


class TestQwenProviderWithHostedTools(FamilyConformance):
    def make_provider(self, server):
        search = NativeWebTools(web_search=True)
        return SearchingProvider(QwenProvider("test-key", server.url, built_in_web_tools=search))

    async def test_the_whole_conversation_is_sent(self) -> None:
        history = (
            SystemMessage("Be brief."),
            UserMessage("What is 1 + 2?"),
            AssistantMessage("Let me add.", (call("add", "c1", a=1, b=2),)),
            ToolMessage("3", tool_call_id="c1", name="add"),
            UserMessage("Thanks."),
        )
        async with self.serving("Welcome.") as (provider, server):
            await listen(provider, ask(*history, tools=(ADD,)))
        sent = server.requests[0].conversation
        assert sent.tools == ("add", "web_search")
        assert [turn.role for turn in sent.turns] == ["system", "user", "assistant", "tool", "user"]
        assert [turn.text for turn in sent.turns] == [message.content for message in history]
