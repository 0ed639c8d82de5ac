"""Recorded replies in which something is not what it should be: an error of ours, never a crash."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from msgspec.structs import astuple
from tests.providers.reading import calls_in
from tests.providers.wires import Wire, on_every_wire

from robota.core.errors import RobotaError
from robota.core.messages import ReasoningBlock, TokenUsage, ToolCall
from robota.core.provider import Chunk, ReasoningChunk, StopChunk, TextChunk, ToolInputChunk

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    "",
    "x",
    [],
    {},
    [None],
    [[]],
    {"x": 1},
    [{"type": "text"}],
)
CASES = 400


def events_of(stream: bytes) -> list[list[bytes]]:
    return [block.split(b"\n") for block in stream.replace(b"\r\n", b"\n").split(b"\n\n") if block]


def places_in(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a JSON value with each of its keys."""
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [(value, key) for key in keys] + [place for key in keys for place in places_in(value[key])]


def change(data: Any, chance: random.Random) -> None:
    """Replace one value, or take it out."""
    container, key = chance.choice(places_in(data))
    if chance.random() < 0.2:
        del container[key]
    else:
        container[key] = chance.choice(ODD)


def spoil(lines: list[bytes], chance: random.Random) -> list[bytes]:
    """The event with one value of its JSON replaced or taken out."""
    if not lines[-1].startswith(b"data: {"):
        return lines
    data = json.loads(lines[-1][6:])
    change(data, chance)
    return [*lines[:-1], b"data: " + json.dumps(data).encode()]


def read(wire: Wire, stream: bytes) -> list[Chunk]:
    reader = wire.reader()
    chunks = [*reader.feed(stream), *reader.end()]
    try:
        return chunks + reader.finish()
    except RobotaError:
        return chunks


def assert_well_typed(chunks: list[Chunk]) -> None:
    for chunk in chunks:
        if isinstance(chunk, (TextChunk, ReasoningChunk, ReasoningBlock)):
            assert isinstance(chunk.text, str)
            assert isinstance(getattr(chunk, "signature", None), str | None)
        elif isinstance(chunk, TokenUsage):
            assert {type(count) for count in astuple(chunk)} == {int}
        elif isinstance(chunk, ToolCall):
            assert {type(chunk.id), type(chunk.name), type(chunk.arguments)} == {str}
            assert isinstance(chunk.signature, str | None)
        elif isinstance(chunk, ToolInputChunk):
            assert {type(chunk.id), type(chunk.name), type(chunk.delta)} == {str}
    assert sum(isinstance(chunk, StopChunk) for chunk in chunks) <= 1


@on_every_wire
@pytest.mark.parametrize("seed", range(4))
def test_a_value_of_another_type_does_no_harm(wire: Wire, seed: int) -> None:
    chance = random.Random(f"{wire.name} {seed}")
    events = events_of(wire.stream)
    for _ in range(CASES):
        changed = list(events)
        for at in chance.sample(range(len(events)), chance.randint(1, 4)):
            changed[at] = spoil(events[at], chance)
        assert_well_typed(read(wire, b"".join(b"\n".join(lines) + b"\n\n" for lines in changed)))


@on_every_wire
def test_a_value_of_another_type_in_a_whole_document_does_no_harm(wire: Wire) -> None:
    chance = random.Random(wire.name)
    for _ in range(CASES):
        document = wire.document
        for _ in range(chance.randint(1, 3)):
            change(document, chance)
        assert_well_typed(read(wire, json.dumps(document).encode()))


@on_every_wire
def test_events_that_are_missing_doubled_or_out_of_order_do_no_harm(wire: Wire) -> None:
    chance = random.Random(wire.name)
    events = events_of(wire.stream)
    for _ in range(CASES):
        changed = chance.choices(events, k=len(events))
        assert_well_typed(read(wire, b"".join(b"\n".join(lines) + b"\n\n" for lines in changed)))


@on_every_wire
def test_bytes_that_are_damaged_do_no_harm(wire: Wire) -> None:
    chance = random.Random(wire.name)
    for _ in range(CASES):
        stream = bytearray(wire.stream)
        for at in chance.sample(range(len(stream)), chance.randint(1, 8)):
            stream[at] = chance.randrange(256)
        chunks = read(wire, bytes(stream))
        assert_well_typed(chunks)
        assert len(calls_in(chunks)) <= 3
