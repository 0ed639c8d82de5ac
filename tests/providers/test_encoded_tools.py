"""Tools are encoded once per schema and dialect, whoever sends them and how often."""

from __future__ import annotations

import gc

import pytest
from tests.providers.wires import WIRES, Wire, on_every_wire

from robota import Robota, tool
from robota.core.tool import Tool, tool_schema
from robota.providers.encoding import EncodedTools
from robota.testing import ModelServer, call

pytestmark = pytest.mark.anyio

AGENTS, ROUNDS = 40, 3


def make_tools(count: int) -> list[Tool]:
    async def work(number: int) -> int:
        """Work."""
        return number

    return [tool(name=f"work_{number}")(work) for number in range(count)]


@on_every_wire
async def test_many_agents_and_rounds_encode_each_schema_once(wire: Wire) -> None:
    tools, agents = make_tools(5), list[Robota]()
    before = wire.tools.encodings
    async with ModelServer(*[[call("work_1", number=1)]] * (ROUNDS - 1), "Done.", repeat=True) as server:
        for number in range(AGENTS):
            async with wire.connect(server.url) as provider:
                # agents with other sets of the same tools do not need them anew
                agents.append(Robota(provider, model="test-model", tools=tools[number % 2 :]))
                assert (await agents[-1].run("Go.")).text == "Done."
    assert len(server.requests) == AGENTS * ROUNDS
    assert {len(request.conversation.tools) for request in server.requests} == {4, 5}
    assert wire.tools.encodings - before == len(tools)


@pytest.mark.parametrize("kept", [wire.tools for wire in WIRES.values()], ids=list(WIRES))
async def test_the_json_of_a_tool_goes_with_its_schema(kept: EncodedTools) -> None:
    gc.collect()
    before = len(kept)
    schemas = [tool_schema(each) for each in make_tools(3)]
    kept.find(schemas)
    assert len(kept) == before + 3
    del schemas
    gc.collect()
    assert len(kept) == before
