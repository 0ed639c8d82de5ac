"""A history that one wire made goes on over any other: accepted, without thinking that is not its own."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from tests.providers.wires import WIRES, Wire, on_every_wire

from robota.core.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ReasoningBlock,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import Capabilities
from robota.core.robota import Robota
from robota.testing import ModelServer
from robota.testing.model_script import RawBytes
from robota.testing.reply_conformance import ADD, ask, listen
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio
THINKING = "The user wants a sum"
PICTURE = "aW1hZ2U="
RETURNS_THINKING = ("anthropic", "responses", "gemini")
"""Wires that want their own thinking back; Chat Completions does so only where it is asked for."""
SEEING = Capabilities(vision=True)
BLIND = Capabilities(vision=False)
from_every_wire = pytest.mark.parametrize("source", WIRES.values(), ids=[f"from {name}" for name in WIRES])
to_every_wire = pytest.mark.parametrize("target", WIRES.values(), ids=[f"to {name}" for name in WIRES])


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def look_up(word: str, lang: str) -> str:
    """Look a word up."""
    return "turtle"


@from_every_wire
@to_every_wire
@pytest.mark.parametrize("able", [SEEING, BLIND], ids=["sees", "blind"])
async def test_a_history_of_one_wire_goes_on_over_another(
    source: Wire, target: Wire, able: Capabilities
) -> None:
    prompt = (TextPart("17 + 25, and what is this?"), ImagePart(PICTURE, "image/png"))
    async with (
        ModelServer([RawBytes(source.stream)], "Forty-two, a turtle.", "Fine.") as server,
        source.connect(server.url, capabilities=SEEING) as first,
        target.connect(server.url, capabilities=able) as second,
    ):
        agent = Robota(first, tools=[add, look_up])
        assert (await agent.run(prompt)).tools_executed == ("add", "look_up")
        thoughts = [block for message in answers(agent) for block in message.reasoning]
        agent.provider = second
        result = await agent.run("Thanks.")
    assert (result.text, result.error) == ("Fine.", None)
    assert thoughts
    assert all(block.data for block in thoughts)
    sent = server.requests[-1]
    assert (sent.status, sent.problem) == (200, "")
    own = source is target and source.name in RETURNS_THINKING
    assert (THINKING.encode() in sent.raw) == own
    assert (PICTURE.encode() in sent.raw) == able.vision
    said = "\n".join(turn.text for turn in sent.conversation.turns)
    assert ("left out" in said) != able.vision
    places = [said.find(words) for words in ("17 + 25", "Let me add", "42", "turtle", "Forty-two", "Thanks.")]
    assert -1 not in places
    assert places == sorted(places)
    assert_calls_are_answered(sent.conversation.turns, target)


def answers(agent: Robota) -> list[AssistantMessage]:
    return [message for message in agent.conversation.messages if isinstance(message, AssistantMessage)]


# --- ids ---------------------------------------------------------------------------------------------------

FITS = {
    "chat": r".{1,40}",
    "responses": r".{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]+",
    "gemini": r".*",  # which goes by order where there are no ids
}
ODD_IDS = ["", "call_0", "call_0", "call.0", "call 0", "żółw🐢", "x" * 100, "x" * 99 + "y", "functions.add:0"]


def odd_history() -> list[Message]:
    """Each id in two turns, and all of them in one."""
    history: list[Message] = []
    for number, ids in enumerate([*([id] for id in ODD_IDS * 2), ODD_IDS]):
        calls = [ToolCall(id, "add", f'{{"a":{number},"b":{at}}}') for at, id in enumerate(ids)]
        history += [UserMessage(f"Question {number}."), AssistantMessage("", tuple(calls))]
        history += [ToolMessage(f"Result {number}-{at}.", id, "add") for at, id in enumerate(ids)]
    return history


@on_every_wire
async def test_ids_that_an_api_would_refuse_are_translated(wire: Wire) -> None:
    history = odd_history()
    async with ModelServer("Fine.") as server, wire.connect(server.url) as provider:
        heard = await listen(provider, ask(*history, tools=(ADD,)))
    assert heard.text == "Fine."
    turns = server.requests[0].conversation.turns
    assert_calls_are_answered(turns, wire)
    results = [turn.text for turn in turns if turn.role == "tool"]
    assert results == [message.content for message in history if isinstance(message, ToolMessage)]


def assert_calls_are_answered(turns, wire: Wire) -> None:
    """Every call has an id that fits and is told from the others of its turn; its result carries it."""
    seen: set[str] = set()
    waiting: list[str] = []
    for before, turn in pairwise((*turns, None)):
        ids = [call.id for call in before.calls]
        assert all(re.fullmatch(FITS[wire.name], id) for id in ids)
        if wire.name != "gemini":
            assert len(set(ids)) == len(ids)
        if wire.name in ("anthropic", "responses"):
            assert seen.isdisjoint(ids)
            seen.update(ids)
        if before.role == "tool":
            assert before.answers == waiting.pop(0)
        else:
            assert not waiting
            waiting = ids
        assert turn is not None or not waiting


# --- thinking ----------------------------------------------------------------------------------------------

MARKS = {
    "chat": ReasoningBlock("Secret.", data={"type": "reasoning_content"}),
    "details": ReasoningBlock(
        "Secret.", data={"type": "reasoning_details", "details": [{"text": "Secret."}]}
    ),
    "responses": ReasoningBlock(
        "Secret.", data={"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "Secret."}
    ),
    "anthropic": ReasoningBlock("Secret.", "Secret.", {"type": "thinking"}),
    "redacted": ReasoningBlock(data={"type": "redacted_thinking", "data": "Secret."}),
    "gemini": ReasoningBlock("Secret.", "Secret.", {"gemini": "thought"}),
    "text signature": ReasoningBlock("", "Secret.", {"gemini": "text"}),
}
OWN = {
    "chat": (),
    "responses": ("responses",),
    "anthropic": ("anthropic", "redacted"),
    "gemini": ("gemini", "text signature"),
}


@to_every_wire
@pytest.mark.parametrize("mark", list(MARKS))
async def test_only_thinking_of_its_own_is_sent(target: Wire, mark: str) -> None:
    history = UserMessage("Sure?"), AssistantMessage("Yes.", reasoning=(MARKS[mark],)), UserMessage("Really?")
    async with ModelServer("Fine.") as server, target.connect(server.url) as provider:
        assert (await listen(provider, ask(*history))).text == "Fine."
    assert (b"Secret." in server.requests[0].raw) == (mark in OWN[target.name])
