"""A model that writes its thinking and its calls as text, behind a real llama.cpp server."""

from __future__ import annotations

import pytest
from tests.support.llama_server import llama_server
from tests.support.scripted_gguf import write_scripted_gguf

from robota.core.messages import AssistantMessage, ToolMessage
from robota.core.robota import Robota
from robota.providers.gemma import GemmaProvider
from robota.tools import tool

pytestmark = pytest.mark.anyio

WRITING = "<|channel>thought\nI should add.<channel|>Let me see: ```tool_code\nadd(a=17, b=25)\n```"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_what_the_server_did_not_notice_is_thought_and_done(tmp_path) -> None:
    with llama_server(write_scripted_gguf(tmp_path / "writing.gguf", WRITING, "Forty-two.")) as address:
        async with GemmaProvider(base_url=address) as provider:
            agent = Robota(provider, model="writing", tools=[add])
            assert (await agent.run("What is 17 + 25?")).text == "Forty-two."
    asked, answered = agent.messages[1:3]
    assert isinstance(asked, AssistantMessage)
    assert isinstance(answered, ToolMessage)
    assert [block.text for block in asked.reasoning] == ["I should add."]
    assert (asked.content, answered.content) == ("Let me see: ", "42")
