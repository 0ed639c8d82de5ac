from __future__ import annotations

import pytest

from robota.core.errors import NetworkError, ProviderError
from robota.core.events import ReasoningDelta
from robota.core.messages import AssistantMessage, ReasoningBlock, ToolMessage
from robota.core.provider import ModelSettings, NativePayload, TextChunk
from robota.core.robota import Robota
from robota.providers.gemma import GemmaProvider
from robota.providers.lmstudio import LmStudioProvider
from robota.providers.local_server import LocalServerProvider
from robota.providers.ollama import OllamaProvider
from robota.providers.scripted import call
from robota.providers.vllm import VllmProvider
from robota.testing import Cut, ErrorEvent, ModelServer
from robota.testing.reply_conformance import ADD, Heard, ask, listen
from robota.tools import tool

pytestmark = pytest.mark.anyio

WRITTEN = '```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```'


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def letters(text: str) -> list[str]:
    return list(text)


@pytest.mark.parametrize(
    "written",
    [
        WRITTEN,
        '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>',
        "```tool_code\nprint(add(a=1, b=2))\n```",
        "<|tool_call>call:add{a:1,b:2}<tool_call|>",
    ],
)
async def test_an_agent_makes_the_calls_that_the_model_wrote(written) -> None:
    thought = "<|channel>thought\nI should add.<channel|>"
    async with (
        ModelServer(letters(f"{thought}Let me add. {written}"), "Three.") as server,
        GemmaProvider(base_url=server.url) as provider,
    ):
        agent = Robota(provider, model="google/gemma-4", tools=[add])
        thinking = []
        agent.events.on(ReasoningDelta, lambda event: thinking.append(event.text))
        result = await agent.run("What is 1 + 2?")
    assert result.text == "Three."
    assert "".join(thinking) == "I should add."
    asked, answered = agent.messages[1:3]
    assert isinstance(asked, AssistantMessage)
    assert isinstance(answered, ToolMessage)
    assert (asked.content, asked.reasoning[0].text) == ("Let me add. ", "I should add.")
    assert (answered.content, answered.tool_call_id) == ("3", asked.tool_calls[0].id)
    sent = server.requests[1].conversation.turns
    assert [turn.text for turn in sent] == ["What is 1 + 2?", "Let me add. ", "3"]


async def test_two_written_calls_get_ids_of_their_own() -> None:
    async with (
        ModelServer(f"{WRITTEN}\n{WRITTEN}", "Six.") as server,
        GemmaProvider(base_url=server.url) as provider,
    ):
        agent = Robota(provider, model="google/gemma-4", tools=[add])
        assert (await agent.run("Twice 1 + 2?")).text == "Six."
    asked = agent.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert len({made.id for made in asked.tool_calls}) == 2


@pytest.mark.parametrize(
    "request_",
    [ask(), ask(tools=(ADD,), settings=ModelSettings(tool_choice="none"))],
    ids=["no tools", "tool choice none"],
)
async def test_nothing_is_a_call_when_no_tool_may_be_called(request_) -> None:
    async with ModelServer(letters(WRITTEN)) as server, GemmaProvider(base_url=server.url) as provider:
        heard = await listen(provider, request_)
    assert (heard.text, heard.calls, heard.stops) == (WRITTEN, [], ["end_turn"])


async def test_calls_that_the_server_noticed_are_made_once() -> None:
    made = call("add", "c1", a=1, b=2)
    async with ModelServer([WRITTEN, made]) as server, GemmaProvider(base_url=server.url) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))
    assert (heard.text, heard.calls) == (WRITTEN, [made])


@pytest.mark.parametrize("fault", [Cut(), Cut(clean=True), ErrorEvent("Out of memory.")])
@pytest.mark.parametrize("text", ["Hel", "<thi", f"So: {WRITTEN}", "So: ```json\n{", "So: <tool_ca"])
async def test_a_reply_that_breaks_off_loses_no_letter_and_makes_no_call(text, fault) -> None:
    async with (
        ModelServer([*letters(text), fault]) as server,
        GemmaProvider(base_url=server.url) as provider,
    ):
        heard = Heard()
        with pytest.raises((NetworkError, ProviderError)):
            await listen(provider, ask(tools=(ADD,)), heard)
    assert (heard.text, heard.calls, heard.stops) == (text, [], [])


async def test_what_came_before_a_cut_is_in_the_history() -> None:
    async with (
        ModelServer([*letters("So: <tool_call>{"), Cut()]) as server,
        GemmaProvider(base_url=server.url) as provider,
    ):
        agent = Robota(provider, model="google/gemma-4", tools=[add])
        result = await agent.run("What is 1 + 2?")
    assert result.error is not None
    assert agent.messages[-1].content.startswith("So: <tool_call>{")


async def test_a_journal_gets_every_event_of_the_stream() -> None:
    steps = letters(f"<think>Hm.</think>So: {WRITTEN}")
    async with ModelServer(steps) as server, GemmaProvider(base_url=server.url) as provider:
        heard = await listen(provider, ask(tools=(ADD,), want_raw=True))
    events = [chunk.raw for chunk in heard.chunks if isinstance(chunk, TextChunk) and chunk.raw]
    events += [chunk.payload for chunk in heard.chunks if isinstance(chunk, NativePayload)]
    assert sum(b'"delta":{"content":' in event for event in events) == len(steps)


@pytest.mark.parametrize("make", [LmStudioProvider, OllamaProvider, VllmProvider, LocalServerProvider])
async def test_other_local_servers_have_their_thinking_and_their_calls_taken_out_too(make) -> None:
    text = f"<think>Hm.</think>{WRITTEN}"
    async with ModelServer(letters(text)) as server, make(base_url=server.url) as provider:
        heard = await listen(provider, ask(tools=(ADD,)))
    assert (heard.text, [made.name for made in heard.calls]) == ("", ["add"])
    assert ReasoningBlock("Hm.") in heard.chunks
