from __future__ import annotations

import pytest
from tests.providers.loopback import DONE, Loopback, Reply, event

from robota.core.messages import (
    AssistantMessage,
    ReasoningBlock,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ReasoningChunk
from robota.core.robota import Robota
from robota.providers.deepseek import DeepSeekProvider
from robota.providers.scripted import call
from robota.testing import ModelServer
from robota.testing.reply_conformance import ADD, ask, listen
from robota.tools import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_thinking_is_told_apart_and_sent_back_with_the_call_it_led_to() -> None:
    replies = (
        [ReasoningChunk("I should "), ReasoningChunk("add."), call("add", "c1", a=1, b=2)],
        "Three.",
    )
    async with ModelServer(*replies) as server, DeepSeekProvider("key", server.url) as provider:
        agent = Robota(provider, model="deepseek-v4-flash", tools=[add])
        assert (await agent.run("What is 1 + 2?")).text == "Three."
    asked, answered = server.requests[1].json["messages"][1:]
    assert asked["reasoning_content"] == "I should add."
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "c1"
    assert "reasoning_content" not in answered


async def test_answers_of_other_models_get_a_placeholder_that_is_not_empty() -> None:
    foreign = ReasoningBlock("Elsewhere.", signature="s", data={"type": "thinking"})
    history = (
        UserMessage("What is 1 + 2?"),
        AssistantMessage("", (call("add", "c1", a=1, b=2),), reasoning=(foreign,)),
        ToolMessage("3", "c1", "add"),
        AssistantMessage("Three."),
        UserMessage("Thanks."),
    )
    async with ModelServer("Welcome.") as server, DeepSeekProvider("key", server.url) as provider:
        await listen(provider, ask(*history, tools=(ADD,)))
    sent = [message.get("reasoning_content") for message in server.requests[0].json["messages"]]
    assert sent == [None, " ", None, " ", None]


async def test_tokens_from_the_cache_and_for_thinking_are_counted() -> None:
    usage = {
        "prompt_tokens": 100, "completion_tokens": 20, "prompt_cache_hit_tokens": 64,
        "prompt_cache_miss_tokens": 36, "completion_tokens_details": {"reasoning_tokens": 12},
    }  # fmt: skip
    reply = Reply([event({"content": "Hi"}), event({}, "stop", usage=usage), DONE])
    async with Loopback(reply) as server, DeepSeekProvider("key", server.origin) as provider:
        heard = await listen(provider)
    assert heard.usage == TokenUsage(100, 20, 64, 0, 12)
