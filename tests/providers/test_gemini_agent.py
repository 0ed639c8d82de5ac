from __future__ import annotations

import pytest

from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.robota import Robota
from robota.providers.gemini import GeminiProvider
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing import ModelServer, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_an_agent_answers_calls_without_ids_and_returns_thoughts_and_signatures() -> None:
    made = (ToolCall("", "add", '{"a":1,"b":2}', "C"), ToolCall("", "add", '{"a":1,"b":2}'))
    replies = [ReasoningBlock("Hm.", "T"), "Let me add.", *made, TokenUsage(30, 7, 20, 0, 2)], "Three."
    async with (
        ModelServer(*replies) as server,
        GeminiProvider("test-key", server.url, "gemini-3-flash-preview") as provider,
    ):
        result = await Robota(provider, tools=[add]).run("1 + 2?")
    assert (result.text, result.tools_executed) == ("Three.", ("add", "add"))
    assert result.usage == TokenUsage(40, 12, 20, 0, 2)
    _, said, answered = server.requests[1].json["contents"]
    assert said["parts"][:2] == [
        {"text": "Hm.", "thought": True, "thoughtSignature": "T"},
        {"text": "Let me add."},
    ]
    assert [part.get("thoughtSignature") for part in said["parts"][2:]] == ["C", None]
    calls = [part["functionCall"]["id"] for part in said["parts"][2:]]
    assert len(set(calls)) == 2
    assert calls == [part["functionResponse"]["id"] for part in answered["parts"]]
    assert {part["functionResponse"]["response"]["output"] for part in answered["parts"]} == {"3"}


async def test_a_conversation_begun_with_another_vendor_goes_on() -> None:
    async with (
        ModelServer([call("add", "c1", a=1, b=2)], "Three.", "Four.") as server,
        OpenAICompatibleProvider("test-key", f"{server.url}/v1", "m") as first,
        GeminiProvider("test-key", server.url, "gemini-3-flash-preview") as second,
    ):
        agent = Robota(first, tools=[add])
        await agent.run("1 + 2?")
        agent.provider = second
        assert (await agent.run("And one more?")).text == "Four."
    _, said, *_ = server.requests[-1].json["contents"]
    assert said["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
