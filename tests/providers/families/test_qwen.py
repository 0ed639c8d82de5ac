from __future__ import annotations

import json

import pytest

from robota.core.errors import ConfigurationError
from robota.core.events import ServerToolUsed
from robota.core.messages import AssistantMessage
from robota.core.provider import ModelSettings, NativeWebTools, ReasoningChunk, ServerToolChunk
from robota.core.robota import Robota
from robota.providers.qwen import QwenProvider
from robota.testing import ModelServer, RawBytes
from robota.testing.reply_conformance import ADD, ask, listen

pytestmark = pytest.mark.anyio

SEARCH = NativeWebTools(web_search=True)
FETCH = NativeWebTools(web_fetch=True)
BOTH = NativeWebTools(web_search=True, web_fetch=True)


def whole_reply(*items: dict) -> RawBytes:
    """The end of a Responses stream, which holds all of it."""
    response = {"id": "resp_1", "model": "qwen-plus", "status": "completed", "output": items}
    done = {"type": "response.completed", "response": response}
    return RawBytes(b"event: response.completed\ndata: " + json.dumps(done).encode() + b"\n\n")


SEARCHED = {
    "type": "web_search_call", "id": "ws_1", "status": "completed",
    "action": {
        "type": "search", "query": "turtles",
        "sources": [{"type": "url", "url": "https://example.org/turtles"}],
    },
}  # fmt: skip
READ = {
    "type": "web_extractor_call", "id": "we_1", "status": "completed", "goal": "How old?",
    "urls": ["https://example.org/turtles"], "output": "Turtles grow old.",
}  # fmt: skip
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Old.", "annotations": []}],
}


@pytest.mark.parametrize(
    ("wanted", "tools"),
    [
        (SEARCH, [{"type": "web_search"}]),
        (FETCH, [{"type": "web_extractor"}]),
        (BOTH, [{"type": "web_search"}, {"type": "web_extractor"}]),
    ],
)
async def test_hosted_tools_are_asked_for_at_the_responses_endpoint(wanted, tools) -> None:
    async with (
        ModelServer("Hi") as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        assert (await listen(provider, ask(native_web_tools=wanted, tools=(ADD,)))).text == "Hi"
    assert server.requests[0].path == "/compatible-mode/v1/responses"
    assert server.requests[0].headers["authorization"] == "Bearer key"
    assert server.requests[0].json["tools"][1:] == tools


@pytest.mark.parametrize("wanted", [None, NativeWebTools()])
async def test_requests_without_hosted_tools_are_chat_completions(wanted) -> None:
    async with (
        ModelServer([ReasoningChunk("Hm."), "Hi"]) as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        heard = await listen(provider, ask(native_web_tools=wanted))
    assert ReasoningChunk("Hm.") in heard.chunks
    assert server.requests[0].path == "/compatible-mode/v1/chat/completions"
    assert "tools" not in server.requests[0].json


async def test_the_page_reader_comes_with_thinking_unless_the_user_says_no() -> None:
    no = ModelSettings(extra={"enable_thinking": False})
    async with (
        ModelServer("Hi", "Hi", "Hi") as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        await listen(provider, ask(native_web_tools=SEARCH))
        await listen(provider, ask(native_web_tools=FETCH))
        await listen(provider, ask(native_web_tools=FETCH, settings=no))
    assert [request.json.get("enable_thinking") for request in server.requests] == [None, True, False]


async def test_the_default_model_is_used_on_both_endpoints_also_after_a_change() -> None:
    async with (
        ModelServer("Hi", "Hi", "Hi", "Hi") as server,
        QwenProvider("key", server.url, built_in_web_tools=SEARCH) as provider,
    ):
        agent = Robota(provider)
        searcher = Robota(provider, native_web_tools=SEARCH)
        await agent.run("Hello")
        await searcher.run("Hello")
        provider.model = "qwen-max"
        await agent.run("Hello")
        await searcher.run("Hello")
    assert [request.json["model"] for request in server.requests] == [
        "qwen-plus", "qwen-plus", "qwen-max", "qwen-max",
    ]  # fmt: skip


@pytest.mark.parametrize(("wanted", "word"), [(SEARCH, "web_search"), (FETCH, "web_fetch")])
async def test_a_hosted_tool_that_is_not_enabled_is_refused_with_the_way_to_enable_it(wanted, word) -> None:
    async with ModelServer() as server, QwenProvider("key", server.url) as provider:
        with pytest.raises(ConfigurationError, match=f"not enabled. Pass built_in_web_tools=.*{word}=True"):
            await listen(provider, ask(native_web_tools=wanted))
        assert server.requests == []


async def test_every_hosted_call_is_told_as_it_happens_and_kept_with_the_message() -> None:
    async with (
        ModelServer([whole_reply(SEARCHED, READ, SAID)]) as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        agent = Robota(provider, native_web_tools=BOTH)
        told = []
        agent.events.on(ServerToolUsed, lambda event: told.append((event.tool_name, event.input)))
        assert (await agent.run("How old do turtles get?")).text == "Old."
    asked = {"goal": "How old?", "urls": ["https://example.org/turtles"]}
    assert told == [("web_search", {"query": "turtles"}), ("web_extractor", asked)]
    answer = agent.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert answer.metadata["serverTools"] == [
        {
            "name": "web_search", "id": "ws_1", "status": "completed", "input": {"query": "turtles"},
            "sources": [{"type": "url", "url": "https://example.org/turtles"}],
        },
        {"name": "web_extractor", "id": "we_1", "status": "completed", "input": asked},
    ]  # fmt: skip
    assert answer.tool_calls == ()


async def test_hosted_calls_that_stream_are_told_in_their_place() -> None:
    steps = ["Let me look. ", ServerToolChunk("web_search", {"query": "turtles"}), "Old."]
    async with (
        ModelServer(steps) as server,
        QwenProvider("key", server.url, built_in_web_tools=BOTH) as provider,
    ):
        heard = await listen(provider, ask(native_web_tools=SEARCH))
    kinds = [chunk for chunk in heard.chunks if isinstance(chunk, ServerToolChunk)]
    assert (heard.text, kinds) == ("Let me look. Old.", [ServerToolChunk("web_search", {"query": "turtles"})])
