"""Lines 106 and 107 of what is easy to miss: hosted tools of Qwen, and endpoints that have none."""

from __future__ import annotations

import pytest
from tests.providers.families.test_qwen import READ, SAID, SEARCHED, whole_reply

from robota.core.errors import ConfigurationError, NetworkError
from robota.core.events import ServerToolUsed
from robota.core.messages import AssistantMessage
from robota.core.provider import NativeWebTools, ServerToolChunk, get_provider_capabilities
from robota.providers.gemma import GemmaProvider
from robota.providers.lmstudio import LmStudioProvider
from robota.providers.ollama import OllamaProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.qwen import QwenProvider
from robota.providers.scripted import call
from robota.providers.vllm import VllmProvider
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.testing import Cut, ModelServer
from robota.testing.reply_conformance import ADD, ask, listen

pytestmark = pytest.mark.anyio

BOTH = NativeWebTools(web_search=True, web_fetch=True)
PLAIN = [OpenAICompatibleProvider, GemmaProvider, LmStudioProvider, OllamaProvider, VllmProvider]


def open_session(provider, tmp_path, **rules) -> Session:
    options = SessionOptions(native_web_tools=BOTH, permissions=PermissionRules(**rules))
    return Session(provider=provider, model="qwen-plus", cwd=str(tmp_path), options=options)


async def test_section_20_line_106_hosted_calls_leave_their_provenance_in_the_message(tmp_path) -> None:
    async with (
        ModelServer([whole_reply(SEARCHED, READ, SAID)]) as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        session = open_session(provider, tmp_path)
        told = []
        session.events.on(ServerToolUsed, lambda event: told.append(event.tool_name))
        assert await session.run("How old do turtles get?") == "Old."
        answer = session.messages[-1]
        assert isinstance(answer, AssistantMessage)
        assert [used["name"] for used in answer.metadata["serverTools"]] == ["web_search", "web_extractor"]
        assert answer.metadata["serverTools"][0]["sources"] == SEARCHED["action"]["sources"]
        assert answer.metadata["serverTools"][1]["input"]["urls"] == READ["urls"]
        assert told == ["web_search", "web_extractor"]
        await session.shutdown()


async def test_section_20_line_106_a_reply_that_is_cut_keeps_the_provenance_of_what_ran(tmp_path) -> None:
    steps = [ServerToolChunk("web_search", {"query": "turtles"}), "Ol", Cut()]
    async with (
        ModelServer(steps) as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        session = open_session(provider, tmp_path)
        with pytest.raises(NetworkError):
            await session.run("How old do turtles get?")
        used = session.messages[-1].metadata["serverTools"]
        assert [(call["name"], call["input"]) for call in used] == [("web_search", {"query": "turtles"})]
        await session.shutdown()


@pytest.mark.parametrize(
    ("rules", "asked_for"),
    [
        ({}, ["web_search", "web_extractor"]),
        ({"deny": ("WebSearch",)}, ["web_extractor"]),
        ({"deny": ("WebFetch(domain:example.org)",)}, ["web_search"]),
        ({"ask": ("WebFetch",)}, ["web_search"]),
        ({"deny": ("WebSearch", "WebFetch")}, []),
        ({"deny": ("WebSearch", "WebFetch"), "mode": "bypassPermissions"}, []),
    ],
)
async def test_section_20_line_106_a_hosted_tool_that_rules_restrict_is_not_asked_for(
    rules, asked_for, tmp_path
) -> None:
    async with (
        ModelServer("Old.") as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        session = open_session(provider, tmp_path, **rules)
        assert await session.run("How old do turtles get?") == "Old."
        await session.shutdown()
    assert [tool["type"] for tool in server.requests[0].json.get("tools", ())] == asked_for


@pytest.mark.parametrize("make", PLAIN)
async def test_section_20_line_107_plain_endpoints_have_function_tools_and_nothing_else(make) -> None:
    made = call("add", "c1", a=1, b=2)
    async with ModelServer([made]) as server, make(base_url=f"{server.url}/v1") as provider:
        able = get_provider_capabilities(provider)
        assert able.function_calling
        assert not able.web_search.supported
        assert not able.web_fetch.supported
        assert (await listen(provider, ask(tools=(ADD,)))).calls == [made]


@pytest.mark.parametrize("make", PLAIN)
@pytest.mark.parametrize("wanted", [NativeWebTools(web_search=True), NativeWebTools(web_fetch=True)])
async def test_section_20_line_107_native_web_tools_are_refused_before_anything_is_sent(make, wanted) -> None:
    async with ModelServer() as server, make(base_url=f"{server.url}/v1") as provider:
        with pytest.raises(
            ConfigurationError, match=f"^Provider {provider.name} does not support native web "
        ):
            await listen(provider, ask(native_web_tools=wanted))
        assert server.requests == []
