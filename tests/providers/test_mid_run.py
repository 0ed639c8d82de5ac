"""What changes in the middle of a run, on every wire: tools, words of the user, notes of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.providers.wires import Wire, on_every_wire

from robota.core.events import HistoryMutation, RunCompleted
from robota.core.messages import ToolMessage
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.testing import ModelServer, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

FREE = SessionOptions(permissions=PermissionRules(mode="bypassPermissions"))


@on_every_wire
async def test_a_tool_and_messages_of_mid_run_are_accepted_and_each_group_is_encoded_once(
    tmp_path: Path, wire: Wire
) -> None:
    @tool
    async def late(n: int) -> str:
        """Comes later."""
        return f"late {n}"

    @tool
    async def work(n: int) -> str:
        """Work."""
        session.steer(f"Mind {n}.")
        session.inbox.put(f"Remember {n}.", origin="reminder")
        session.agent.toolset = session.agent.toolset.plus(late)
        return f"worked {n}"

    replies = [[call("work", "1", n=1), call("work", "2", n=2)], [call("late", "3", n=3)], "done"]
    async with ModelServer(*replies) as server, wire.connect(server.url) as provider:
        session = Session(
            provider=provider, model="test-model", tools=[work], cwd=str(tmp_path), options=FREE
        )
        ends: list[RunCompleted] = []
        session.events.on(RunCompleted, ends.append)
        while_open: list[Any] = []
        conversation = session.agent.conversation

        def watch(event: HistoryMutation) -> None:
            """A message that answers no call must not come while one is open."""
            if not isinstance(event.message, ToolMessage) and conversation.open_calls:
                while_open.extend([event.message] if not getattr(event.message, "tool_calls", ()) else [])

        session.events.on(HistoryMutation, watch)
        assert await session.run("Go.") == "done"
        await session.shutdown()

    assert (len(server.requests), len(ends), while_open) == (3, 1, [])
    contents = [message.content for message in session.messages]
    assert contents[2:8] == ["worked 1", "worked 2", "Mind 1.", "Remember 1.", "Mind 2.", "Remember 2."]
    assert "late 3" in contents
    results = sum(isinstance(message, ToolMessage) for message in session.messages)
    groups = len(contents) - 1 - results + 2  # the last answer was not sent; results of a round are one group
    assert conversation.encoded.encodings == groups
