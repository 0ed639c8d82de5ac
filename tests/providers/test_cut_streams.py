"""Recorded replies, cut anywhere: text that was delivered stays, half a call is never given out."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from tests.providers.reading import calls_in, text_in
from tests.providers.wires import WIRES, Wire, on_every_wire
from tests.support.history import assert_valid_for_a_request

from robota.core.errors import RobotaError
from robota.core.messages import AssistantMessage, ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import Chunk, StopChunk
from robota.core.robota import Robota
from robota.testing import ModelServer
from robota.testing.model_script import Cut, RawBytes
from robota.tools.function_tool import tool

TEXT = "Let me add the numbers and look up „żółw” 🐢 (漢字), at once.\n\nOne moment, please."
CUTS_OVER_HTTP = 30


def read(wire: Wire, *pieces: bytes) -> tuple[list[Chunk], RobotaError | None]:
    """What a reader makes of the pieces when nothing follows them."""
    reader = wire.reader()
    chunks = [chunk for piece in pieces for chunk in reader.feed(piece)]
    chunks += reader.end()
    try:
        chunks += reader.finish()
    except RobotaError as error:
        return chunks, error
    return chunks, None


def milestones(wire: Wire, stream: bytes) -> list[tuple[int, str]]:
    """Where events end, and the text that has been delivered there."""
    end = b"\r\n\r\n" if b"\r\n" in stream else b"\n\n"
    reader, found, at, text = wire.reader(), [(0, "")], 0, ""
    for event in stream.split(end)[:-1]:
        text += text_in(reader.feed(event + end))
        at += len(event + end)
        found.append((at, text))
    return found


def text_at(points: list[tuple[int, str]], cut: int) -> str:
    return next(text for at, text in reversed(points) if at <= cut)


@on_every_wire
def test_a_recorded_reply_is_read_whole(wire: Wire) -> None:
    for stream in wire.variants().values():
        chunks, error = read(wire, stream)
        assert error is None
        assert text_in(chunks) == TEXT
        assert [(call.name, call.arguments.replace(" ", "")) for call in calls_in(chunks)] == [
            ("add", '{"a":17,"b":25}'),
            ("look_up", '{"word":"żółw🐢","lang":"pl"}'),
        ]
        [usage] = [chunk for chunk in chunks if isinstance(chunk, TokenUsage)]
        assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (321, 87, 256)
        [thought] = [chunk for chunk in chunks if isinstance(chunk, ReasoningBlock)]
        assert thought.text == "The user wants a sum and a word: żółw 🐢. I call both tools."
        assert [chunk.reason for chunk in chunks if isinstance(chunk, StopChunk)] == ["tool_use"]


@on_every_wire
@pytest.mark.parametrize("ends", ["lf", "crlf"])
def test_a_cut_at_any_byte_keeps_the_text_and_gives_out_no_half_call(wire: Wire, ends: str) -> None:
    stream = wire.variants()[ends]
    points = milestones(wire, stream)
    whole = calls_in(read(wire, stream)[0])
    ended = [read_cut(wire, stream[:cut], text_at(points, cut), whole) for cut in range(len(stream))]
    # once the reply is whole it stays so, and before that no cut is taken for its end
    assert all(before <= after for before, after in pairwise(ended))
    assert ended.index(True) > len(stream) * 0.7


def read_cut(wire: Wire, stream: bytes, least: str, whole: list[ToolCall]) -> bool:
    """Whether the reply was taken for a whole one."""
    chunks, error = read(wire, stream)
    text = text_in(chunks)
    assert text.startswith(least)
    assert TEXT.startswith(text)
    assert calls_in(chunks) == ([] if error else whole)
    if error is not None:
        assert str(error).endswith("; try again.")
    return error is None


@on_every_wire
def test_pieces_of_any_size_say_the_same(wire: Wire) -> None:
    for stream in wire.variants().values():
        expected = read(wire, stream)
        for size in (1, 2, 3, 7, 64, 1000):
            assert read(wire, *(stream[at : at + size] for at in range(0, len(stream), size))) == expected


ran: list[tuple[str, object]] = []


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    ran.append(("add", (a, b)))
    return a + b


@tool
async def look_up(word: str, lang: str) -> str:
    """Look a word up."""
    ran.append(("look_up", (word, lang)))
    return "turtle"


def random_cuts() -> list[tuple[Wire, int]]:
    return [
        (wire, cut)
        for wire in WIRES.values()
        for cut in sorted(random.Random(wire.name).sample(range(len(wire.stream)), CUTS_OVER_HTTP))
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(("wire", "cut"), random_cuts(), ids=lambda value: getattr(value, "name", str(value)))
async def test_an_agent_whose_connection_is_cut_goes_on_with_what_it_has(wire: Wire, cut: int) -> None:
    ran.clear()
    stream = wire.stream
    least = text_at(milestones(wire, stream), cut)
    replies = [[RawBytes(stream), Cut(after_bytes=cut)], "Done.", "Done."]
    async with ModelServer(*replies) as server, wire.connect(server.url) as provider:
        agent = Robota(provider, tools=[add, look_up])
        result = await agent.run("17 + 25, and a word?")
        assert_valid_for_a_request(agent.conversation.messages_for_api())
        answer = next(
            message for message in agent.conversation.messages if isinstance(message, AssistantMessage)
        )
        assert answer.content.startswith(least)
        if result.error is not None:
            assert (answer.tool_calls, ran) == ((), [])
            assert "failed" in result.text
        else:
            assert answer.content == TEXT
            assert sorted(ran) == [("add", (17, 25)), ("look_up", ("żółw 🐢", "pl"))]
        assert (await agent.run("Go on.")).text == "Done."
        assert_valid_for_a_request(agent.conversation.messages_for_api())
