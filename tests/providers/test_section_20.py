"""Requirements of the seeds that are easy to miss, by their number."""

from __future__ import annotations

import pytest
from tests.providers.wires import Wire, on_every_wire

from robota.core.messages import AssistantMessage, ToolMessage, UserMessage
from robota.core.provider import ToolSchema
from robota.providers.scripted import call
from robota.testing import ModelServer
from robota.testing.reply_conformance import ask, listen

NAMES = (
    "Bash",
    "bash",
    "web_search",
    "str_replace_based_edit_tool",
    "mcp__files__read",
    "computer-use",
    "x" * 64,
)


@pytest.mark.anyio
@on_every_wire
async def test_section_20_line_69_providers_do_not_alias_tool_names(wire: Wire) -> None:
    tools = tuple(ToolSchema(name, "Does it.", {"type": "object", "properties": {}}) for name in NAMES)
    made = [call(name, f"call-{number}") for number, name in enumerate(NAMES)]
    history = (
        UserMessage("Do it."),
        AssistantMessage("", tuple(made)),
        *(ToolMessage("Done.", one.id, one.name) for one in made),
    )
    async with ModelServer(made, strict=False) as server, wire.connect(server.url) as provider:
        heard = await listen(provider, ask(*history, tools=tools))
    sent = server.requests[0].conversation
    assert sent.tools == NAMES
    assert [one.name for turn in sent.turns for one in turn.calls] == list(NAMES)
    assert [one.name for one in heard.calls] == list(NAMES)
