"""A model behind a server of one's own: asked under a schema or not, in a window of a size that is known."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.providers.loopback import Loopback, Reply
from tests.support.fork_server import run
from tests.support.llama_server import llama_server
from tests.support.scripted_gguf import tool_call, write_scripted_gguf

from robota.core import (
    AssistantMessage,
    ModelSettings,
    ToolCall,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from robota.core.errors import ProviderError
from robota.core.messages import Message
from robota.core.provider import NativePayload
from robota.core.robota import Robota
from robota.providers.configuration import is_own_server
from robota.providers.local import LocalProvider
from robota.providers.local.small_model import find_circle
from robota.providers.local_server import LocalServerProvider
from robota.testing.reply_conformance import ask, listen
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio
LOOK = ToolSchema(
    "look",
    "Looks at a file. " * 60 + "\n\nMore about it.",
    {"type": "object", "properties": {"path": {"type": "string", "description": "Which one. " * 30}}},
)
HI = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
CALL = tool_call("Glob", '{"pattern": "**/*.py"}')
WRITTEN = 'I look: ```tool_code\nGlob(pattern="**/*.py")\n```'
"""In none of the forms that llama.cpp itself looks for."""


@tool
async def Glob(pattern: str) -> str:
    """Find files."""
    return f"{pattern}: main.py"


# --- the same turn by every way ---------------------------------------------------------------------------


def calls_of(agent: Robota) -> list[tuple[str, Any]]:
    said = [message for message in agent.messages if isinstance(message, AssistantMessage)]
    return [(call.name, json.loads(call.arguments)) for message in said for call in message.tool_calls]


@pytest.mark.parametrize("constrain", [True, False])
async def test_a_model_behind_a_real_server_makes_its_call(tmp_path: Path, constrain: bool) -> None:
    replies = (CALL, '{"answer": "One: main.py."}') if constrain else (WRITTEN, "One: main.py.")
    model = write_scripted_gguf(tmp_path / "model.gguf", *replies)
    options = {"constrain": constrain, "examples": constrain}
    with llama_server(model) as address:
        async with LocalServerProvider(base_url=address, model="m", **options) as provider:
            agent = Robota(provider, tools=[Glob])
            assert (await agent.run("Which files?")).text == "One: main.py."
    assert calls_of(agent) == [("Glob", {"pattern": "**/*.py"})]


async def test_the_engine_in_this_process_makes_the_same_call(tmp_path: Path) -> None:
    model = write_scripted_gguf(tmp_path / "model.gguf", CALL, '{"answer": "One: main.py."}')
    async with LocalProvider(model) as provider:
        agent = Robota(provider, tools=[Glob])
        assert (await agent.run("Which files?")).text == "One: main.py."
    assert calls_of(agent) == [("Glob", {"pattern": "**/*.py"})]


def test_the_command_asks_the_server_and_holds_a_small_model_to_a_schema(tmp_path: Path) -> None:
    replies = (CALL, '{"answer": "There is one."}')
    (tmp_path / "main.py").write_text("")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    with llama_server(write_scripted_gguf(tmp_path / "model.gguf", *replies)) as address:
        env = {**kept, "PYTHONIOENCODING": "utf-8", "ROBOTA_HOME": str(tmp_path / "home")}
        done = run(["-p", "Which files?", "--base-url", f"{address}/v1"], cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout) == (0, "There is one.\n"), done.stderr
    assert "Glob(**/*.py)" in done.stderr
    assert "model.gguf is small (0 million parameters): it is held to a schema" in done.stderr


async def test_a_journal_gets_the_bytes_of_a_constrained_reply() -> None:
    written = json.dumps('{"answer": "hi"}')
    reply = b'data: {"choices":[{"delta":{"content":%s},"finish_reason":"stop"}]}\n\n' % written.encode()
    async with (
        Loopback(Reply([reply])) as server,
        LocalServerProvider(base_url=server.url, model="m", constrain=True) as provider,
    ):
        heard = await listen(provider, ask(tools=(LOOK,), want_raw=True))
    assert heard.text == "hi"
    kinds = [chunk.kind for chunk in heard.chunks if isinstance(chunk, NativePayload)]
    assert kinds == ["request", "stream_event"]


async def test_a_server_that_takes_no_schema_still_gives_its_words() -> None:
    async with (
        Loopback(Reply([HI])) as server,
        LocalServerProvider(base_url=server.url, model="m", constrain=True) as provider,
    ):
        assert (await listen(provider, ask(tools=(LOOK,)))).text == "hi"


# --- windows ----------------------------------------------------------------------------------------------


async def sent_body(context_size: int | None) -> dict[str, Any]:
    async with Loopback(Reply([HI])) as server:
        async with LocalServerProvider(base_url=server.url, model="m", context_size=context_size) as provider:
            await listen(provider, ask(tools=(LOOK,)))
        body: dict[str, Any] = server.requests[0].json
        return body


async def test_tools_are_described_in_short_when_the_window_is_small() -> None:
    full, same, short = await sent_body(None), await sent_body(32_768), await sent_body(4096)
    assert full == same
    function = short["tools"][0]["function"]
    assert function["parameters"]["properties"]["path"]["type"] == "string"
    assert len(json.dumps(short["tools"])) < len(json.dumps(full["tools"])) / 3


async def test_a_request_that_cannot_fit_is_not_sent() -> None:
    async with (
        Loopback() as server,
        LocalServerProvider(base_url=server.url, model="m", context_size=2048) as provider,
    ):
        with pytest.raises(ProviderError) as caught:
            await listen(provider, ask(UserMessage("word " * 4000)))
    assert "was not asked: the request has at least 3,3" in str(caught.value)
    assert "the context window of the server (2,048); compact the conversation" in str(caught.value)
    assert server.requests == []


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://localhost/v1", True),
        ("http://192.168.1.5:11434", True),
        ("http://[fd00::1]/v1", True),
        ("http://gpu:8000/v1", True),
        ("http://nas.local:8000/v1", True),
        ("https://api.example.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("not an address", False),
    ],
)
def test_a_server_of_ones_own_is_here_or_in_a_private_network(address: str, own: bool) -> None:
    assert is_own_server(address) is own


# --- circles ----------------------------------------------------------------------------------------------


def rounds(count: int, result: str = "same", arguments: str = '{"path":"a"}') -> list[Message]:
    messages: list[Message] = []
    for number in range(count):
        call = ToolCall(f"c{number}", "look", arguments)
        messages += [AssistantMessage("", (call,)), ToolMessage(result, tool_call_id=call.id, name="look")]
    return messages


def test_the_same_call_with_the_same_result_is_a_circle_after_three_rounds() -> None:
    assert find_circle([UserMessage("Look."), *rounds(3)]) == "look"
    assert find_circle([UserMessage("Look."), *rounds(2)]) is None
    assert find_circle([UserMessage("Look."), *rounds(2), *rounds(1, "other")]) is None
    assert find_circle([UserMessage("Look."), *rounds(1, arguments="{}"), *rounds(2)]) is None
    assert find_circle([*rounds(3), UserMessage("Again, please.")]) is None
    assert find_circle([*rounds(2), UserMessage("Go on."), *rounds(2)]) is None


@pytest.mark.parametrize("constrain", [True, False])
async def test_a_model_that_goes_in_a_circle_gets_no_tools_and_is_told(constrain: bool) -> None:
    settings = ModelSettings(tool_choice="required")
    asked = ask(UserMessage("Look."), *rounds(3), tools=(LOOK,), settings=settings)
    async with Loopback(Reply([HI])) as server:
        async with LocalServerProvider(base_url=server.url, model="m", constrain=constrain) as provider:
            heard = await listen(provider, asked)
        body = server.requests[0].json
    assert (heard.text, heard.calls) == ("hi", [])
    assert not {"tools", "tool_choice", "response_format"} & body.keys()
    assert "You have called look 3 times in a row with the same arguments" in body["messages"][-1]["content"]


async def test_a_run_of_a_model_that_repeats_itself_comes_to_an_end() -> None:
    function = {"name": "Glob", "arguments": '{"pattern":"x"}'}
    delta = {"tool_calls": [{"index": 0, "id": "c", "function": function}]}
    event = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    same = Reply([b"data: %s\n\n" % json.dumps(event).encode()])
    async with (
        Loopback(same, same, same, Reply([HI])) as server,
        LocalServerProvider(base_url=server.url, model="m") as provider,
    ):
        result = await Robota(provider, model="m", tools=[Glob]).run("Which files?")
    assert (result.text, result.rounds) == ("hi", 4)
